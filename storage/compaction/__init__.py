"""Compaction: which records remain, and the child process that rewrites segments."""
