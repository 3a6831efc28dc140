"""Share groups (KIP-932): members, assignments and initialized share-partitions."""
