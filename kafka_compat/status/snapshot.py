"""Data classes for the state of a cluster at one moment.

None means unknown: the broker does not respond, is too old, or does not authorize this user.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Self

from kafka_compat.client.partitions import TopicPartition
from kafka_compat.errors import known_code
from kafka_compat.lag import records_behind, total_records


class Broker(NamedTuple):
    """A broker. One that only replicas name has no address. `release` is the newest Kafka whose APIs it has;
    `fault` says why it counts as not up.
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
    def address(self) -> str | None:
        """`host:port`."""
        return None if self.host is None else f"{self.host}:{self.port}"


class LogDir(NamedTuple):
    """A log directory of a broker. Bytes of the volume are those of KIP-827; `error` is a name of Kafka's."""

    broker_id: int
    path: str
    replicas: int
    replica_bytes: int
    total_bytes: int | None = None
    usable_bytes: int | None = None
    error: str | None = None

    @property
    def usable_share(self) -> float | None:
        """The usable part of the volume, from 0 to 1; None where it is unknown."""
        if not self.total_bytes or self.usable_bytes is None:
            return None
        return self.usable_bytes / self.total_bytes

    @classmethod
    def of(cls, broker_id: int, result: Any) -> Self:
        """As a response of DescribeLogDirs has it."""
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
    """A partition. `adding` are replicas that a reassignment brings (KIP-455). `start` and `end` are offsets;
    `size_bytes` is that of the leader's log, `disk_bytes` that of all replicas.
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
        """As kafka-topics counts: replicas that a reassignment has yet to fill are not missing."""
        return len(self.isr) < len(self.replicas) - len(self.adding)

    @property
    def records(self) -> int | None:
        """Offsets between both ends: of compacted topics and transactions more than there are records."""
        return None if self.start is None or self.end is None else self.end - self.start

    def is_under_min_isr(self, min_isr: int | None) -> bool:
        """As kafka-topics counts: also while it has no leader."""
        return self.leader is None or (min_isr is not None and len(self.isr) < min_isr)


class Topic(NamedTuple):
    """A topic. `min_isr` is its min.insync.replicas."""

    name: str
    is_internal: bool
    min_isr: int | None
    partitions: tuple[Partition, ...]

    @property
    def offline(self) -> list[Partition]:
        """Those without a leader."""
        return [each for each in self.partitions if each.leader is None]

    @property
    def under_replicated(self) -> list[Partition]:
        return [each for each in self.partitions if each.is_under_replicated]

    @property
    def under_min_isr(self) -> list[Partition]:
        return [each for each in self.partitions if each.is_under_min_isr(self.min_isr)]

    @property
    def records(self) -> int | None:
        """Of the partitions that tell."""
        return total(each.records for each in self.partitions)

    @property
    def size_bytes(self) -> int | None:
        """Of one copy."""
        return total(each.size_bytes for each in self.partitions)

    @property
    def disk_bytes(self) -> int | None:
        """Of all copies."""
        return total(each.disk_bytes for each in self.partitions)

    @property
    def replication_factor(self) -> int:
        """That of its first partition, as kafka-topics tells it."""
        if not self.partitions:
            return 0
        first = self.partitions[0]
        return len(first.replicas) - len(first.adding)


class Position(NamedTuple):
    """Where a group is in a partition. `end` is None while the partition does not tell it."""

    topic: str
    partition: int
    committed: int
    end: int | None

    @property
    def lag(self) -> int | None:
        """Records that the group has yet to commit, as kafka-consumer-groups tells it."""
        return records_behind(self.committed, self.end)


class Group(NamedTuple):
    """A group. State and type are "" where the broker is too old to tell; those of other protocol types than
    "consumer" have no positions. `error` is a name of Kafka's.
    """

    group_id: str
    state: str
    type: str
    protocol_type: str
    coordinator: int
    members: int | None = None
    positions: tuple[Position, ...] = ()
    error: str | None = None

    @property
    def lag(self) -> int | None:
        """In records; None where the group has committed nothing, or the end of a partition is unknown."""
        return total_records(each.lag for each in self.positions)

    @property
    def worst(self) -> Position | None:
        """The partition with most lag."""
        return max(
            (each for each in self.positions if each.lag is not None),
            key=lambda each: each.lag or 0,
            default=None,
        )


class Snapshot(NamedTuple):
    """All of it. `taken_at_s` is of a clock that never jumps, for rates. `is_kraft`: the controllers are a
    quorum, of which brokers name none. `unserved` are brokers that do not serve their groups, with Kafka's
    name of the error; `missing` says in words what is unknown.
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


class Rates(NamedTuple):
    """Records per second of topics since another snapshot; topics that are new, or began anew, have none."""

    by_topic: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.by_topic.values())


def total(values: Iterable[int | None]) -> int | None:
    """The sum of the known values; None where there is none."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def rates(before: Snapshot | None, now: Snapshot) -> Rates | None:
    """What was written between two snapshots; None without an earlier one."""
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
