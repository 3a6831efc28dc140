"""Code shared by tests and benchmarks: Kafka's jars, servers as processes, and Kafka's own tools."""
