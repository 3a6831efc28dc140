"""Consumer groups with the consumer rebalance protocol (KIP-848): assignors and metadata hashes."""
