"""Kafka's commands, with Kafka's flags, output and exit codes, for any Kafka cluster."""
