"""The log of one partition: appends, reads, recovery, retention, producer state and leader epochs."""
