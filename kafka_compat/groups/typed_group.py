"""Interface of a group of one type. Classic groups, consumer groups and share groups implement it.

The state machine of a group (`group.py`) passes each event to the group of its current type.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from kafka_compat.coordinator_runtime.machine import Now, Waiter
    from kafka_compat.errors import ErrorCode
    from kafka_compat.groups.consumer.heartbeat import Heartbeat
    from kafka_compat.groups.records import Record
    from kafka_compat.groups.requests import Commit, GroupType, Join, Leaving, Sync, TopicPartition
    from kafka_compat.long_work import Steps


class KnownMember(Protocol):
    """A member of a group of any type."""

    @property
    def member_id(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...


class GroupView(NamedTuple):
    """A group as clients see it. `members` maps member IDs to members. It is a live view."""

    type: "GroupType"
    protocol_type: str
    state: str
    members: Mapping[str, KnownMember]


class TypedGroup(Protocol):
    """The members of one group, and what its type decides about its offsets.

    Requests add their effects to the group's outbox. Requests of the protocol of another type are rejected,
    or convert the group.
    """

    @property
    def type(self) -> "GroupType": ...

    @property
    def exists(self) -> bool:
        """Whether the current state contains a group of this type."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    @property
    def is_gone(self) -> bool:
        """Whether neither the current nor the committed state contains a group of this type."""

    @property
    def view(self) -> GroupView | None:
        """The group as clients see it, or None if the committed state contains no group of this type."""

    def join(self, request: "Join", waiter: "Waiter", now: "Now") -> "Steps[None]":
        """Process a JoinGroup request, in steps."""

    def sync(self, request: "Sync", waiter: "Waiter", now: "Now") -> None:
        """Process a SyncGroup request."""

    def heartbeat(
        self, generation_id: int, member_id: str, group_instance_id: str | None, now: "Now"
    ) -> "ErrorCode":
        """Process a Heartbeat request of the classic protocol, and return the error code."""

    def leave(self, leaving: "Iterable[Leaving]", waiter: "Waiter", now: "Now") -> None:
        """Process a LeaveGroup request."""

    def consumer_heartbeat(self, request: "Heartbeat", waiter: "Waiter", now: "Now") -> "Steps[None]":
        """Process a ConsumerGroupHeartbeat request (KIP-848), in steps."""

    def commit_error(
        self, request: "Commit", partitions: "Collection[TopicPartition]", now: "Now"
    ) -> "ErrorCode":
        """Return NONE if offsets for these partitions may be committed, or an error code. OffsetCommit also
        counts as a heartbeat of a classic member.
        """

    @property
    def offset_deletion_error(self) -> "ErrorCode":
        """NONE if offsets may be deleted while the group exists, or an error code."""

    def subscribed(self, topics: set[str]) -> Set[str]:
        """Return those of the topics to which members subscribe."""

    def expired_offsets(self, now: "Now") -> "list[TopicPartition]":
        """Return the partitions whose offsets have expired (offsets.retention.minutes)."""

    @property
    def ends_with_deleted_offsets(self) -> bool:
        """Whether the group is deleted with its last offset, if it has no members."""

    @property
    def ends_with_expired_offsets(self) -> bool:
        """Whether the group is deleted when its last offset expires, if it has no members."""

    def begin_deletion(self, waiter: "Waiter", now: "Now") -> bool:
        """Begin to delete what belongs to the group outside of its log. Return False if there is nothing."""

    def tombstones(self) -> "list[Record]":
        """Return the records that delete the group, in the order that Kafka needs to replay them."""

    def loaded(self, now: "Now") -> None:
        """Start the group, after all its records have been replayed."""

    def write_failed(self, now: "Now") -> None:
        """Continue with the stored state, because members could not be stored."""

    def tick(self, now: "Now") -> None:
        """Process the deadlines that have passed. At most one leads to a write."""
