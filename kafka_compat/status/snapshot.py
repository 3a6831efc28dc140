"""Data classes for the state of a cluster at one moment.

None means unknown: the broker does not respond, is too old, or does not authorize this user.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from kafka_compat.client.partitions import TopicPartition
from kafka_compat.errors import known_code
from kafka_compat.lag import records_behind, total_records


class Broker(NamedTuple):
    """A broker. Its address is unknown if the broker appears only in replica lists. `release` is the newest
    Kafka release whose APIs the broker supports. `fault` is the reason why the broker counts as down.
    """

    broker_id: int
    host: str | None = None
    port: int | None = None
    rack: str | None = None
    release: str | None = None
    fault: str | None = None

    @property
    def is_up(self) -> bool:
        return self.fault is None

    @property
    def state(self) -> str:
        """Status: `up`, `unreachable` (listed by the cluster, but not responding), or `down`."""
        return "up" if self.is_up else "down" if self.host is None else "unreachable"

    @property
    def address(self) -> str | None:
        """Address as `host:port`, or None if it is unknown."""
        return None if self.host is None else f"{self.host}:{self.port}"


class LogDir(NamedTuple):
    """A log directory of a broker, with the volume sizes of KIP-827. `error` names a Kafka error code."""

    broker_id: int
    path: str
    replicas: int
    replica_bytes: int
    total_bytes: int | None = None
    usable_bytes: int | None = None
    error: str | None = None

    @property
    def usable_share(self) -> float | None:
        """Usable share of the volume, from 0 to 1, or None if it is unknown."""
        if not self.total_bytes or self.usable_bytes is None:
            return None
        return self.usable_bytes / self.total_bytes

    @classmethod
    def of(cls, broker_id: int, result: Any) -> Self:
        """Create a log directory from a result in a DescribeLogDirs response."""
        return cls(
            broker_id,
            result.log_dir,
            sum(len(topic.partitions) for topic in result.topics),
            sum(one.partition_size for topic in result.topics for one in topic.partitions),
            result.total_bytes if result.total_bytes >= 0 else None,
            result.usable_bytes if result.usable_bytes >= 0 else None,
            known_code(result.error_code).name if result.error_code else None,
        )


class Partition(NamedTuple):
    """A partition. `adding` contains replicas that a reassignment adds (KIP-455). `start` and `end` are
    offsets. `size_bytes` is the size of the leader's log, and `disk_bytes` is the size of all replicas.
    """

    number: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    start: int | None = None
    end: int | None = None
    size_bytes: int | None = None
    disk_bytes: int | None = None

    @property
    def is_under_replicated(self) -> bool:
        """Whether replicas are out of sync, not counting those that a reassignment is adding."""
        return len(self.isr) < len(self.replicas) - len(self.adding)

    @property
    def records(self) -> int | None:
        """Number of offsets. After compaction or transactions, it exceeds the number of records."""
        return None if self.start is None or self.end is None else self.end - self.start

    def is_under_min_isr(self, min_isr: int | None) -> bool:
        """Return whether the partition has no leader, or too few in-sync replicas for acks=all.

        As in Kafka, a leader requires `min_isr` in-sync replicas, at most all replicas.
        """
        if self.leader is None:
            return True
        return min_isr is not None and len(self.isr) < min(min_isr, len(self.replicas))


class Topic(NamedTuple):
    """A topic. `min_isr` is its min.insync.replicas."""

    name: str
    is_internal: bool
    min_isr: int | None
    partitions: tuple[Partition, ...]

    @property
    def offline(self) -> list[Partition]:
        """Partitions without a leader."""
        return [each for each in self.partitions if each.leader is None]

    @property
    def under_replicated(self) -> list[Partition]:
        return [each for each in self.partitions if each.is_under_replicated]

    @property
    def under_min_isr(self) -> list[Partition]:
        return [each for each in self.partitions if each.is_under_min_isr(self.min_isr)]

    @property
    def records(self) -> int | None:
        """Sum of `Partition.records` over the partitions whose offsets are known, or None if none are."""
        return total(each.records for each in self.partitions)

    @property
    def size_bytes(self) -> int | None:
        """Size of one copy of all partitions, or None if it is unknown."""
        return total(each.size_bytes for each in self.partitions)

    @property
    def disk_bytes(self) -> int | None:
        """Size of all copies of all partitions, or None if it is unknown."""
        return total(each.disk_bytes for each in self.partitions)

    @property
    def replication_factor(self) -> int:
        """Replication factor of the first partition, as in kafka-topics."""
        if not self.partitions:
            return 0
        first = self.partitions[0]
        return len(first.replicas) - len(first.adding)


class Position(NamedTuple):
    """A group's committed offset for a partition. `end` is the end offset of the partition, or None."""

    topic: str
    partition: int
    committed: int
    end: int | None

    @property
    def lag(self) -> int | None:
        """Lag in records, as in kafka-consumer-groups, or None if it is unknown."""
        return records_behind(self.committed, self.end)


