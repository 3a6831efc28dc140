"""What the tests and the benchmark share: Kafka's jars, servers as processes, Kafka's own tools."""
