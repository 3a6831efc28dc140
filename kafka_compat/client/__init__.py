"""Kafka client used by this project's commands and test fixtures; works with any Kafka broker."""
