"""Group requests and their responses, as plain values."""

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.coordinator_runtime.coordinator_log import TransactionalProducer
from kafka_compat.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

TopicPartition = tuple[str, int]
EncodedRecord = tuple[bytes, bytes | None]
"""Key and value of a record."""
Protocols = tuple[tuple[str, bytes], ...]
"""Assignors in the member's order of preference, each with its metadata (the serialized subscription)."""

UNKNOWN_MEMBER_ID = ""
NO_GENERATION = -1
CONSUMER_PROTOCOL_TYPE = "consumer"


class GroupState(StrEnum):
    """States of a classic group. The values are their names in ListGroups and DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Join(NamedTuple):
    """A JoinGroup request. The last two fields depend on its version (KIP-394, KIP-814)."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str
    requires_known_member_id: bool
    supports_skipping_assignment: bool


class Sync(NamedTuple):
    """A SyncGroup request. The protocol fields are None in versions that lack them. Only the leader sends
    assignments.
    """

    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


class Leaving(NamedTuple):
    """A member in a LeaveGroup request. A static member may have only an instance ID (KIP-345)."""

    member_id: str
    group_instance_id: str | None
    reason: str


class OffsetAndMetadata(NamedTuple):
    """An offset to commit. The epoch and the expiry are -1 if the client did not send them. `topic_id` is the
    ID of the topic when the offset was committed, or None if the offset was stored without it.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: "UUID | None" = None


class Commit(NamedTuple):
    """An OffsetCommit request, or a TxnOffsetCommit request if `producer` is set. All its partitions exist. A
    commit without a group ("simple" commit) has generation -1 and no member ID.
    """

    generation_id: int
    member_id: str
    group_instance_id: str | None
    offsets: dict[TopicPartition, OffsetAndMetadata]
    producer: TransactionalProducer | None = None
    has_member_epochs: bool = True
    """Whether the version of the request may contain a member epoch as the generation (KIP-848)."""
    missing_group_error: ErrorCode = ErrorCode.GROUP_ID_NOT_FOUND
    """The error code if the group does not exist and the generation is not -1."""
    encoded: "Mapping[TopicPartition, EncodedRecord] | None" = None
    """The records of the offsets, if the coordinator has already encoded them."""


class JoinedMember(NamedTuple):
    """A member, as described to the leader in the JoinGroup response."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    error: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = UNKNOWN_MEMBER_ID
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


class SyncResult(NamedTuple):
    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class LeaveResult(NamedTuple):
    """An error code for a LeaveGroup request, and one for each member in it, in the request's order."""

    error: ErrorCode
    members: tuple[tuple[Leaving, ErrorCode], ...] = ()


PartitionErrors = dict[TopicPartition, ErrorCode]
"""An error code for each partition in an OffsetCommit or OffsetDelete request."""

Result = JoinResult | SyncResult | LeaveResult | PartitionErrors | ErrorCode


class MemberDescription(NamedTuple):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class GroupDescription(NamedTuple):
    state: GroupState
    protocol_type: str
    protocol_name: str
    members: tuple[MemberDescription, ...]


class GroupType(StrEnum):
    """Types of groups. The values are their names in ListGroups."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"


class GroupOverview(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    type: GroupType
