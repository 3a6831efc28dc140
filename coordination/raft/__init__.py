"""Raft as a pure state machine, with the rules of Apache Kafka's KRaft (KIP-595, KIP-996, KIP-853)."""
