"""Cluster metadata and settings on a broker: topics, leaders, names, assignments, dynamic settings."""
