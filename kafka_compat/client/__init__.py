"""A Kafka client for this project's commands and test fixtures. It works with any Kafka broker."""
