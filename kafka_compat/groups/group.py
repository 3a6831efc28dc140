"""State machine of one group: its members, which use the classic protocol (`rebalance.py`), the consumer
protocol (`consumer/`) or the share group protocol (`share/`), and its offsets.

Rules
- A commit needs the current generation. While members wait for the assignment, OffsetCommit is rejected.
- Commits without a group ("simple" commits, generation -1) are accepted only if the group has no members.
- Offsets become visible when their records are committed. A deletion writes tombstones, and its response is
  sent when they are committed; an offset that was stored in the meantime is kept.
- A group without members and offsets is deleted when its last offset expires, or by a DeleteGroups request.
  A share group is deleted only by a request.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.coordinator_runtime.coordinator_log import (
    STORE_ERRORS,
    TransactionalProducer,
    is_committed,
)
from kafka_compat.coordinator_runtime.machine import Now, Output, Waiter, Write
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.consumer.classic_members import ClassicMembers
from kafka_compat.groups.consumer.consumer_group import (
    STORE_FAILURES,
    ConsumerGroup,
    MembersStored,
    Replaced,
)
from kafka_compat.groups.consumer.conversion import Downgrade, Upgrade
from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult, rejected
from kafka_compat.groups.consumer.member import JOIN_EPOCH
from kafka_compat.groups.consumer.state import GroupState
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.joining import Joining
from kafka_compat.groups.offsets import GroupOffsets
from kafka_compat.groups.rebalance import (
    COMPLETING_REBALANCE,
    EMPTY,
    STABLE,
    AssignmentStored,
    Rebalance,
    StaticMemberStored,
)
from kafka_compat.groups.records import GroupRecord, OffsetRecord, Record
from kafka_compat.groups.requests import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_MEMBER_ID,
    Commit,
    EncodedRecord,
    GroupDescription,
    GroupOverview,
    GroupType,
    Join,
    JoinResult,
    LeaveResult,
    Leaving,
    MemberDescription,
    OffsetAndMetadata,
    PartitionErrors,
    Sync,
    SyncResult,
    TopicPartition,
)
from kafka_compat.groups.settings import GroupSettings
from kafka_compat.groups.share.groups_of_broker import ShareGroups
from kafka_compat.groups.share.heartbeat import ShareHeartbeat, ShareHeartbeatResult
from kafka_compat.groups.share.offset_changes import (
    AlterStates,
    ChangeBegun,
    DeleteStates,
    NewOffsets,
    OffsetChanges,
    OffsetsResult,
)
from kafka_compat.groups.share.records import SHARE_RECORDS
from kafka_compat.groups.share.share_group import InitializeStates, ShareGroup
from kafka_compat.groups.share.state import ShareGroupState
from kafka_compat.groups.timers import Timers
from kafka_compat.long_work import Steps

if TYPE_CHECKING:
    from uuid import UUID

_OFFSET_STORE_ERRORS: Final = STORE_ERRORS | {
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""Maps error codes of a failed append to error codes for an offset commit."""


class OffsetsStored(NamedTuple):
    """A commit whose records are being written. `partitions` are the partitions of these records, and
    `errors` maps rejected partitions to error codes.
    """

    waiter: Waiter
    partitions: tuple[TopicPartition, ...]
    errors: PartitionErrors


class TombstonesStored(NamedTuple):
    """A deletion of committed offsets and, if `whole_group` is true, of their group.

    The tombstones are being written. On success, `answer` is passed to `waiter` (None for expired offsets).
    """

    whole_group: bool
    waiter: Waiter | None
    answer: PartitionErrors | ErrorCode


@dataclass(slots=True)
class ConsumerGroupReplaced:
    """A JoinGroup request that turns an empty consumer group into a classic group. The tombstones are being
    written. The request is processed when they have been appended.
    """

    waiter: Waiter
    is_appended: bool = False


