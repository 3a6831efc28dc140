"""Log segments: the file of batches, its indexes, and the cache of open segments."""
