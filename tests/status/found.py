"""Snapshots as tests need them, without a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_compat.status.snapshot import (
    Broker,
    Group,
    LogDir,
    Migration,
    Partition,
    Position,
    Quorum,
    Snapshot,
    Topic,
)

GIB = 1 << 30


def partition(
    number: int = 0,
    leader: int | None = 1,
    replicas: Sequence[int] = (1,),
    isr: Sequence[int] | None = None,
    end: int = 10,
    adding: Sequence[int] = (),
) -> Partition:
    """In sync, unless said otherwise."""
    in_sync = tuple(replicas if isr is None else isr)
    return Partition(
        number, leader, tuple(replicas), in_sync, tuple(adding), 0, end, 100, 100 * len(replicas)
    )


def topic(name: str, *partitions: Partition, min_isr: int = 1) -> Topic:
    return Topic(name, False, min_isr, partitions or (partition(),))


def group(name: str, lag: int = 0, state: str = "Stable", error: str | None = None) -> Group:
    """With a member that has committed offset 100 of orders-0."""
    return Group(name, state, "classic", "consumer", 1, 1, (Position("orders", 0, 100, 100 + lag),), error)


def log_dir(
    path: str = "/data", usable_bytes: int | None = 50 * GIB, error: str | None = None, broker_id: int = 1
) -> LogDir:
    return LogDir(broker_id, path, 3, 1234, 100 * GIB, usable_bytes, error)


def snapshot(
    topics: Sequence[Topic] = (),
    groups: Sequence[Group] = (),
    log_dirs: Sequence[LogDir] = (),
    brokers: Sequence[Broker] | None = None,
    *,
    controller_id: int | None = 1,
    taken_at_s: float = 100.0,
    is_kraft: bool = False,
    unserved: Sequence[tuple[int, str]] = (),
    missing: Sequence[str] = (),
    quorum: Quorum | None = None,
    migration: Migration | None = None,
) -> Snapshot:
    """Of broker 1 alone, unless said otherwise; of Friday, 13 February 2009, 23:31:30 UTC."""
    return Snapshot(
        time_ms=1234567890000,
        taken_at_s=taken_at_s,
        cluster_id="cluster-of-tests",
        is_kraft=is_kraft,
        controller_id=controller_id,
        brokers=(up(1),) if brokers is None else tuple(brokers),
        topics=tuple(topics),
        groups=tuple(groups),
        log_dirs=tuple(log_dirs),
        unserved=tuple(unserved),
        missing=tuple(missing),
        quorum=quorum,
        migration=migration,
    )


def up(broker_id: int) -> Broker:
    return Broker(broker_id, "127.0.0.1", 9090 + broker_id, "rack-a", "3.9")


def away(broker_id: int) -> Broker:
    return Broker(broker_id, fault="it is not in the cluster")
