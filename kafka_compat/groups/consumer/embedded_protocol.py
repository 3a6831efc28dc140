"""The consumer protocol that is embedded in JoinGroup and SyncGroup: subscriptions and assignments.

The broker reads and writes it for classic members of consumer groups, and to convert groups (KIP-848).
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple, TypeVar

from kafka_compat.protocol.codec import MalformedRequest, decode, encode_versioned
from kafka_compat.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

_NEWEST_VERSION: Final = 3
M = TypeVar("M")

NamedPartitions = Mapping[str, Collection[int]]
"""Maps topic names to partitions."""


class Subscription(NamedTuple):
    """The topics of a member, the partitions that it owns, and its rack (empty: none)."""

    topics: tuple[str, ...]
    owned: NamedPartitions
    rack_id: str


class EmbeddedAssignment(NamedTuple):
    """The partitions of a member, and the data of a custom assignor (empty: none)."""

    partitions: NamedPartitions
    user_data: bytes


def read_subscription(metadata: bytes) -> Subscription:
    """Decode the metadata of a protocol in JoinGroup. Raises MalformedRequest."""
    found = _read(ConsumerProtocolSubscription, metadata)
    return Subscription(
        tuple(sorted(set(found.topics))),
        {each.topic: each.partitions for each in found.owned_partitions},
        found.rack_id or "",
    )


def read_assignment(assignment: bytes) -> EmbeddedAssignment:
    """Decode the assignment of a member. Raises MalformedRequest."""
    if not assignment:
        return EmbeddedAssignment({}, b"")
    found = _read(ConsumerProtocolAssignment, assignment)
    partitions = {each.topic: each.partitions for each in found.assigned_partitions}
    return EmbeddedAssignment(partitions, bytes(found.user_data or b""))


def encode_assignment(partitions: NamedPartitions, metadata: bytes) -> bytes:
    """Encode an assignment in the version of the member's metadata."""
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=list(numbers))
            for topic, numbers in partitions.items()
        ]
    )
    return encode_versioned(assignment, _version(metadata))


def _read(cls: type[M], data: bytes) -> M:
    return decode(cls, _version(data), data, 2)


def _version(data: bytes) -> int:
    """Return the version of the data. Newer versions begin with the fields of the newest known version."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        raise MalformedRequest("The consumer protocol has no valid version")
    return min(version, _NEWEST_VERSION)
