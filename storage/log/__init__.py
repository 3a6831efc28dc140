"""The log of one partition: appends, reads, recovery, retention, producers and leader epochs."""
