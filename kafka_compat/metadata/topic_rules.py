"""Validation of new topics and added partitions: names, numbers of partitions, replicas and settings. No I/O.

Each rejection is a KafkaError with the error code and message for the client.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_compat.config import (
    BrokerConfig,
    ConfigError,
    ConflictingTopicConfig,
    UnknownTopicConfig,
    check_topic_config,
)
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata.assignment import assign_replicas
from kafka_compat.metadata.topic_names import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    check_topic_name,
    collision_key,
    may_collide,
)

if TYPE_CHECKING:
    from kafka_compat.metadata.cache import BrokerMetadata, MetadataCache

DEFAULT = -1
"""Stands for the broker's default number of partitions or replication factor (KIP-464)."""

CHANGE_TIMEOUT_MS = 15_000
"""Time in milliseconds after which a change by the controller times out with REQUEST_TIMED_OUT."""


_PREFIXES = {
    OFFSETS_TOPIC: "offsets.topic",
    TRANSACTIONS_TOPIC: "transaction.state.log",
    SHARE_STATE_TOPIC: "share.coordinator.state.topic",
}
"""Maps each internal topic to the prefix of the broker's settings for it."""


class InternalTopic:
    """Partition count, replication factor and settings of an internal topic."""

    def __init__(self, partitions: int, replication_factor: int, configs: Mapping[str, str]) -> None:
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.configs = configs


def internal_topic(config: BrokerConfig, name: str, broker_count: int) -> InternalTopic:
    """Return the definition of an internal topic, with the configured replication factor, but at most
    `broker_count`.
    """
    prefix = _PREFIXES[name]
    return InternalTopic(
        config.int(f"{prefix}.num.partitions"),
        config.internal_replication_factor(f"{prefix}.replication.factor", broker_count),
        internal_configs(config, name),
    )


def has_internal_replication_factor(config: BrokerConfig, name: str) -> bool:
    """Return whether the replication factor of an internal topic was configured."""
    return config.is_set(f"{_PREFIXES[name]}.replication.factor")


def internal_configs(config: BrokerConfig, name: str) -> Mapping[str, str]:
    """Return the settings of an internal topic, or an empty mapping for any other topic."""
    if name == TRANSACTIONS_TOPIC:
        return {
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "segment.bytes": str(config.int("transaction.state.log.segment.bytes")),
            "min.insync.replicas": str(config.int("transaction.state.log.min.isr")),
            "unclean.leader.election.enable": "false",
        }
    if name == SHARE_STATE_TOPIC:
        return {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "segment.bytes": str(config.int("share.coordinator.state.topic.segment.bytes")),
            "min.insync.replicas": str(config.int("share.coordinator.state.topic.min.isr")),
            "retention.ms": "-1",
        }
    if name != OFFSETS_TOPIC:
        return {}
    return {
        "compression.type": "producer",
        "cleanup.policy": "compact",
        "segment.bytes": str(config.int("offsets.topic.segment.bytes")),
    }


def check_new_name(name: str, metadata: MetadataCache, written: Collection[str] = ()) -> None:
    """Raise KafkaError unless a name is valid and unused, and its metric names do not collide with those of
    an existing topic or a topic in `written`.
    """
    check_topic_name(name)
    if name in metadata.topics or name in written:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = metadata.colliding(name)
    if other is None and may_collide(name):
        key = collision_key(name)
        other = next((topic for topic in written if collision_key(topic) == key), None)
    if other is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topics: {other}"
        )


def check_configs(config: BrokerConfig, configs: Mapping[str, str]) -> None:
    """Raise KafkaError unless these settings exist, are valid, and do not contradict each other."""
    try:
        check_topic_config(config, configs)
    except (ConfigError, UnknownTopicConfig, ConflictingTopicConfig) as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error


Charge = Callable[[int], None]
"""A function that is called with the number of partitions to create. Raises KafkaError if they would exceed
the client's quota (KIP-599).
"""


