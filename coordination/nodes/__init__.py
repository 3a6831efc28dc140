"""Nodes of the metadata store: Kafka's paths and payloads as values."""
