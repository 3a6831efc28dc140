"""Log directories: which logs they hold, their worker threads, checkpoints and deletions."""