def replicas_for(
    config: BrokerConfig,
    brokers: Mapping[int, BrokerMetadata],
    partitions: int,
    replication_factor: int,
    assignments: Mapping[int, Sequence[int]] | None,
    *,
    may_be_away: bool = False,
) -> dict[int, tuple[int, ...]]:
    """Return the replicas for each partition of a new topic: as assigned, or spread over brokers and racks.

    With `may_be_away`, an assignment may contain offline brokers, as in Kafka with ZooKeeper.
    """
    if assignments is not None:
        _check_assignments(assignments, None if may_be_away else brokers)
        return {index: tuple(assignments[index]) for index in sorted(assignments)}
    if partitions == DEFAULT:
        partitions = config.int("num.partitions")
    if replication_factor == DEFAULT:
        replication_factor = config.int("default.replication.factor")
    if partitions <= 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    return dict(
        enumerate(assign_replicas(_racks(brokers, replication_factor), partitions, replication_factor))
    )


def _racks(brokers: Mapping[int, BrokerMetadata], replication_factor: int) -> dict[int, str | None]:
    """Return each broker's rack. Raises KafkaError for too few brokers, or if only some have a rack."""
    if replication_factor > len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}.",
        )
    racks = {broker_id: broker.rack for broker_id, broker in brokers.items()}
    if None in racks.values() and any(racks.values()):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        )
    return racks


def added_replicas(
    present: Sequence[tuple[int, ...]],
    count: int,
    assignments: Sequence[Sequence[int]] | None,
    brokers: Mapping[int, BrokerMetadata],
) -> dict[int, tuple[int, ...]]:
    """Return the replicas of the partitions that extend a topic to `count`. `present` contains the replicas
    of its existing partitions.
    """
    added = count - len(present)
    if added == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partitions.")
    if added < 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {len(present)} partitions, which is higher than the requested {count}.",
        )
    if assignments is None:
        start = next((place for place, broker in enumerate(sorted(brokers)) if broker >= present[0][0]), 0)
        racks = _racks(brokers, len(present[0]))
        new = assign_replicas(
            racks, added, len(present[0]), start=start, shift=start, first_partition=len(present)
        )
    else:
        _check_added(present, added, assignments, brokers)
        new = [tuple(replicas) for replicas in assignments]
    return dict(enumerate(new, len(present)))


def _check_added(
    present: Sequence[tuple[int, ...]],
    added: int,
    assignments: Sequence[Sequence[int]],
    brokers: Collection[int],
) -> None:
    def refuse(problem: str) -> KafkaError:
        return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)

    unknown = sorted({replica for replicas in assignments for replica in replicas} - set(brokers))
    if unknown:
        raise refuse(f"Unknown broker(s) in replica assignment: {_listed(unknown)}.")
    if len(assignments) != added:
        raise refuse(
            f"Increasing the number of partitions by {added} but {len(assignments)} assignments provided."
        )
    for index, replicas in enumerate(assignments, len(present)):
        if not replicas:
            raise refuse(f"Cannot have replication factor of 0 for partition id {index}.")
        if len(set(replicas)) != len(replicas):
            raise refuse(
                f"Duplicate brokers not allowed in replica assignment: {_listed(replicas)} "
                f"for partition id {index}."
            )
    wanted = len(present[0])
    sizes = {
        index: len(replicas)
        for index, replicas in enumerate(assignments, len(present))
        if len(replicas) != wanted
    }
    if sizes:
        raise refuse(
            f"Inconsistent replication factor between partitions, partition 0 has {wanted} while partitions "
            f"[{_listed(sizes)}] have replication factors [{_listed(sizes.values())}], respectively."
        )


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _check_assignments(assignments: Mapping[int, Sequence[int]], brokers: Collection[int] | None) -> None:
    if sorted(assignments) != list(range(len(assignments))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    if not all(assignments.values()):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The manual partition assignment includes an empty replica list.",
        )
    if len({len(replicas) for replicas in assignments.values()}) != 1:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "All partitions should have the same number of replicas"
        )
    for index, replicas in assignments.items():
        if len(set(replicas)) != len(replicas):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Duplicate replica assignment found: {index}"
            )
        unknown = [replica for replica in replicas if brokers is not None and replica not in brokers]
        if unknown:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes broker {unknown[0]}, "
                "but no such broker is registered.",
            )
