"""Log compaction: the choice of records to keep, and the child process that rewrites segments."""
