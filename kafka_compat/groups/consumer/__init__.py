"""Consumer groups that use the consumer rebalance protocol (KIP-848)."""
