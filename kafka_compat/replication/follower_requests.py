"""Requests from a follower to its leader: Fetch and ListOffsets. No I/O."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kafka_compat.protocol.buffers import uuid_from
from kafka_compat.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kafka_compat.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_compat.replication.fetch_session import PartitionKey
from kafka_compat.replication.followed_partition import FollowedPartition, State
from kafka_compat.replication.follower_session import Wanted

FETCH_VERSION: Final = 17
"""The Fetch version of Kafka 3.9."""
FETCH_VERSION_WITH_NAMES: Final = 12
"""The last Fetch version with topic names, for brokers before Kafka 3.1, and for topics that were created
before Kafka 2.8 and have no ID.
"""
LIST_OFFSETS_VERSION: Final = 9
"""The ListOffsets version of Kafka 3.9."""
_LATEST: Final = -1
_EARLIEST: Final = -2


@dataclass(frozen=True, slots=True)
class SentFetch:
    """A pending Fetch request."""

    request: FetchRequest
    version: int
    asked: dict[PartitionKey, tuple[FollowedPartition, int]]
    """The requested partitions, with their fetch offsets."""


@dataclass(frozen=True, slots=True)
class SentLookup:
    """A pending ListOffsets request."""

    request: ListOffsetsRequest
    asked: dict[tuple[str, int], FollowedPartition]


def topics_named(named: Mapping[PartitionKey, Wanted], partition_max_bytes: int) -> list[FetchTopic]:
    """Group the partitions to fetch by topic, for a Fetch request."""
    topics: dict[str | int, FetchTopic] = {}
    for (name, index), item in named.items():
        topic = topics.get(name)
        if topic is None:
            topic = FetchTopic(topic=name) if isinstance(name, str) else FetchTopic(topic_id=_id(name))
            topics[name] = topic
        topic.partitions.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=item.leader_epoch,
                fetch_offset=item.fetch_offset,
                last_fetched_epoch=item.last_fetched_epoch,
                log_start_offset=item.log_start_offset,
                partition_max_bytes=partition_max_bytes,
            )
        )
    return list(topics.values())


def topics_forgotten(keys: Iterable[PartitionKey]) -> list[ForgottenTopic]:
    """Group the partitions to remove from the session by topic, for a Fetch request."""
    topics: dict[str | int, ForgottenTopic] = {}
    for name, index in keys:
        topic = topics.get(name)
        if topic is None:
            topic = (
                ForgottenTopic(topic=name) if isinstance(name, str) else ForgottenTopic(topic_id=_id(name))
            )
            topics[name] = topic
        topic.partitions.append(index)
    return list(topics.values())


def lookup_request(replica_id: int, items: Iterable[FollowedPartition]) -> ListOffsetsRequest:
    """Build a request for the leader's log end or log start offsets, depending on the partitions' states."""
    topics: dict[str, ListOffsetsTopic] = {}
    for item in items:
        name = item.partition.topic
        topics.setdefault(name, ListOffsetsTopic(name=name)).partitions.append(
            ListOffsetsPartition(
                partition_index=item.partition.partition,
                current_leader_epoch=item.leader_epoch,
                timestamp=_LATEST if item.state is State.END else _EARLIEST,
            )
        )
    return ListOffsetsRequest(replica_id=replica_id, topics=list(topics.values()))


def _id(number: int) -> UUID:
    return uuid_from(number.to_bytes(16, "big"))
