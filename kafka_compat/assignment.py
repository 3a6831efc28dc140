"""Which brokers hold which partition of a new topic. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def assign_replicas(
    brokers: Sequence[int], partitions: int, replication_factor: int, first_partition: int = 0
) -> list[tuple[int, ...]]:
    """Replicas of `partitions` new partitions, the preferred leader first.

    Leaders go round the brokers; the followers of successive rounds shift by one, so that a broker's leaders
    do not all have the same followers. `replication_factor` is at most the number of brokers.
    """
    count = len(brokers)
    assignment = []
    for partition in range(first_partition, first_partition + partitions):
        leader = partition % count
        shift = partition // count
        followers = (
            brokers[(leader + 1 + (shift + replica) % (count - 1)) % count]
            for replica in range(replication_factor - 1)
        )
        assignment.append((brokers[leader], *followers))
    return assignment
