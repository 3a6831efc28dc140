"""Cluster metadata and settings on a broker: topics, leaders, naming and assignment, dynamic settings."""
