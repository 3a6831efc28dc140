"""A client of any Kafka broker, for what this project's commands and fixtures ask of one."""
