"""Share-partitions: the records of a partition as share groups consume them (KIP-932)."""
