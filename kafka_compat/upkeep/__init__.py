"""What a broker does by the clock: flushing, rolling, retention, checkpoints, compaction."""