class Group:
    """State machine of one group. `joining` and `rebalance` handle the members of a classic group, and
    `consumer` and `classic_members` those of a consumer group. A group without members may become either, and
    `consumer/conversion.py` converts a group with members. `share` handles the members of a share group,
    which never changes its type.
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
        self.rebalance = Rebalance(group_id, snapshots, settings, now)
        self.joining = Joining(self.rebalance, new_member_id)
        self.offsets = GroupOffsets(snapshots)
        self._counts = counts
        self._upgrade = Upgrade(self.rebalance, consumer_groups.limits, consumer_groups.topics)
        self._downgrade = Downgrade(self.rebalance, consumer_groups.limits, consumer_groups.topics)
        self._consumer_groups = consumer_groups
        self.consumer = self._consumer_group(GroupState(snapshots), self.rebalance.timers)
        self.classic_members = ClassicMembers(self.consumer, new_member_id)
        self.share = ShareGroup(
            group_id,
            ShareGroupState(snapshots),
            share_groups,
            self.rebalance.outbox,
            self.rebalance.timers,
            counts,
        )
        self._offset_changes = OffsetChanges(self.share)
        self._settings = settings
        self._outbox = self.rebalance.outbox

    def _consumer_group(self, state: GroupState, timers: Timers) -> ConsumerGroup:
        return ConsumerGroup(
            self.group_id,
            state,
            self._consumer_groups,
            self._downgrade,
            self.rebalance.outbox,
            timers,
            self._counts,
        )

    @property
    def type(self) -> GroupType:
        if self.consumer.state.exists:
            return GroupType.CONSUMER
        return GroupType.SHARE if self.share.state.exists else GroupType.CLASSIC

    @property
    def committed_type(self) -> GroupType:
        """The type of the group that clients see."""
        if self.consumer.state.committed is not None:
            return GroupType.CONSUMER
        return GroupType.CLASSIC if self.share.state.committed is None else GroupType.SHARE

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members. Its type may change then, unless it is a share group."""
        return (
            self.rebalance.state is EMPTY
            and not self.consumer.state.members.current
            and not self.share.state.members.current
        )

    @property
    def is_unused(self) -> bool:
        """Whether the group contains nothing, as if it did not exist."""
        return (
            self.type is GroupType.CLASSIC
            and self.is_empty
            and self.rebalance.generation_id == 0
            and not self.rebalance.roster.pending
            and self.rebalance.stored.snapshot is None
            and self.offsets.is_empty
        )

    def share_heartbeat(self, request: ShareHeartbeat, waiter: Waiter, now: Now) -> Steps[Output]:
        """Process a ShareGroupHeartbeat request (KIP-932), in steps."""
        return self._in_steps(self._share_heartbeat(request, waiter, now))

    def _share_heartbeat(self, request: ShareHeartbeat, waiter: Waiter, now: Now) -> Steps[None]:
        if self.type is GroupType.SHARE or self.is_unused:
            yield from self.share.heartbeat(request, waiter, now)
            if self._outbox.output.write is None:
                self._die_if_unused()
        else:
            message = f"Group {self.group_id} is not a share group."
            self._outbox.respond(waiter, ShareHeartbeatResult(ErrorCode.GROUP_ID_NOT_FOUND, message))

    def alter_share_offsets(self, topics: Sequence[NewOffsets], waiter: Waiter, now: Now) -> Steps[Output]:
        """Process an AlterShareGroupOffsets request, which may create the group, in steps."""
        return self._in_steps(self._alter_share_offsets(topics, waiter, now))

    def _alter_share_offsets(self, topics: Sequence[NewOffsets], waiter: Waiter, now: Now) -> Steps[None]:
        if self.type is GroupType.SHARE or self.is_unused:
            yield from self._offset_changes.alter(topics, waiter, now)
            if self._outbox.output.write is None:
                self._die_if_unused()
        else:
            message = f"Group {self.group_id} is not a share group."
            self._outbox.respond(waiter, OffsetsResult(ErrorCode.GROUP_ID_NOT_FOUND, message))

    def delete_share_offsets(self, names: Sequence[str], waiter: Waiter, now: Now) -> Steps[Output]:
        """Process a DeleteShareGroupOffsets request, in steps."""
        return self._in_steps(self._delete_share_offsets(names, waiter, now))

    def _delete_share_offsets(self, names: Sequence[str], waiter: Waiter, now: Now) -> Steps[None]:
        if self.type is GroupType.SHARE:
            yield from self._offset_changes.delete(names, waiter, now)
        else:
            message = f"Group {self.group_id} is not a share group."
            self._outbox.respond(waiter, OffsetsResult(ErrorCode.GROUP_ID_NOT_FOUND, message))

    def states_initialized(
        self,
        effect: InitializeStates | AlterStates,
        errors: "Mapping[tuple[UUID, int], ErrorCode]",
        now: Now,
    ) -> Output:
        """Store which states of share-partitions have been initialized."""
        out = self._outbox.begin()
        if isinstance(effect, AlterStates):
            self._offset_changes.altered(effect, errors, now)
        else:
            error = next((each for each in errors.values() if each), ErrorCode.NONE)
            self.share.states_initialized(effect.partitions, error, now)
        return out

    def states_deleted(
        self, effect: DeleteStates, errors: "Mapping[tuple[UUID, int], ErrorCode]", now: Now
    ) -> Output:
        """Complete a request that deletes states of share-partitions."""
        out = self._outbox.begin()
        if effect.topics is not None:
            self._offset_changes.deleted(effect, errors, now)
            return out
        error = next((each for each in errors.values() if each), ErrorCode.NONE)
        if error or not self.is_empty:
            self._outbox.respond(effect.waiter, error or ErrorCode.NON_EMPTY_GROUP)
        else:
            self._write_tombstones(list(self.offsets.stored), effect.waiter, ErrorCode.NONE)
        return out

    def topics_deleted(self, topic_ids: "Collection[UUID]", now: Now) -> Output:
        """Forget the states of share-partitions of deleted topics."""
        out = self._outbox.begin()
        self.share.topics_deleted(topic_ids, now)
        return out

    def consumer_heartbeat(self, request: Heartbeat, waiter: Waiter, now: Now) -> Steps[Output]:
        """Process a ConsumerGroupHeartbeat request (KIP-848), in steps."""
        return self._in_steps(self._heartbeat(request, waiter, now))

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

    def _heartbeat(self, request: Heartbeat, waiter: Waiter, now: Now) -> Steps[None]:
        if self.type is GroupType.CONSUMER:
            yield from self.consumer.heartbeat(request, waiter, now)
        elif self.type is GroupType.SHARE or request.member_epoch != JOIN_EPOCH:
            message = f"The group {self.group_id} is not a consumer group"
            self._outbox.respond(waiter, HeartbeatResult(ErrorCode.GROUP_ID_NOT_FOUND, message))
        elif self.rebalance.state is EMPTY:
            yield from self._join_replacing(self.consumer.state, (), request, waiter, now)
            if self._outbox.output.write is None:
                self._die_if_unused()
        else:
            yield from self._upgrade_with(request, waiter, now)

    def _join_replacing(
        self, state: GroupState, records: Iterable[Record], request: Heartbeat, waiter: Waiter, now: Now
    ) -> Steps[None]:
        """Let a member join the consumer group with this state and these records, which replaces the classic
        group if the write succeeds. If the write fails, nothing has changed.
        """
        stored = self.rebalance.stored.snapshot is not None
        tombstones = [GroupRecord(self.group_id, None)] if stored else []
        replaced = Replaced([*tombstones, *records], partial(self._became_consumer_group, now))
        yield from self._consumer_group(state, Timers()).heartbeat(request, waiter, now, replaced)

    def _upgrade_with(self, request: Heartbeat, waiter: Waiter, now: Now) -> Steps[None]:
        """Convert a classic group with members to a consumer group, which the member joins."""
        try:
            self._upgrade.check()
            self._answer_waiting(ErrorCode.REBALANCE_IN_PROGRESS)
            records, state = yield from self._upgrade.convert()
        except KafkaError as error:
            self._outbox.respond(waiter, rejected(error))
            return
        yield from self._join_replacing(state, records, request, waiter, now)

    def _answer_waiting(self, error: ErrorCode) -> None:
        for member_id in self.rebalance.roster.members:
            self.rebalance.answer_waiting(member_id, error, member_id)

    def _became_consumer_group(self, now: Now) -> Output:
        out = self._outbox.begin()
        if self.rebalance.state is not EMPTY:
            self._outbox.note("became a consumer group")
        self.rebalance.reset(now)
        self.consumer.start_sessions(now)
        return out

    def join(self, request: Join, waiter: Waiter, now: Now) -> Steps[Output]:
        """Process a JoinGroup request, in steps. The caller must have checked the session timeout."""
        if self.type is GroupType.CLASSIC:
            return self.joining.join(request, waiter, now)
        if self.type is GroupType.SHARE:
            out = self._outbox.begin()
            self._outbox.respond(waiter, JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID))
            return out
        if not self.is_empty:
            return (yield from self._in_steps(self.classic_members.join(request, waiter, now)))
        out = self._outbox.begin()
        if request.member_id != UNKNOWN_MEMBER_ID:
            result = JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            self._outbox.respond(waiter, result)
            return out
        purpose = ConsumerGroupReplaced(waiter)

        def join() -> Output:
            purpose.is_appended = True
            return self.joining.join(request, waiter, now)

        self._outbox.write(Write(self.consumer.tombstones(), purpose, then=join))
        return out

    def sync(self, request: Sync, waiter: Waiter, now: Now) -> Output:
        """Process a SyncGroup request."""
        if self.type is GroupType.CLASSIC:
            return self.rebalance.sync(request, waiter, now)
        if self.type is GroupType.SHARE:
            out = self._outbox.begin()
            self._outbox.respond(waiter, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
            return out
        return self.classic_members.sync(request, waiter, now)

    def heartbeat(
        self, generation_id: int, member_id: str, group_instance_id: str | None, now: Now
    ) -> ErrorCode:
        """Process a Heartbeat request of the classic protocol, and return the error code. It is sent at once:
        it does not show state that may be lost with an uncommitted record.
        """
        if self.consumer.state.exists:
            return self.classic_members.heartbeat(generation_id, member_id, group_instance_id, now)
        if self.share.state.exists:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return self.rebalance.heartbeat(generation_id, member_id, group_instance_id, now)

    def leave(self, leaving: Iterable[Leaving], waiter: Waiter, now: Now) -> Output:
        """Process a LeaveGroup request, which may name several members (version 3 and later)."""
        if self.type is GroupType.CLASSIC:
            return self.joining.leave(leaving, waiter, now)
        if self.type is GroupType.SHARE:
            out = self._outbox.begin()
            unknown = tuple((each, ErrorCode.UNKNOWN_MEMBER_ID) for each in leaving)
            self._outbox.respond(waiter, LeaveResult(ErrorCode.NONE, unknown))
            return out
        return self.classic_members.leave(leaving, waiter, now)

    def regexes_resolved(self, found: Mapping[str, frozenset[str]], version: int, now: Now) -> Steps[Output]:
        """Store the topics that match the regular expressions of a consumer group, in steps."""
        return self._in_steps(self.consumer.regexes_resolved(found, version, now))

    def commit_offsets(self, request: Commit, waiter: Waiter, now: Now) -> Output:
        """Process an OffsetCommit or TxnOffsetCommit request (KIP-447). OffsetCommit also counts as a
        heartbeat of its member. TxnOffsetCommit does not, and is accepted during a rebalance.
        """
        out = self._outbox.begin()
        most = self._settings.offset_metadata_max_bytes
        fitting: dict[TopicPartition, OffsetAndMetadata] = {}
        errors: PartitionErrors = {}
        for partition, value in request.offsets.items():
            if java_length(value.metadata) <= most:
                fitting[partition] = value
            else:
                errors[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
        if self.type is GroupType.CONSUMER:
            error = self.consumer.check_commit(request, fitting)
        elif self.type is GroupType.SHARE:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        else:
            error = self._check_commit(request)
        if not error and self.rebalance.state is COMPLETING_REBALANCE and request.producer is None:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error:
            self._outbox.respond(waiter, dict.fromkeys(request.offsets, error))
            return out
        if self.rebalance.state is not EMPTY and request.producer is None:
            self.rebalance.restart_session(self.rebalance.roster.members[request.member_id], now)
        if not fitting:
            self._outbox.respond(waiter, errors)
            return out
        self._counts.offset_commits += len(fitting)
        encoded = None if request.encoded is None else [request.encoded[each] for each in fitting]
        self._write_offsets(fitting, waiter, errors, request.producer, encoded)
        return out

    def put_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], waiter: Waiter) -> Output:
        """Store offsets for an operator, whether or not the group has members."""
        out = self._outbox.begin()
        self._write_offsets(offsets, waiter, {}, None)
        return out

    def _write_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        waiter: Waiter,
        errors: PartitionErrors,
        producer: TransactionalProducer | None,
        encoded: Sequence[EncodedRecord] | None = None,
    ) -> None:
        records: list[Record] = [
            OffsetRecord(self.group_id, topic, partition, value)
            for (topic, partition), value in offsets.items()
        ]
        purpose = OffsetsStored(waiter, tuple(offsets), errors)
        self._outbox.write(Write(records, purpose, producer, commits=True, encoded=encoded))

    def _check_commit(self, request: Commit) -> ErrorCode:
        if request.generation_id < 0 and self.rebalance.state is EMPTY:
            return ErrorCode.NONE
        if request.generation_id < 0 and not request.member_id and request.group_instance_id is None:
            # Transactional producers that predate KIP-447 do not send a member ID.
            allowed = self.rebalance.state is EMPTY or request.producer is not None
            return ErrorCode.NONE if allowed else ErrorCode.UNKNOWN_MEMBER_ID
        error = self.rebalance.check_member(request.member_id, request.group_instance_id)
        if not error and request.generation_id != self.rebalance.generation_id:
            error = ErrorCode.ILLEGAL_GENERATION
        return error

    def delete_offsets(self, partitions: Collection[TopicPartition], waiter: Waiter) -> Steps[Output]:
        """Process an OffsetDelete request (KIP-496), in steps. Keep offsets for topics to which members
        subscribe.
        """
        yield None
        out = self._outbox.begin()
        if self.type is GroupType.SHARE:
            self._outbox.respond(waiter, ErrorCode.GROUP_ID_NOT_FOUND)
            return out
        if self.rebalance.state is not EMPTY and self.rebalance.protocol_type != CONSUMER_PROTOCOL_TYPE:
            self._outbox.respond(waiter, ErrorCode.NON_EMPTY_GROUP)
            return out
        subscribed = self._subscribed({topic for topic, _ in partitions})
        answer = {
            partition: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if partition[0] in subscribed else ErrorCode.NONE
            for partition in partitions
        }
        deleted = [partition for partition, error in answer.items() if not error]
        if deleted:
            self._counts.offset_deletions += len(self.offsets.known(deleted))
            self._write_tombstones(deleted, waiter, answer, keeps_group=self.type is GroupType.CONSUMER)
        else:
            # Keep the group, even if it is empty and is waiting for its first member.
            self._outbox.respond(waiter, answer)
        return out

    def _subscribed(self, topics: set[str]) -> Set[str]:
        """Return those of the topics to which members subscribe."""
        if self.type is GroupType.CONSUMER:
            return self.consumer.state.subscribed_names(existing=topics.intersection)
        if self.rebalance.state is EMPTY:
            return frozenset()
        known = self.rebalance.subscribed_topics
        return topics if known is None else topics & known

    def delete(self, waiter: Waiter, now: Now) -> Steps[Output]:
        """Process a DeleteGroups request, in steps: delete an empty group and all its offsets. The states of
        share-partitions are deleted first.
        """
        yield None
        out = self._outbox.begin()
        if self.is_empty and self._offset_changes.begin_group_deletion(waiter, now):
            return out
        if self.is_empty:
            self._write_tombstones(list(self.offsets.stored), waiter, ErrorCode.NONE)
        else:
            self._outbox.respond(waiter, ErrorCode.NON_EMPTY_GROUP)
        return out

    def forget_partitions(self, partitions: Collection[TopicPartition]) -> Output:
        """Delete the offsets for partitions of deleted topics, even if members subscribe to the topics."""
        out = self._outbox.begin()
        keeps_group = self.type is GroupType.CONSUMER
        self._write_tombstones(partitions, None, ErrorCode.NONE, keeps_group=keeps_group)
        return out

    def expired_offsets(self, now: Now) -> list[TopicPartition]:
        """Return the partitions whose offsets have expired (offsets.retention.minutes)."""
        if self.type is GroupType.SHARE:
            return []
        if self.type is GroupType.CONSUMER:
            return self.offsets.expired_without(
                self.consumer.state.subscribed_names(), now.wall_ms, self._settings.offsets_retention_ms
            )
        return self.offsets.expired(
            now.wall_ms,
            self._settings.offsets_retention_ms,
            state=self.rebalance.state,
            state_timestamp_ms=self.rebalance.state_timestamp_ms,
            protocol_type=self.rebalance.protocol_type,
            subscribed_topics=self.rebalance.subscribed_topics,
        )

    def delete_expired(self, expired: Collection[TopicPartition]) -> Output:
        """Delete expired offsets, and the group if nothing is left of it. A share group never expires: its
        delivery states would remain.
        """
        out = self._outbox.begin()
        self._counts.offset_expirations += len(expired)
        self._write_tombstones(expired, None, ErrorCode.NONE, keeps_group=self.type is GroupType.SHARE)
        return out

    def _write_tombstones(
        self,
        partitions: Iterable[TopicPartition],
        waiter: Waiter | None,
        answer: PartitionErrors | ErrorCode,
        *,
        keeps_group: bool = False,
    ) -> None:
        """Delete offsets and, unless `keeps_group`, a group that then has neither offsets nor members. As in
        Kafka, only DeleteGroups and the check for expired offsets delete an empty consumer group.
        """
        deleted = dict.fromkeys(self.offsets.known(partitions))
        records: list[Record] = [
            OffsetRecord(self.group_id, topic, partition, None) for topic, partition in deleted
        ]
        whole_group = not keeps_group and self.is_empty and self.offsets.would_be_empty_without(deleted)
        if whole_group and self.type is GroupType.CONSUMER:
            records += self.consumer.tombstones()
        elif whole_group and self.type is GroupType.SHARE:
            records += self.share.tombstones()
        elif whole_group and self.rebalance.generation_id > 0:
            records.append(GroupRecord(self.group_id, None))
        purpose = TombstonesStored(whole_group, waiter, answer)
        if records:
            self._outbox.write(Write(records, purpose))
            return
        # The log contains nothing to delete, unless earlier tombstones are not committed yet.
        if whole_group:
            self._die_if_empty()
        if waiter is not None:
            self._outbox.respond_when_committed(waiter, answer, _store_error)

    def replay(self, record: Record, log_offset: int, producer_id: int) -> None:
        """Apply a record. Only `replay` and `replay_end_marker` change the state that mirrors the log."""
        if isinstance(record, OffsetRecord):
            self.offsets.replay(record, log_offset, producer_id)
        elif isinstance(record, GroupRecord):
            self.rebalance.stored.replay(record.value)
        elif isinstance(record, SHARE_RECORDS):
            self.share.state.replay(record)
        else:
            self.consumer.state.replay(record)

    def replay_end_marker(self, producer_id: int, committed: bool) -> None:
        """Commit or discard the offsets of a producer's transaction."""
        self.offsets.replay_end_marker(producer_id, committed)

    def loaded(self, now: Now) -> Output:
        """Restore the stored generation, after all records have been replayed."""
        out = self._outbox.begin()
        if self.rebalance.stored.snapshot is not None:
            self.rebalance.restore(self.rebalance.stored.snapshot, now)
        self.consumer.loaded(now)
        self.share.loaded(now)
        return out

    def written(self, purpose: object, error: ErrorCode, now: Now) -> Output:
        """Complete a write. If `error` is NONE, its records are committed."""
        out = self._outbox.begin()
        if isinstance(purpose, OffsetsStored):
            self._offsets_written(purpose, error)
        elif isinstance(purpose, TombstonesStored):
            self._tombstones_written(purpose, error)
        elif isinstance(purpose, MembersStored):
            if error and not is_committed(error):
                if self.type is GroupType.SHARE:
                    self.share.write_failed(now)
                else:
                    self.consumer.write_failed(now)
                self._die_if_unused()
        elif isinstance(purpose, ChangeBegun):
            if error and not is_committed(error):
                self._outbox.respond(purpose.waiter, purpose.failed(error))
                self._die_if_unused()
        elif isinstance(purpose, ConsumerGroupReplaced):
            if error and not purpose.is_appended:
                result = JoinResult(STORE_FAILURES.get(error, error), UNKNOWN_MEMBER_ID)
                self._outbox.respond(purpose.waiter, result)
        else:
            if error:
                error = self.rebalance.store_failed(error)
            if isinstance(purpose, AssignmentStored):
                self._counts.classic_rebalances += not error
                self.rebalance.assignment_written(purpose, error, now)
            elif isinstance(purpose, StaticMemberStored):
                self.joining.static_member_written(purpose, error, now)
        return out

    def _offsets_written(self, purpose: OffsetsStored, error: ErrorCode) -> None:
        error = _OFFSET_STORE_ERRORS.get(error, error)
        self._outbox.respond(purpose.waiter, purpose.errors | dict.fromkeys(purpose.partitions, error))

    def _tombstones_written(self, purpose: TombstonesStored, error: ErrorCode) -> None:
        if not error and purpose.whole_group:
            self._die_if_empty()
        if purpose.waiter is not None:
            self._outbox.respond(purpose.waiter, _store_error(error) if error else purpose.answer)

    def _die_if_empty(self) -> None:
        """Delete the group if neither its current nor its committed state contains anything."""
        rebalance = self.rebalance
        if (
            self.is_empty
            and rebalance.stored.snapshot is None
            and rebalance.stored.committed is None
            and not self.consumer.state.exists
            and self.consumer.state.committed is None
            and not self.share.state.exists
            and self.share.state.committed is None
            and self.offsets.is_empty
        ):
            self._outbox.note(f"deleted in generation {rebalance.generation_id}")
            self._die()

    def _die_if_unused(self) -> None:
        """Delete the group if it was created for a request that has been rejected."""
        if self.rebalance.generation_id == 0 and not self.rebalance.roster.pending:
            self._die_if_empty()

    def _die(self) -> None:
        self.is_dead = True
        self.rebalance.die()

    def tick(self, now: Now) -> Output:
        """Process all deadlines that have passed, or the earliest one of a consumer group."""
        if self.is_busy:
            return Output()
        if self.type is GroupType.CLASSIC:
            return self.rebalance.tick(now)
        out = self._outbox.begin()
        timer = self.rebalance.timers.take_due(now.timer_ms)
        if timer is not None and self.type is GroupType.SHARE:
            self.share.timer_over(timer)
        elif timer is not None:
            self.consumer.timer_over(timer, now)
        return out

    def unload(self) -> Output:
        """Stop coordinating. Waiting members get NOT_COORDINATOR, and look up the new coordinator."""
        out = self._outbox.begin()
        self._answer_waiting(ErrorCode.NOT_COORDINATOR)
        self._die()
        return out

    @property
    def wake_at_ms(self) -> int | None:
        """Time for the next `tick`, not later than the first deadline. None if there is no deadline, or while
        the group is busy.
        """
        return None if self.is_busy else self.rebalance.timers.wake_at_ms

    def describe(self) -> GroupDescription:
        """Return the group's description, with subscriptions and assignments only if the group is stable."""
        stable = self.rebalance.state is STABLE
        return GroupDescription(
            self.rebalance.state,
            self.rebalance.protocol_type or "",
            (self.rebalance.protocol_name or "") if stable else "",
            tuple(
                MemberDescription(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    member.metadata(self.rebalance.protocol_name) if stable else b"",
                    self.rebalance.stored.assignment(member) if stable else b"",
                )
                for member in self.rebalance.roster.members.values()
            ),
        )

    def overview(self) -> GroupOverview:
        """Return the group's entry in a ListGroups response."""
        view = self.consumer.state.committed
        if view is not None:
            return GroupOverview(self.group_id, CONSUMER_PROTOCOL_TYPE, view.state, GroupType.CONSUMER)
        share = self.share.state.committed
        if share is not None:
            return GroupOverview(self.group_id, GroupType.SHARE, share.state, GroupType.SHARE)
        rebalance = self.rebalance
        return GroupOverview(self.group_id, rebalance.protocol_type or "", rebalance.state, GroupType.CLASSIC)


def _store_error(error: ErrorCode) -> ErrorCode:
    return STORE_ERRORS.get(error, error)


def java_length(text: str) -> int:
    """Return the length of `text` in UTF-16 code units, which offset.metadata.max.bytes limits."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
