"""Nodes of the metadata store: Kafka's paths, and their payloads as values."""
