"""What operators see of the brokers of this process: are they ready, metrics for Prometheus."""
