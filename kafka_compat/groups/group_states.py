"""What goes into a group's machine and what comes out of it: plain values, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kafka_compat.coordinator_runtime.coordinator_log import TransactionalProducer
from kafka_compat.coordinator_runtime.machine import Waiter
from kafka_compat.errors import ErrorCode

TopicPartition = tuple[str, int]
Protocols = tuple[tuple[str, bytes], ...]
"""Assignors in the member's order of preference, each with its metadata (the serialized subscription)."""

UNKNOWN_MEMBER_ID = ""
NO_GENERATION = -1
CONSUMER_PROTOCOL_TYPE = "consumer"


class GroupState(StrEnum):
    """The states of a classic group, by the names that ListGroups and DescribeGroups show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Broker settings that groups obey, under Kafka's names and defaults."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2_147_483_647
    group_initial_rebalance_delay_ms: int = 3_000
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000


@dataclass(slots=True, kw_only=True)
class Member:
    """One member as the group knows it. `is_new` until its first rebalance has completed. Its assignment is
    what the log holds for it.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    is_new: bool = False

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


# Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """JoinGroup. The last two fields follow from the request's version (KIP-394, KIP-814)."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """SyncGroup. The protocol fields are None where the version has none; assignments come from the leader
    only.
    """

    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """One member of a LeaveGroup; a static member may be named by its instance id alone (KIP-345)."""

    member_id: str
    group_instance_id: str | None
    reason: str


class OffsetAndMetadata(NamedTuple):
    """A committed position. Epoch and expiry are -1 where the client gave none."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """OffsetCommit of partitions that exist, or with a producer TxnOffsetCommit. A group-less ("simple")
    commit has generation -1 and no member id.
    """

    generation_id: int
    member_id: str
    group_instance_id: str | None
    offsets: dict[TopicPartition, OffsetAndMetadata]
    producer: TransactionalProducer | None = None


# Answers


class JoinedMember(NamedTuple):
    """What the leader learns of a member."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinResult:
    error: ErrorCode
    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = UNKNOWN_MEMBER_ID
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveResult:
    """One error per member of the request, in its order."""

    error: ErrorCode
    members: tuple[tuple[Leaving, ErrorCode], ...] = ()


PartitionErrors = dict[TopicPartition, ErrorCode]
"""The answer to OffsetCommit and OffsetDelete."""

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


class GroupOverview(NamedTuple):
    group_id: str
    protocol_type: str
    state: GroupState


# Records of __consumer_offsets


class MemberSnapshot(NamedTuple):
    """A member as it is stored: only the metadata of the chosen protocol survives a restart, as in Kafka."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupSnapshot(NamedTuple):
    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_timestamp_ms: int
    members: tuple[MemberSnapshot, ...]


class GroupRecord(NamedTuple):
    """A group's membership after a rebalance; None deletes the group."""

    group_id: str
    value: GroupSnapshot | None

    @property
    def machine_key(self) -> str:
        return self.group_id


class OffsetRecord(NamedTuple):
    """One committed offset; None deletes it."""

    group_id: str
    topic: str
    partition: int
    value: OffsetAndMetadata | None

    @property
    def machine_key(self) -> str:
        return self.group_id


Record = GroupRecord | OffsetRecord


# What is told to the machine when its records are committed


class AssignmentStored(NamedTuple):
    """The leader's assignment for a generation."""

    generation_id: int


class StaticMemberStored(NamedTuple):
    """A restarted static member has taken the place of its former self; `former` undoes it."""

    member_id: str
    former: Member
    former_leader_id: str | None
    skips_assignment: bool


class EmptyGroupStored(NamedTuple):
    """The group's last member is gone; nobody waits for this."""


class OffsetsStored(NamedTuple):
    """`errors` is the answer of a commit, but for the `partitions` that were written."""

    waiter: Waiter
    partitions: tuple[TopicPartition, ...]
    errors: PartitionErrors
    producer: TransactionalProducer | None


class TombstonesStored(NamedTuple):
    """Offsets were deleted, and with `whole_group` the group as well.

    `answer` goes to `waiter` when this succeeded; there is no waiter when offsets expired.
    """

    whole_group: bool
    waiter: Waiter | None
    answer: PartitionErrors | ErrorCode


Purpose = AssignmentStored | StaticMemberStored | EmptyGroupStored | OffsetsStored | TombstonesStored