class Group(NamedTuple):
    """A group. `state` and `type` are "" if the broker is too old to report them. Only groups with the
    protocol type "consumer" have positions. `error` names a Kafka error code. Only groups of the types
    "consumer" and "share" have epochs: `target_epoch` is the epoch of the target assignment.
    """

    group_id: str
    state: str
    type: str
    protocol_type: str
    coordinator: int
    members: int | None = None
    positions: tuple[Position, ...] = ()
    error: str | None = None
    epoch: int | None = None
    target_epoch: int | None = None

    @property
    def lag(self) -> int | None:
        """Lag in records, or None if no offset is committed or the end of a partition is unknown."""
        return total_records(each.lag for each in self.positions)

    @property
    def worst(self) -> Position | None:
        """Position with the largest lag, or None if no lag is known."""
        return max(
            (each for each in self.positions if each.lag is not None),
            key=lambda each: each.lag or 0,
            default=None,
        )


class QuorumReplica(NamedTuple):
    """A voter or an observer of the metadata quorum, as its leader sees it."""

    node_id: int
    is_voter: bool
    lag: int
    """Records that the replica does not have yet."""
    fetched_before_ms: int | None
    """Time since the replica's last fetch, or None if it has not fetched."""


class Quorum(NamedTuple):
    """The metadata quorum. `error` is the reason why it is unknown, such as a missing leader."""

    leader_id: int | None = None
    epoch: int | None = None
    high_watermark: int | None = None
    replicas: tuple[QuorumReplica, ...] = ()
    error: str | None = None

    @property
    def voters(self) -> tuple[QuorumReplica, ...]:
        return tuple(each for each in self.replicas if each.is_voter)


class Migration(NamedTuple):
    """Brokers that are prepared for a migration. `target` is the store to which the metadata moves, or has
    moved: zookeeper or quorum, or None if it has not been set.
    """

    brokers: tuple[int, ...]
    target: str | None


class Snapshot(NamedTuple):
    """The state of a cluster. `taken_at_s` is a monotonic time for computing rates. With a metadata quorum
    (KRaft), Kafka's brokers do not report the controller. `unserved` contains (broker ID, name of a Kafka
    error code) for brokers that do not serve their groups. `missing` describes unknown data.
    """

    time_ms: int
    taken_at_s: float
    cluster_id: str | None
    is_kraft: bool
    controller_id: int | None
    brokers: tuple[Broker, ...]
    topics: tuple[Topic, ...]
    groups: tuple[Group, ...]
    log_dirs: tuple[LogDir, ...]
    unserved: tuple[tuple[int, str], ...] = ()
    missing: tuple[str, ...] = ()
    quorum: Quorum | None = None
    """The metadata quorum, or None with ZooKeeper, on standalone brokers, or without permission."""
    migration: Migration | None = None
    """The migration of the metadata for which brokers are prepared, or None."""


class Rates(NamedTuple):
    """Records per second written to each topic between two snapshots, except new and recreated topics."""

    by_topic: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.by_topic.values())


def total(values: Iterable[int | None]) -> int | None:
    """Return the sum of the known values, or None if all are unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def rates(before: Snapshot | None, now: Snapshot) -> Rates | None:
    """Return the rates between two snapshots, or None if there is no earlier snapshot."""
    if before is None or now.taken_at_s <= before.taken_at_s:
        return None
    seconds = now.taken_at_s - before.taken_at_s
    earlier, later = _ends(before), _ends(now)
    found: dict[str, float] = {}
    for place in later.keys() & earlier.keys():
        written = later[place] - earlier[place]
        if written >= 0:
            found[place[0]] = found.get(place[0], 0.0) + written / seconds
    return Rates(found)


def _ends(snapshot: Snapshot) -> dict[TopicPartition, int]:
    return {
        (topic.name, each.number): each.end
        for topic in snapshot.topics
        for each in topic.partitions
        if each.end is not None
    }
