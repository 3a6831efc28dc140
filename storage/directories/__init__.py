"""Log directories: logs, worker threads, checkpoints, deletions and moves."""
