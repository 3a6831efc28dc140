"""State machine of one share group (KIP-932): members, epochs, assignments and initialized partitions.

Rules
- The group epoch rises when a member joins, changes its subscription, leaves or is fenced, when a subscribed
  topic changes, and when the target assignment lacks partitions whose state has been initialized.
- A heartbeat computes a new target assignment if the group epoch is greater than the epoch of the target
  assignment, and group.share.assignment.interval.ms have passed since the last one (KIP-1263). There is no
  timer. Only partitions with an initialized state are assigned.
- A member takes its part of the target assignment at once: several members may have the same partition.
- A heartbeat whose group subscribes to partitions without a state stores that their initialization begins.
  Then the share coordinator is asked, while the response is sent. The outcome is stored by a later event
  (`states_initialized`), and the next heartbeat raises the group epoch. If the initialization fails, the next
  heartbeat begins it again; if its outcome is lost, a heartbeat does so after
  group.share.initialize.retry.interval.ms.
- A member is fenced when its session ends. The session starts anew with each heartbeat, and for all members
  when the group is loaded.
- Offsets are altered and deleted only while the group has no members (`offset_changes.py`).

Every response shows the current state, and therefore waits until this state is committed.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.coordinator_runtime.machine import Now, Outbox, Waiter, Write
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.consumer.assignors.assignor import same_partitions
from kafka_compat.groups.consumer.assignors.changed_assignment import partition_order, topic_order
from kafka_compat.groups.consumer.java_order import sorted_strings
from kafka_compat.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH
from kafka_compat.groups.consumer.subscriptions import subscribed_names
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.member_writes import STORE_FAILURES, MembersStored
from kafka_compat.groups.record_types import GroupMetadata, TargetMetadata
from kafka_compat.groups.share.assignor import SimpleMember, assign
from kafka_compat.groups.share.groups_of_broker import ShareGroups
from kafka_compat.groups.share.heartbeat import ShareHeartbeat, ShareHeartbeatResult, rejected
from kafka_compat.groups.share.member import ShareMember
from kafka_compat.groups.share.partition_states import (
    UNKNOWN_NAME,
    Partitions,
    PartitionStates,
    TopicPartitions,
)
from kafka_compat.groups.share.records import (
    PartitionStatesRecord,
    ShareCurrentAssignment,
    ShareCurrentRecord,
    ShareGroupRecord,
    ShareMemberRecord,
    ShareRecord,
    ShareTargetMetadataRecord,
    ShareTargetRecord,
)
from kafka_compat.groups.share.state import ShareGroupState
from kafka_compat.groups.timers import Timer, TimerKind, Timers
from kafka_compat.long_work import Steps, batched, sorted_in_steps

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.groups.consumer.assignors.assignor import Assignment
    from kafka_compat.groups.records import Record

FIRST_OFFSET: Final = 0
"""Start offset of partitions that are added to a topic which the group already reads."""
UNRESOLVED_OFFSET: Final = -1
"""Start offset that the leader of the partition determines, according to share.auto.offset.reset."""
_MEMBERS_AT_ONCE: Final = 100


class InitializeStates(NamedTuple):
    """An effect: initialize the states of share-partitions. `start_offsets` maps them to start offsets. The
    outcome is an event, `states_initialized`.
    """

    state_epoch: int
    start_offsets: "Mapping[tuple[UUID, int], int]"
    partitions: Partitions


class ShareMembers:
    """The members and share-partitions of one share group. `state` is what is stored of them."""

    def __init__(
        self,
        group_id: str,
        state: ShareGroupState,
        common: ShareGroups,
        outbox: Outbox,
        timers: Timers,
        counts: GroupCounts,
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.common = common
        self.outbox = outbox
        self.timers = timers
        self._counts = counts
        self._must_compare_hash = True
        """Whether a subscribed topic may have changed since the hash was computed."""
        self._complete_for: tuple[PartitionStates | None, TargetMetadata | None] = (None, None)
        """The partition states and the target assignment that were last found to match each other. Every
        other change of the assignment raises the group epoch.
        """
        self._states_written_ms = 0
        """When the last record of partition states was written or loaded, by the monotonic clock."""

    def heartbeat(self, request: ShareHeartbeat, waiter: Waiter, now: Now) -> Steps[None]:
        """Process a heartbeat that joins the group, leaves it, or keeps a session alive."""
        records: list[ShareRecord]
        try:
            if request.member_epoch == LEAVE_EPOCH:
                result, records = self._leave(request)
            else:
                result, records = yield from self._stay(request, now)
        except KafkaError as error:
            self.outbox.respond(waiter, rejected(error))
            return
        if records:
            self.outbox.write(Write(records, MembersStored()))
        self.outbox.respond_when_committed(waiter, result, _failed)

    def _stay(
        self, request: ShareHeartbeat, now: Now
    ) -> Steps[tuple[ShareHeartbeatResult, list[ShareRecord]]]:
        records: list[ShareRecord] = []
        state = self.state
        former = self._known_member(request)
        updated = yield from _with_subscription(former, request)
        yield None
        if updated != former or updated.member_id not in state.members:
            records.append(ShareMemberRecord(self.group_id, updated.member_id, updated))
        metadata = state.current_metadata
        rises = set(updated.topic_names) != set(former.topic_names)
        if state.target.current.epoch >= metadata.epoch:
            rises |= self._lacks_initialized_partitions()
        yield None
        existing = self.common.topics.existing
        names = state.subscribed_names(existing=existing)
        is_homogeneous = state.is_homogeneous
        epoch = metadata.epoch
        if rises or self._must_compare_hash:
            self._must_compare_hash = False
            names = state.subscribed_names(former, updated, existing)
            is_homogeneous = state.is_homogeneous_after(former, updated)
            yield None
            metadata_hash = self.common.topics.metadata_hash(names)
            rises |= metadata_hash != metadata.metadata_hash
            if rises:
                epoch += 1
                self._counts.share_rebalances += 1
                records.append(ShareGroupRecord(self.group_id, GroupMetadata(epoch, metadata_hash)))
                self.outbox.note(f"group epoch {epoch} after a heartbeat of member {updated.member_id}")
        yield None
        target_epoch, target = yield from self._target(epoch, updated, is_homogeneous, now, records)
        after = self._reconciled(updated, target_epoch, target, rises)
        if after != updated:
            current = ShareCurrentAssignment(after.epoch, after.previous_epoch, after.assigned)
            records.append(ShareCurrentRecord(self.group_id, after.member_id, current))
        self._start_session(after.member_id, now)
        yield None
        self._initialize_missing(epoch, names, now, records)
        must_tell = (
            request.member_epoch == JOIN_EPOCH
            or request.topic_names is not None
            or not same_partitions(after.assigned, former.assigned)
        )
        return (
            ShareHeartbeatResult(
                ErrorCode.NONE,
                None,
                after.member_id,
                after.epoch,
                self.common.settings(self.group_id).heartbeat_interval_ms,
                after.assigned if must_tell else None,
            ),
            records,
        )

    def _known_member(self, request: ShareHeartbeat) -> ShareMember:
        """Return the member that sends the heartbeat, which may be new. Raises KafkaError."""
        members, most = self.state.members.current, self.common.limits().size_max
        member = members.get(request.member_id)
        if member is None and len(members) >= most:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group is full: it has {most} members.",
            )
        if member is None:
            if request.member_epoch != JOIN_EPOCH:
                raise _unknown(request.member_id, self.group_id)
            return ShareMember(request.member_id)
        epoch = request.member_epoch
        if epoch != JOIN_EPOCH and (
            epoch > member.epoch or (epoch < member.epoch and epoch != member.previous_epoch)
        ):
            relation = "greater" if epoch > member.epoch else "smaller"
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The member's epoch {epoch} is {relation} than {member.epoch}. It must give up its "
                "partitions and join again",
            )
        return member

    def _lacks_initialized_partitions(self) -> bool:
        """Return whether the target assignment does not contain exactly the initialized partitions of a
        subscribed topic.
        """
        state = self.state
        initialized = state.current_states.initialized
        if not initialized or not state.members.current or not state.subscribers:
            return False
        checked = (state.partition_states.current, state.target.current)
        if checked[0] is self._complete_for[0] and checked[1] is self._complete_for[1]:
            return False
        assigned: dict[UUID, set[int]] = {}
        for target in state.targets.current.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        for topic_id, each in initialized.items():
            if each.name in state.subscribers and (
                topic_id not in assigned or each.partitions != frozenset(assigned[topic_id])
            ):
                return True
        self._complete_for = checked
        return False

    def _target(
        self, epoch: int, member: ShareMember, is_homogeneous: bool, now: Now, records: list[ShareRecord]
    ) -> "Steps[tuple[int, Assignment]]":
        """Return the epoch and the member's part of the target assignment, which is computed if it is due."""
        state = self.state
        known = state.target.current
        interval_ms = self.common.settings(self.group_id).assignment_interval_ms
        # The age is negative if the clock has been set back.
        is_recent = known.timestamp_ms != 0 and 0 <= now.wall_ms - known.timestamp_ms < interval_ms
        if epoch <= known.epoch or is_recent:
            return known.epoch, _as_read(state.targets.current.get(member.member_id, {}))
        members = state.ordered_members_with(member)
        targets = state.targets.current
        existing = self.common.topics.existing
        counts: dict[UUID, int] = {}
        specs: dict[str, SimpleMember] = {}
        topic_ids: dict[tuple[str, ...], tuple[UUID, ...]] = {}
        for some in batched(members.values(), _MEMBERS_AT_ONCE):
            yield None
            for each in some:
                if each.topic_names not in topic_ids:
                    found = self.common.partition_counts(subscribed_names(each.topic_names, (), existing))
                    topic_ids[each.topic_names] = tuple(found)
                    counts.update(found)
                specs[each.member_id] = SimpleMember(
                    topic_ids[each.topic_names], targets.get(each.member_id, {})
                )
        assignable = {key: each.partitions for key, each in state.current_states.initialized.items()}
        computed = yield from assign(specs, is_homogeneous, counts, assignable)
        for some_ids in batched(computed, _MEMBERS_AT_ONCE):
            yield None
            for member_id in some_ids:
                stored = targets.get(member_id)
                if stored is None or not same_partitions(stored, computed[member_id]):
                    records.append(ShareTargetRecord(self.group_id, member_id, computed[member_id]))
        target = TargetMetadata(epoch, now.wall_ms)
        records.append(ShareTargetMetadataRecord(self.group_id, target))
        return epoch, computed.get(member.member_id, {})

    def _reconciled(
        self, member: ShareMember, target_epoch: int, target: "Assignment", has_changed: bool
    ) -> ShareMember:
        """Return the member with its part of the target assignment, without topics to which it no longer
        subscribes.
        """
        if member.epoch == target_epoch and not has_changed:
            return member
        name_of = self.common.topics.topic_name
        kept = {
            topic_id: partitions
            for topic_id, partitions in target.items()
            if name_of(topic_id) in member.topic_names
        }
        assigned = kept if len(kept) != len(target) else target
        if member.epoch != target_epoch:
            return member.at_epoch(target_epoch, assigned)
        if same_partitions(member.assigned, assigned):
            return member
        return member._replace(assigned=assigned)

    def _initialize_missing(
        self, epoch: int, names: Collection[str], now: Now, records: list[ShareRecord]
    ) -> None:
        """Begin to initialize the states of subscribed partitions that have none."""
        ordered = sorted_strings(list(names))
        counts = list(self.common.partition_counts(ordered).items())
        existing = zip(counts, ordered, strict=True)
        topics = [(topic_id, name, count) for (topic_id, count), name in existing]
        states = self.state.current_states
        retry_ms = self.common.limits().initialize_retry_interval_ms
        missing = states.missing(topics, now.timer_ms - self._states_written_ms < retry_ms)
        if not missing:
            return
        known = states.all_partitions()
        records.append(self.states_record(states.begin(missing), now))
        start_offsets = {
            (topic_id, partition): FIRST_OFFSET if topic_id in known else UNRESOLVED_OFFSET
            for topic_id, each in missing.items()
            for partition in sorted(each.partitions)
        }
        self.outbox.perform(InitializeStates(epoch, start_offsets, missing))

    def states_record(self, states: PartitionStates, now: Now) -> ShareRecord:
        """Return the record of partition states that are about to be written."""
        self._states_written_ms = now.timer_ms
        return PartitionStatesRecord(self.group_id, states)

    def states_initialized(self, done: Partitions, error: ErrorCode, now: Now) -> None:
        """Store the outcome of an initialization. If any partition has failed, all are attempted again."""
        states = self.state.partition_states.current
        if not self.state.exists or not done:
            return
        if error:
            self.outbox.note(f"share-partitions could not be initialized: {error.name}")
            if states is None or not states.initializing:
                return
            after = states.abandon(done)
        else:
            name_of = self.common.topics.topic_name
            named = {
                topic_id: TopicPartitions(name_of(topic_id) or UNKNOWN_NAME, each.partitions)
                for topic_id, each in done.items()
            }
            after = (states or PartitionStates()).complete(named)
        self.outbox.write(Write([self.states_record(after, now)], MembersStored()))

    def topics_deleted(self, topic_ids: "Collection[UUID]", now: Now) -> None:
        """Forget the states of topics that were deleted. The share coordinator forgets them itself."""
        states = self.state.partition_states.current
        if states is not None and states.mentions_any(topic_ids):
            record = self.states_record(states.without_topics(topic_ids), now)
            self.outbox.write(Write([record], MembersStored()))

    def _leave(self, request: ShareHeartbeat) -> tuple[ShareHeartbeatResult, list[ShareRecord]]:
        member = self.state.members.current.get(request.member_id)
        if member is None:
            raise _unknown(request.member_id, self.group_id)
        self.outbox.note(f"member {member.member_id} left")
        result = ShareHeartbeatResult(ErrorCode.NONE, None, member.member_id, LEAVE_EPOCH)
        return result, self._removal(member)

    def _removal(self, member: ShareMember) -> list[ShareRecord]:
        """Return the records that remove a member, in the order that Kafka needs to replay them."""
        self.timers.cancel(Timer(TimerKind.SESSION, member.member_id))
        group_id, member_id = self.group_id, member.member_id
        names = self.state.subscribed_names(member, None, self.common.topics.existing)
        epoch = self.state.current_metadata.epoch + 1
        metadata = GroupMetadata(epoch, self.common.topics.metadata_hash(names))
        records: list[ShareRecord] = [
            ShareCurrentRecord(group_id, member_id, None),
            ShareTargetRecord(group_id, member_id, None),
            ShareMemberRecord(group_id, member_id, None),
            ShareGroupRecord(group_id, metadata),
        ]
        if len(self.state.members) == 1:
            records.append(ShareTargetMetadataRecord(group_id, TargetMetadata(epoch, 0)))
        return records

    def tombstones(self) -> "list[Record]":
        """Return the records that delete the group, in the order that Kafka needs to replay them."""
        group_id = self.group_id
        members = list(self.state.ordered_members())
        records: list[Record] = []
        records += (ShareCurrentRecord(group_id, each, None) for each in members)
        records += (ShareTargetRecord(group_id, each, None) for each in members)
        records.append(ShareTargetMetadataRecord(group_id, None))
        records += (ShareMemberRecord(group_id, each, None) for each in members)
        records.append(PartitionStatesRecord(group_id, None))
        records.append(ShareGroupRecord(group_id, None))
        return records

    def topics_changed(self) -> None:
        """Compare the metadata hash with the next heartbeat, because a subscribed topic may have changed."""
        self._must_compare_hash = True

    def write_failed(self, now: Now) -> None:
        """Continue with the stored state, because its last change could not be stored."""
        self._must_compare_hash = True
        self.state.forget_unstored_members()
        self.timers.keep_members(self.state.members.current)
        for member_id in self.state.members.current:
            if Timer(TimerKind.SESSION, member_id) not in self.timers.pending:
                self._start_session(member_id, now)

    def loaded(self, now: Now) -> None:
        """Start the sessions of all members."""
        self._states_written_ms = now.timer_ms
        for member_id in self.state.members.current:
            self._start_session(member_id, now)

    def timer_over(self, timer: Timer) -> None:
        """Fence a member whose session has ended."""
        member = self.state.members.current.get(timer.member_id)
        if member is not None:
            self.outbox.note(f"member {member.member_id} was fenced: its session expired")
            self.outbox.write(Write(self._removal(member), MembersStored()))

    def _start_session(self, member_id: str, now: Now) -> None:
        timeout_ms = self.common.settings(self.group_id).session_timeout_ms
        self.timers.set(Timer(TimerKind.SESSION, member_id), now.timer_ms + timeout_ms)


def _with_subscription(member: ShareMember, request: ShareHeartbeat) -> Steps[ShareMember]:
    """Return the member with the fields that the request contains."""
    updated = member._replace(client_id=request.client_id, client_host=request.client_host)
    if request.rack_id is not None:
        updated = updated._replace(rack_id=request.rack_id)
    if request.topic_names is not None:
        names: set[str] = set()
        for some in batched(request.topic_names):
            names.update(some)
            yield None
        updated = updated._replace(topic_names=tuple((yield from sorted_in_steps(names))))
    return updated


def _as_read(assignment: "Assignment") -> "Assignment":
    """Return a stored assignment in the order of the tables that Kafka reads it into."""
    return {topic_id: tuple(partition_order(assignment[topic_id])) for topic_id in topic_order(assignment)}


def _failed(error: ErrorCode) -> ShareHeartbeatResult:
    return ShareHeartbeatResult(STORE_FAILURES.get(error, error))


def _unknown(member_id: str, group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")
