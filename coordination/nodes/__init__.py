"""Nodes of the metadata store: Kafka's paths, and encoding and decoding of the payloads."""
