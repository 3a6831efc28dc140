"""A share group (KIP-932). It has no offsets, and never changes its type. It is deleted only by a request,
because the share coordinator must delete the states of its share-partitions first.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Final

from kafka_compat.coordinator_runtime.machine import Now, Outbox, Waiter
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.requests import (
    UNKNOWN_MEMBER_ID,
    Commit,
    GroupType,
    Join,
    JoinResult,
    LeaveResult,
    Leaving,
    Sync,
    SyncResult,
    TopicPartition,
)
from kafka_compat.groups.share.heartbeat import ShareHeartbeat, ShareHeartbeatResult
from kafka_compat.groups.share.members import InitializeStates, ShareMembers
from kafka_compat.groups.share.offset_changes import (
    AlterStates,
    DeleteStates,
    NewOffsets,
    OffsetChanges,
    OffsetsResult,
)
from kafka_compat.groups.typed_group import GroupView
from kafka_compat.long_work import Steps

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.groups.records import Record

    Errors = Mapping[tuple[UUID, int], ErrorCode]


class ShareGroup:
    """A share group. `members` is the state machine of its members, and `state` what is stored of them."""

    __slots__ = ("_offset_changes", "_outbox", "members", "state")

    type: Final = GroupType.SHARE
    ends_with_deleted_offsets: Final = False
    ends_with_expired_offsets: Final = False

    def __init__(self, members: ShareMembers) -> None:
        self.members = members
        self.state = members.state
        self._offset_changes = OffsetChanges(members)
        self._outbox = members.outbox

    @property
    def exists(self) -> bool:
        return self.state.exists

    @property
    def is_empty(self) -> bool:
        return not self.state.members.current

    @property
    def is_gone(self) -> bool:
        return not self.state.exists and self.state.committed is None

    @property
    def view(self) -> GroupView | None:
        view = self.state.committed
        if view is None:
            return None
        return GroupView(GroupType.SHARE, GroupType.SHARE, view.state, view.members)

    # Requests of share groups

    def share_heartbeat(self, request: ShareHeartbeat, waiter: Waiter, now: Now) -> Steps[None]:
        """Process a ShareGroupHeartbeat request, in steps."""
        return self.members.heartbeat(request, waiter, now)

    def alter_offsets(self, topics: Sequence[NewOffsets], waiter: Waiter, now: Now) -> Steps[None]:
        """Process an AlterShareGroupOffsets request, which may create the group, in steps."""
        return self._offset_changes.alter(topics, waiter, now)

    def delete_offsets(self, names: Sequence[str], waiter: Waiter, now: Now) -> Steps[None]:
        """Process a DeleteShareGroupOffsets request, in steps."""
        return self._offset_changes.delete(names, waiter, now)

    def states_initialized(self, effect: InitializeStates | AlterStates, errors: "Errors", now: Now) -> None:
        """Store which states of share-partitions have been initialized."""
        if isinstance(effect, AlterStates):
            self._offset_changes.altered(effect, errors, now)
        else:
            error = next((each for each in errors.values() if each), ErrorCode.NONE)
            self.members.states_initialized(effect.partitions, error, now)

    def states_deleted(self, effect: DeleteStates, errors: "Errors", now: Now) -> None:
        """Complete a DeleteShareGroupOffsets request."""
        self._offset_changes.deleted(effect, errors, now)

    def has_states_of(self, topic_ids: "Collection[UUID]") -> bool:
        """Return whether there are states of share-partitions of any of these topics."""
        states = self.state.partition_states.current
        return states is not None and states.mentions_any(topic_ids)

    def topics_deleted(self, topic_ids: "Collection[UUID]", now: Now) -> None:
        """Forget the states of share-partitions of deleted topics."""
        self.members.topics_deleted(topic_ids, now)

    def topics_changed(self, names: frozenset[str]) -> None:
        """Compare the metadata hash with the next heartbeat, if members subscribe to any of these topics."""
        if not names.isdisjoint(self.state.subscribers):
            self.members.topics_changed()

    # Requests of other types of groups

    def join(self, request: Join, waiter: Waiter, now: Now) -> Steps[None]:
        """Reject a JoinGroup request."""
        yield from ()
        self._outbox.respond(waiter, JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID))

    def sync(self, request: Sync, waiter: Waiter, now: Now) -> None:
        """Reject a SyncGroup request."""
        self._outbox.respond(waiter, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))

    def heartbeat(
        self, generation_id: int, member_id: str, group_instance_id: str | None, now: Now
    ) -> ErrorCode:
        """Reject a Heartbeat request."""
        return ErrorCode.UNKNOWN_MEMBER_ID

    def leave(self, leaving: Iterable[Leaving], waiter: Waiter, now: Now) -> None:
        """Respond to a LeaveGroup request that its members are unknown."""
        unknown = tuple((each, ErrorCode.UNKNOWN_MEMBER_ID) for each in leaving)
        self._outbox.respond(waiter, LeaveResult(ErrorCode.NONE, unknown))

    def consumer_heartbeat(self, request: Heartbeat, waiter: Waiter, now: Now) -> Steps[None]:
        """Reject a ConsumerGroupHeartbeat request."""
        yield from ()
        message = f"The group {self.members.group_id} is not a consumer group"
        self._outbox.respond(waiter, HeartbeatResult(ErrorCode.GROUP_ID_NOT_FOUND, message))

    # Offsets, which share groups do not have

    def commit_error(self, request: Commit, partitions: Collection[TopicPartition], now: Now) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    @property
    def offset_deletion_error(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def subscribed(self, topics: set[str]) -> Set[str]:
        return frozenset()

    def expired_offsets(self, now: Now) -> list[TopicPartition]:
        return []

    # The group in the log, and time

    def begin_deletion(self, waiter: Waiter, now: Now) -> bool:
        """Begin to delete the states of all share-partitions. Return False if the group has none."""
        return self._offset_changes.begin_group_deletion(waiter, now)

    def tombstones(self) -> "list[Record]":
        """Return the records that delete the group, in the order that Kafka needs to replay them."""
        return self.members.tombstones()

    def loaded(self, now: Now) -> None:
        """Start the sessions of all members."""
        self.members.loaded(now)

    def write_failed(self, now: Now) -> None:
        """Continue with the stored state."""
        self.members.write_failed(now)

    def tick(self, now: Now) -> None:
        """Process the earliest deadline, if it has passed."""
        timer = self.members.timers.take_due(now.timer_ms)
        if timer is not None:
            self.members.timer_over(timer)


class NotAShareGroup:
    """A group of another type, for requests of share groups. It rejects them."""

    __slots__ = ("_message", "_outbox")

    def __init__(self, group_id: str, outbox: Outbox) -> None:
        self._message = f"Group {group_id} is not a share group."
        self._outbox = outbox

    def share_heartbeat(self, request: ShareHeartbeat, waiter: Waiter, now: Now) -> Steps[None]:
        """Reject a ShareGroupHeartbeat request."""
        yield from ()
        result = ShareHeartbeatResult(ErrorCode.GROUP_ID_NOT_FOUND, self._message)
        self._outbox.respond(waiter, result)

    def alter_offsets(self, topics: Sequence[NewOffsets], waiter: Waiter, now: Now) -> Steps[None]:
        """Reject an AlterShareGroupOffsets request."""
        return self._reject(waiter)

    def delete_offsets(self, names: Sequence[str], waiter: Waiter, now: Now) -> Steps[None]:
        """Reject a DeleteShareGroupOffsets request."""
        return self._reject(waiter)

    def _reject(self, waiter: Waiter) -> Steps[None]:
        yield from ()
        self._outbox.respond(waiter, OffsetsResult(ErrorCode.GROUP_ID_NOT_FOUND, self._message))
