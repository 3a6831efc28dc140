"""Log directories: their logs, worker threads, checkpoints, deletions and moves."""
