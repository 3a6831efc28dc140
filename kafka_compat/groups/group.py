"""State machine of one group: its members, and its offsets.

The members belong to a group of one type, which is an object of its own (`typed_group.py`): a classic, a
consumer or a share group. This machine passes each event to the group of the current type, and stores
the offsets.

Rules
- The type changes only when a record is replayed. A group without records is a classic group. A group without
  members may become a group of another type, except a share group.
- Offsets become visible when their records are committed. A deletion writes tombstones, and its response is
  sent when they are committed; an offset that was stored in the meantime is kept.
- A group without members and offsets is deleted when its last offset expires, or by a DeleteGroups request.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_compat.coordinator_runtime.coordinator_log import (
    is_committed,
)
from kafka_compat.coordinator_runtime.machine import Now, Output, Waiter
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.classic.classic_group import ClassicGroup
from kafka_compat.groups.classic.joining import Joining
from kafka_compat.groups.classic.rebalance import Rebalance
from kafka_compat.groups.classic.records import GroupRecord
from kafka_compat.groups.commits import Commits, OffsetsStored
from kafka_compat.groups.consumer.consumer_group import ConsumerGroup, ConsumerGroupReplaced
from kafka_compat.groups.consumer.convertible import Convertible
from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
from kafka_compat.groups.consumer.heartbeat import Heartbeat
from kafka_compat.groups.consumer.member import JOIN_EPOCH
from kafka_compat.groups.consumer.state import View
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.deletions import Deletions, TombstonesStored
from kafka_compat.groups.member_writes import MembersStored
from kafka_compat.groups.offsets import GroupOffsets
from kafka_compat.groups.records import OffsetRecord, Record
from kafka_compat.groups.requests import (
    Commit,
    GroupOverview,
    GroupType,
    Join,
    Leaving,
    OffsetAndMetadata,
    PartitionErrors,
    Sync,
    TopicPartition,
)
from kafka_compat.groups.settings import GroupSettings
from kafka_compat.groups.share.groups_of_broker import ShareGroups
from kafka_compat.groups.share.heartbeat import ShareHeartbeat
from kafka_compat.groups.share.members import InitializeStates, ShareMembers
from kafka_compat.groups.share.offset_changes import AlterStates, ChangeBegun, DeleteStates, NewOffsets
from kafka_compat.groups.share.records import ShareRecord
from kafka_compat.groups.share.share_group import NotAShareGroup, ShareGroup
from kafka_compat.groups.share.state import ShareGroupState, ShareView
from kafka_compat.groups.typed_group import GroupView, TypedGroup
from kafka_compat.long_work import Steps

if TYPE_CHECKING:
    from uuid import UUID

    Errors = Mapping[tuple[UUID, int], ErrorCode]


class Group:
    """State machine of one group. `classic`, `consumer` and `share` are the groups of each type, of which one
    is `current`. The latter two are created when they are first needed.
    """

    def __init__(
        self,
        group_id: str,
        snapshots: SnapshotRegistry,
        settings: GroupSettings,
        new_member_id: Callable[[str | None], str],
        consumer_groups: ConsumerGroups,
        share_groups: ShareGroups,
        counts: GroupCounts,
        now: Now,
    ) -> None:
        self.group_id = group_id
        self.is_dead = False
        self.is_busy = False
        """Whether an event is being processed in steps. Deadlines are not processed in the meantime."""
        rebalance = Rebalance(group_id, snapshots, settings, now)
        self.offsets = GroupOffsets(snapshots)
        self._snapshots = snapshots
        self._share_groups = share_groups
        self._counts = counts
        self._outbox = outbox = rebalance.outbox
        self._commits = Commits(group_id, settings.offset_metadata_max_bytes, outbox, counts)
        self._deletions = Deletions(group_id, self.offsets, outbox, counts)
        self._timers = rebalance.timers
        joining = Joining(rebalance, new_member_id)
        self._convertible = Convertible(
            rebalance, joining, snapshots, self.offsets, new_member_id, consumer_groups, counts
        )
        self.classic = ClassicGroup(rebalance, joining, self.offsets, self._convertible, counts)
        self._share: ShareGroup | None = None
        self.current: TypedGroup = self.classic
        """The group of the current type."""

    @property
    def consumer(self) -> ConsumerGroup:
        """The group as a consumer group."""
        return self._convertible.group

    @property
    def share(self) -> ShareGroup:
        """The group as a share group."""
        if self._share is None:
            state = ShareGroupState(self._snapshots)
            self._share = ShareGroup(
                ShareMembers(
                    self.group_id, state, self._share_groups, self._outbox, self._timers, self._counts
                )
            )
        return self._share

    @property
    def type(self) -> GroupType:
        return self.current.type

    @property
    def view(self) -> GroupView:
        """The group that clients see."""
        consumer, share = self._convertible.created, self._share
        return (consumer and consumer.view) or (share and share.view) or self.classic.view

    @property
    def consumer_view(self) -> View | None:
        """The committed state of a consumer group, or None if it is a group of another type."""
        consumer = self._convertible.created
        return None if consumer is None else consumer.state.committed

    @property
    def share_view(self) -> ShareView | None:
        """The committed state of a share group, or None if it is a group of another type."""
        return None if self._share is None else self._share.state.committed

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members. Its type may change then, unless it is a share group."""
        return self.current.is_empty and not self.is_dead

    @property
    def is_unused(self) -> bool:
        """Whether the group contains nothing, as if it did not exist."""
        return (
            self.current is self.classic
            and self.is_empty
            and self.classic.is_new
            and not self.classic.exists
            and self.offsets.is_empty
        )

    def _in_steps(self, steps: Steps[None]) -> Steps[Output]:
        """Execute the steps of one event. Between them, events that do not change members are processed."""
        out = self._outbox.begin()
        try:
            for _ in steps:
                yield None
                self._outbox.resume(out)
        except GeneratorExit:
            # This broker has lost the group. The event starts anew, but not the requests that it has ended.
            out.respond()
            raise
        return out

    # Members

    def join(self, request: Join, waiter: Waiter, now: Now) -> Steps[Output]:
        """Process a JoinGroup request, in steps. The caller must have checked the session timeout."""
        return self._in_steps(self.current.join(request, waiter, now))

    def sync(self, request: Sync, waiter: Waiter, now: Now) -> Output:
        """Process a SyncGroup request."""
        out = self._outbox.begin()
        self.current.sync(request, waiter, now)
        return out

    def heartbeat(
        self, generation_id: int, member_id: str, group_instance_id: str | None, now: Now
    ) -> ErrorCode:
        """Process a Heartbeat request of the classic protocol, and return the error code. It is sent at once:
        it does not show state that may be lost with an uncommitted record.
        """
        return self.current.heartbeat(generation_id, member_id, group_instance_id, now)

    def leave(self, leaving: Iterable[Leaving], waiter: Waiter, now: Now) -> Output:
        """Process a LeaveGroup request, which may name several members (version 3 and later)."""
        out = self._outbox.begin()
        self.current.leave(leaving, waiter, now)
        return out

    def consumer_heartbeat(self, request: Heartbeat, waiter: Waiter, now: Now) -> Steps[Output]:
        """Process a ConsumerGroupHeartbeat request (KIP-848), in steps."""
        return self._in_steps(self._consumer_heartbeat(request, waiter, now))

    def _consumer_heartbeat(self, request: Heartbeat, waiter: Waiter, now: Now) -> Steps[None]:
        yield from self.current.consumer_heartbeat(request, waiter, now)
        if request.member_epoch == JOIN_EPOCH:
            self._die_if_rejected()

    def regexes_resolved(self, found: Mapping[str, frozenset[str]], version: int, now: Now) -> Steps[Output]:
        """Store the topics that match the regular expressions of a consumer group, in steps."""
        return self._in_steps(self.consumer.regexes_resolved(found, version, now))

    def topics_changed(self, names: frozenset[str]) -> None:
        """Compare the topics with the next heartbeat, because a topic may have changed."""
        if self._convertible.created is not None:
            self._convertible.created.topics_changed(names)
        if self._share is not None:
            self._share.topics_changed(names)

    # Share groups

    def share_heartbeat(self, request: ShareHeartbeat, waiter: Waiter, now: Now) -> Steps[Output]:
        """Process a ShareGroupHeartbeat request (KIP-932), in steps."""
        return self._in_steps(self._creating(self._share_group().share_heartbeat(request, waiter, now)))

    def alter_share_offsets(self, topics: Sequence[NewOffsets], waiter: Waiter, now: Now) -> Steps[Output]:
        """Process an AlterShareGroupOffsets request, which may create the group, in steps."""
        return self._in_steps(self._creating(self._share_group().alter_offsets(topics, waiter, now)))

    def delete_share_offsets(self, names: Sequence[str], waiter: Waiter, now: Now) -> Steps[Output]:
        """Process a DeleteShareGroupOffsets request, in steps."""
        group = self.share if self.current is self.share else self._not_a_share_group()
        return self._in_steps(group.delete_offsets(names, waiter, now))

    def _share_group(self) -> ShareGroup | NotAShareGroup:
        """Return the share group, which may be new."""
        if self.current is self.share or self.is_unused:
            return self.share
        return self._not_a_share_group()

    def _not_a_share_group(self) -> NotAShareGroup:
        return NotAShareGroup(self.group_id, self._outbox)

    def _creating(self, steps: Steps[None]) -> Steps[None]:
        """Process a request that may create the group."""
        yield from steps
        self._die_if_rejected()

    def states_initialized(
        self, effect: InitializeStates | AlterStates, errors: "Errors", now: Now
    ) -> Output:
        """Store which states of share-partitions have been initialized."""
        out = self._outbox.begin()
        self.share.states_initialized(effect, errors, now)
        return out

    def states_deleted(self, effect: DeleteStates, errors: "Errors", now: Now) -> Output:
        """Complete a request that deletes states of share-partitions."""
        out = self._outbox.begin()
        if effect.topics is not None:
            self.share.states_deleted(effect, errors, now)
            return out
        error = next((each for each in errors.values() if each), ErrorCode.NONE)
        if error or not self.is_empty:
            self._outbox.respond(effect.waiter, error or ErrorCode.NON_EMPTY_GROUP)
        else:
            self._delete(list(self.offsets.stored), effect.waiter, ErrorCode.NONE)
        return out

    def has_states_of(self, topic_ids: "Collection[UUID]") -> bool:
        """Return whether a share group has states of share-partitions of any of these topics."""
        return self._share is not None and self._share.has_states_of(topic_ids)

    def topics_deleted(self, topic_ids: "Collection[UUID]", now: Now) -> Output:
        """Forget the states of share-partitions of deleted topics."""
        out = self._outbox.begin()
        self.share.topics_deleted(topic_ids, now)
        return out

    # Offsets

    def commit_offsets(self, request: Commit, waiter: Waiter, now: Now) -> Output:
        """Process an OffsetCommit or TxnOffsetCommit request (KIP-447)."""
        out = self._outbox.begin()
        self._commits.commit(self.current, request, waiter, now)
        return out

    def fetch_error(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Return NONE if a member may fetch offsets, or an error code."""
        consumer = self._convertible.created
        return ErrorCode.NONE if consumer is None else consumer.fetch_error(member_id, epoch)

    def put_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], waiter: Waiter) -> Output:
        """Store offsets for an operator, whether or not the group has members."""
        out = self._outbox.begin()
        self._commits.put(offsets, waiter)
        return out

    def delete_offsets(self, partitions: Collection[TopicPartition], waiter: Waiter) -> Steps[Output]:
        """Process an OffsetDelete request (KIP-496), in steps. Keep offsets for topics to which members
        subscribe.
        """
        yield None
        out = self._outbox.begin()
        deleted = self._deletions.check(self.current, partitions, waiter)
        if deleted is not None:
            known, answer = deleted
            self._delete(known, waiter, answer, keeps_group=not self.current.ends_with_deleted_offsets)
        return out

    def forget_partitions(self, partitions: Collection[TopicPartition]) -> Output:
        """Delete the offsets for partitions of deleted topics, even if members subscribe to the topics."""
        out = self._outbox.begin()
        keeps_group = not self.current.ends_with_deleted_offsets
        self._delete(partitions, None, ErrorCode.NONE, keeps_group=keeps_group)
        return out

    def expired_offsets(self, now: Now) -> list[TopicPartition]:
        """Return the partitions whose offsets have expired (offsets.retention.minutes)."""
        return self.current.expired_offsets(now)

    def delete_expired(self, expired: Collection[TopicPartition]) -> Output:
        """Delete expired offsets, and the group if nothing is left of it. A share group never expires: its
        delivery states would remain.
        """
        out = self._outbox.begin()
        self._counts.offset_expirations += len(expired)
        keeps_group = not self.current.ends_with_expired_offsets
        self._delete(expired, None, ErrorCode.NONE, keeps_group=keeps_group)
        return out

    # The whole group

    def delete(self, waiter: Waiter, now: Now) -> Steps[Output]:
        """Process a DeleteGroups request, in steps: delete an empty group and all its offsets. The states of
        share-partitions are deleted first.
        """
        yield None
        out = self._outbox.begin()
        if not self.is_empty:
            self._outbox.respond(waiter, ErrorCode.NON_EMPTY_GROUP)
        elif not self.current.begin_deletion(waiter, now):
            self._delete(list(self.offsets.stored), waiter, ErrorCode.NONE)
        return out

    def _delete(
        self,
        partitions: Iterable[TopicPartition],
        waiter: Waiter | None,
        answer: PartitionErrors | ErrorCode,
        *,
        keeps_group: bool = False,
    ) -> None:
        """Delete offsets and, unless `keeps_group`, a group that then has neither offsets nor members."""
        may_end = self.is_empty and not keeps_group
        if self._deletions.write(self.current, partitions, waiter, answer, may_end=may_end):
            self._die_if_empty()

    def _die_if_empty(self) -> None:
        """Delete the group if neither its current nor its committed state contains anything."""
        consumer = self._convertible.created
        if (
            self.is_empty
            and self.classic.is_gone
            and (consumer is None or consumer.is_gone)
            and (self._share is None or self._share.is_gone)
            and self.offsets.is_empty
        ):
            self._outbox.note(f"deleted in generation {self.classic.rebalance.generation_id}")
            self._die()

    def _die_if_unused(self) -> None:
        """Delete the group if it was created for a request that has been rejected."""
        if self.classic.is_new:
            self._die_if_empty()

    def _die_if_rejected(self) -> None:
        """Delete a group that was created for the current event, if the event is over without a write."""
        if self._outbox.output.write is None:
            self._die_if_unused()

    def _die(self) -> None:
        self.is_dead = True
        self.classic.rebalance.die()

    # The log and the time

    def replay(self, record: Record, log_offset: int, producer_id: int) -> None:
        """Apply a record. Only `replay` and `replay_end_marker` change the state that mirrors the log."""
        if isinstance(record, OffsetRecord):
            self.offsets.replay(record, log_offset, producer_id)
            return
        if isinstance(record, GroupRecord):
            self.classic.rebalance.stored.replay(record.value)
        elif isinstance(record, ShareRecord):
            self.share.state.replay(record)
        else:
            self.consumer.state.replay(record)
        consumer, share = self._convertible.created, self._share
        if consumer is not None and consumer.exists:
            self.current = consumer
        else:
            self.current = share if share is not None and share.exists else self.classic

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """Commit or discard the offsets of a producer's transaction."""
        self.offsets.replay_end_marker(producer_id, committed)

    def loaded(self, now: Now) -> Output:
        """Restore the stored generation, after all records have been replayed."""
        out = self._outbox.begin()
        self.classic.loaded(now)
        if self._convertible.created is not None:
            self._convertible.created.loaded(now)
        if self._share is not None:
            self._share.loaded(now)
        return out

    def written(self, purpose: object, error: ErrorCode, now: Now) -> Output:
        """Complete a write. If `error` is NONE, its records are committed."""
        out = self._outbox.begin()
        if isinstance(purpose, OffsetsStored):
            self._commits.written(purpose, error)
        elif isinstance(purpose, TombstonesStored):
            if self._deletions.written(purpose, error):
                self._die_if_empty()
        elif isinstance(purpose, MembersStored):
            if not is_committed(error):
                self.current.write_failed(now)
                self._die_if_unused()
        elif isinstance(purpose, ChangeBegun):
            if not is_committed(error):
                self._outbox.respond(purpose.waiter, purpose.failed(error))
                self._die_if_unused()
        elif isinstance(purpose, ConsumerGroupReplaced):
            self.consumer.replacement_written(purpose, error)
        else:
            self.classic.generation_written(purpose, error, now)
        return out

    def tick(self, now: Now) -> Output:
        """Process all deadlines that have passed, or the earliest one of a consumer group or share group."""
        if self.is_busy:
            return Output()
        out = self._outbox.begin()
        self.current.tick(now)
        return out

    def unload(self) -> Output:
        """Stop coordinating. Waiting members get NOT_COORDINATOR, and look up the new coordinator."""
        out = self._outbox.begin()
        self.classic.answer_waiting(ErrorCode.NOT_COORDINATOR)
        self._die()
        return out

    @property
    def wake_at_ms(self) -> int | None:
        """Time for the next `tick`, not later than the first deadline. None if there is no deadline, or while
        the group is busy.
        """
        return None if self.is_busy else self._timers.wake_at_ms

    def overview(self) -> GroupOverview:
        """Return the group's entry in a ListGroups response."""
        view = self.view
        return GroupOverview(self.group_id, view.protocol_type, view.state, view.type)
