"""Assignment of new partitions' replicas to brokers and racks. No I/O.

Rules, as in Kafka's AdminUtils
1. Leaders are assigned round-robin, starting with a random broker for each topic, so that small topics are
   spread over all brokers.
2. After each round, followers are shifted by one, so that a leader's partitions have different followers.
3. With racks (broker.rack), the order of brokers alternates between racks, and a rack gets a second replica
   only when every rack has one (KIP-36).
"""

from collections.abc import Mapping


def assign_replicas(
    racks: Mapping[int, str | None],
    partitions: int,
    replication_factor: int,
    *,
    start: int | None = None,
    shift: int | None = None,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """Return the replicas of `partitions` new partitions, each starting with its preferred leader.

    `racks` maps the brokers to their racks; either all or none have a rack. `replication_factor` is at most
    the number of brokers. `start` is the index of partition 0's leader, and `shift` the distance from the
    leader to the first follower; both are random by default. `first_partition` is the number of the first new
    partition.
    """
    import random  # Import random here, because it is slow to import and a new broker does not need it.

    brokers = alternating(racks)
    rack_count = len(set(racks.values()))
    count = len(brokers)
    start = random.randrange(count) if start is None else start
    shift = random.randrange(count) if shift is None else shift
    assignment = []
    for partition in range(first_partition, first_partition + partitions):
        if partition and partition % count == 0:
            shift += 1
        first = (start + partition) % count
        # If no racks are configured, all brokers are treated as one rack.
        followers = _followers(brokers, racks, first, shift * rack_count, replication_factor)
        assignment.append((brokers[first], *followers))
    return assignment


def alternating(racks: Mapping[int, str | None]) -> list[int]:
    """Return the brokers in an order that alternates racks: a1 b1 c1 a2 b2 c2. Without racks, sort by ID."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker] or "", []).append(broker)
    lanes = [by_rack[rack] for rack in sorted(by_rack)]
    return [lane[place] for place in range(max(map(len, lanes))) for lane in lanes if place < len(lane)]


def _followers(
    brokers: list[int], racks: Mapping[int, str | None], first: int, shift: int, replication_factor: int
) -> list[int]:
    count = len(brokers)
    rack_count = len(set(racks.values()))
    chosen = [brokers[first]]
    used_racks = {racks[brokers[first]]}
    place = 0
    while len(chosen) < replication_factor:
        broker = brokers[(first + 1 + (shift + place) % (count - 1)) % count]
        place += 1
        if broker not in chosen and (racks[broker] not in used_racks or len(used_racks) == rack_count):
            chosen.append(broker)
            used_racks.add(racks[broker])
    return chosen[1:]
