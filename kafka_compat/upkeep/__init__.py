"""Periodic work of a broker: flushing, rolling, retention, checkpoints, compaction."""
