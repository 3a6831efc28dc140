"""A cluster on real ZooKeeper whose brokers are killed, paused, cut off and restarted under load."""
