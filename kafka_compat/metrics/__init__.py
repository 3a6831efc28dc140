"""Metrics and health of the brokers of this process, for Prometheus, orchestrators and OpenTelemetry."""
