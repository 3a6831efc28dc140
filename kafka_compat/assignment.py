"""Which brokers hold which partition of a new topic. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def assign_replicas(
    brokers: Sequence[int], partitions: int, replication_factor: int, first_partition: int = 0
) -> list[tuple[int, ...]]:
    """Replicas of `partitions` new partitions, the preferred leader first.

    Leaders go round the brokers; the followers of successive rounds shift by one, so that a broker's leaders do not all
    have the same followers. `replication_factor` is at most the number of brokers.
    """
    count = len(brokers)
    assignment = []
    for partition in range(first_partition, first_partition + partitions):
        leader = partition % count
        shift = partition // count
        replicas = [brokers[leader]]
        for replica in range(1, replication_factor):
            replicas.append(brokers[(leader + 1 + (shift + replica - 1) % (count - 1)) % count])
        assignment.append(tuple(replicas))
    return assignment
