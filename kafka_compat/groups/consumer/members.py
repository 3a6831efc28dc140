"""State machine of the members of one consumer group (KIP-848): epochs and assignments. It does no I/O.

Rules
- The group epoch rises when a member joins with a subscription, changes it, leaves or is fenced, and when a
  subscribed topic changes. It does not rise when a static member leaves temporarily or returns.
- A heartbeat computes a new target assignment if the group epoch is greater than the epoch of the target
  assignment, and group.consumer.assignment.interval.ms have passed since the last one (KIP-1263). There is
  no timer: until then, heartbeats get the former target assignment.
- Each heartbeat reconciles its member with the target assignment (`reconciliation.py`).
- A member is fenced when its session ends, or when it has not revoked its partitions within its rebalance
  timeout. The session starts anew with each heartbeat, and for all members when the group is loaded.
- The epoch of a heartbeat must be the member's. The previous epoch is accepted if the member owns no
  partition that it should not have: then the last response was lost.
- Regular expressions are resolved in the background (`group_regexes.py`). If their topics change, the group
  epoch rises.
- Some members may use the classic protocol (`classic_members.py`).
- A static member that has left temporarily keeps its partitions until its session ends. It returns with a new
  member ID, and its former ID is fenced.

Every response shows the current state, and therefore waits until this state is committed.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.coordinator_runtime.machine import Now, Outbox, Output, Waiter, Write
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.consumer.assignors.assignor import same_partitions
from kafka_compat.groups.consumer.group_regexes import GroupRegexes
from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult, rejected
from kafka_compat.groups.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_TEMPORARILY_EPOCH,
    Member,
)
from kafka_compat.groups.consumer.member_checks import (
    check_epoch,
    check_instance,
    check_released,
    leaving_member,
    unknown,
    unknown_instance,
)
from kafka_compat.groups.consumer.member_timers import MemberTimers, late_member
from kafka_compat.groups.consumer.reconciliation import Owned, reconciled
from kafka_compat.groups.consumer.records import (
    ConsumerRecord,
    CurrentAssignmentRecord,
    GroupMetadataRecord,
    MemberMetadataRecord,
    PartitionMetadataRecord,
    RegexRecord,
    TargetAssignmentRecord,
    TargetMetadataRecord,
    current_assignment_record,
)
from kafka_compat.groups.consumer.state import GroupState
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.member_writes import STORE_FAILURES, MembersStored
from kafka_compat.groups.record_types import GroupMetadata, TargetMetadata
from kafka_compat.groups.timers import Timer, Timers
from kafka_compat.long_work import Steps, batched, sorted_in_steps

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.groups.consumer.assignors.assignor import Assignment
    from kafka_compat.groups.consumer.conversion import Downgrade
    from kafka_compat.groups.records import Record


class Replaced(NamedTuple):
    """A classic group that this group replaces: the tombstones of the classic group and the first records of
    this group, and what to do when they have been appended.
    """

    records: "list[Record]"
    then: Callable[[], Output]


class ConsumerMembers:
    """The members of one consumer group. `state` is what is stored of them, and `downgrade` converts the
    group to a classic group.
    """

    def __init__(
        self,
        group_id: str,
        state: GroupState,
        common: ConsumerGroups,
        downgrade: "Downgrade",
        outbox: Outbox,
        timers: Timers,
        counts: GroupCounts,
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.common = common
        self.downgrade = downgrade
        self.outbox = outbox
        self.timers = MemberTimers(group_id, state, common, timers)
        self._topics = common.topics
        self._counts = counts
        self._must_compare_hash = True
        """Whether a subscribed topic may have changed since the hash was computed."""
        self._regexes = GroupRegexes(group_id, state, common, outbox)

    def heartbeat(
        self, request: Heartbeat, waiter: Waiter, now: Now, replaced: Replaced | None = None
    ) -> Steps[None]:
        """Process a heartbeat that joins the group, leaves it, or keeps a session alive."""
        write: Write | None
        try:
            if request.member_epoch in (LEAVE_EPOCH, LEAVE_TEMPORARILY_EPOCH):
                result, write = self._leave(request, now)
            else:
                result, records = yield from self._stay(request, now)
                write = Write(records, MembersStored()) if records else None
        except KafkaError as error:
            self.outbox.respond(waiter, rejected(error))
            return
        if write is not None and replaced is not None:
            write = write._replace(records=[*replaced.records, *write.records], then=replaced.then)
        if write is not None:
            self.outbox.write(write)
        self.outbox.respond_when_committed(waiter, result, _failed)

    def _stay(self, request: Heartbeat, now: Now) -> Steps[tuple[HeartbeatResult, list[ConsumerRecord]]]:
        records: list[ConsumerRecord] = []
        former, replaced = self._known_member(request, records)
        updated = yield from self._with_subscription(former, request)
        yield None
        has_new_topics = self.change_member(former, updated, replaced, records)
        self._regexes.resolve_if_due(former, updated, request, now)
        yield None
        group_epoch, compared = yield from self.next_epoch(former, updated, has_new_topics, records)
        target_epoch, target = yield from self.target(
            group_epoch, compared, former, updated, replaced, now, records
        )
        yield None
        after = self.reconcile(former, updated, target_epoch, target, request.owned, records)
        yield None
        self.timers.after_heartbeat(after, after is not updated, now)
        must_tell = request.is_full or after.assigned != former.assigned
        return (
            HeartbeatResult(
                ErrorCode.NONE,
                None,
                after.member_id,
                after.epoch,
                self.common.settings(self.group_id).heartbeat_interval_ms,
                after.assigned if must_tell else None,
            ),
            records,
        )

    def change_member(
        self, former: Member, updated: Member, replaced: Member | None, records: list[ConsumerRecord]
    ) -> bool:
        """Add the records of a member's new subscription. `replaced` is the static member that it replaces.
        Return whether the member's topics are known to be different.
        """
        if updated != former or (updated.member_id not in self.state.members and replaced is None):
            records.append(MemberMetadataRecord(self.group_id, updated.member_id, updated))
        has_new_topics = updated.topic_names != former.topic_names
        if updated.topic_regex != former.topic_regex:
            has_new_topics |= self._regexes.change(former, updated, records)
        return has_new_topics

    def reconcile(
        self,
        former: Member,
        updated: Member,
        target_epoch: int,
        target: "Assignment",
        owned: Owned | None,
        records: list[ConsumerRecord],
    ) -> Member:
        """Return the next state of a member and add its record, or return the same object if it cannot go on.
        `target` is the member's part of the target assignment of `target_epoch`.
        """
        # A new regular expression counts even before its topics are known.
        has_new_topics = (
            updated.topic_names != former.topic_names or updated.topic_regex != former.topic_regex
        )

        def is_owned_by_other(topic_id: "UUID", partition: int) -> bool:
            owner = self.state.owner(topic_id, partition)
            # The partitions of a static member that is being replaced still belong to its former ID.
            return owner not in (None, updated.member_id) and (
                partition not in updated.pending_revocation.get(topic_id, ())
            )

        if not has_new_topics and updated.is_reconciled_to(target_epoch):
            return updated
        after = reconciled(
            updated,
            target_epoch,
            target,
            self._topic_ids(updated),
            has_new_topics,
            owned,
            is_owned_by_other,
            subscribes=bool(updated.topic_names or self.state.matched(updated.topic_regex)),
        )
        if after is updated or after == updated:
            return updated
        records.append(current_assignment_record(self.group_id, after))
        return after

    def check_size(self, member_id: str, instance_id: str | None) -> None:
        """Raise KafkaError (GROUP_MAX_SIZE_REACHED) if the group is full and this is not a member."""
        members, most = self.state.members.current, self.common.limits.size_max
        if len(members) < most or member_id in members or instance_id in self.state.static_ids:
            return
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The group already has {most} members (group.consumer.max.size)",
        )

    def _known_member(
        self, request: Heartbeat, records: list[ConsumerRecord]
    ) -> tuple[Member, Member | None]:
        """Return the member that sends the heartbeat, which may be new. Raises KafkaError.

        If a static member returns, also return the former member, and add the records that replace it.
        """
        self.check_size(request.member_id, request.instance_id)
        joins = request.member_epoch == JOIN_EPOCH
        member = self.state.members.current.get(request.member_id)
        if request.instance_id is not None:
            member = self.state.static_member(request.instance_id)
            if member is None and not joins:
                raise unknown_instance(request)
        elif member is None and not joins:
            raise unknown(request.member_id)
        if member is None:
            # A known member may join again as a static member, and then keeps its state.
            return self.state.members.current.get(request.member_id) or Member(request.member_id), None
        if not joins:
            check_instance(member, request)
            check_epoch(member, request)
        elif request.instance_id is not None:
            check_released(member, request.instance_id)
            return self.replace_static(member, request.member_id, records), member
        return member, None

    def replace_static(self, member: Member, member_id: str, records: list[ConsumerRecord]) -> Member:
        """Replace a static member by a new one, which inherits everything but the epoch. Add the records, and
        return the new member.
        """
        self.timers.cancel(member.member_id)
        returned = member._replace(member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        records += self._removal(member)
        records.append(MemberMetadataRecord(self.group_id, returned.member_id, returned))
        target = self.state.targets.current.get(member.member_id, {})
        records.append(TargetAssignmentRecord(self.group_id, returned.member_id, target))
        records.append(current_assignment_record(self.group_id, returned))
        return returned

    def _with_subscription(self, member: Member, request: Heartbeat) -> Steps[Member]:
        """Return the member with the fields that the request contains."""
        changes: dict[str, object] = {}
        if request.instance_id is not None:
            changes["instance_id"] = request.instance_id
        if request.rack_id is not None:
            changes["rack_id"] = request.rack_id
        if request.rebalance_timeout_ms != -1:
            changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        if request.topic_names is not None:
            names = yield from sorted_in_steps(set(request.topic_names))
            changes["topic_names"] = tuple(names)
        if request.topic_regex is not None:
            changes["topic_regex"] = request.topic_regex
        if request.server_assignor is not None:
            changes["server_assignor"] = request.server_assignor
        return member._replace(
            **changes,  # type: ignore[arg-type]
            client_id=request.client_id,
            client_host=request.client_host,
            classic=None,
        )

    def next_epoch(
        self, former: Member, updated: Member, has_new_topics: bool, records: list[ConsumerRecord]
    ) -> Steps[tuple[int, bool]]:
        """Return the group epoch after this heartbeat, and whether the subscriptions have been compared with
        those before it. Add the record of a new epoch.
        """
        state = self.state
        assignor = state.votes.preferred or self.common.limits.assignors[0]
        rises = has_new_topics or self._assignor_after(former, updated) != assignor
        metadata = state.current_metadata
        if not rises and not self._must_compare_hash:
            return metadata.epoch, False
        self._must_compare_hash = False
        names = self.state.subscribed_names([former], updated, self._topics.existing)
        yield None
        metadata_hash = self._topics.metadata_hash(names)
        yield None
        if not rises and metadata_hash == metadata.metadata_hash:
            return metadata.epoch, True
        epoch = metadata.epoch + 1
        self._counts.consumer_rebalances += 1
        records.append(GroupMetadataRecord(self.group_id, GroupMetadata(epoch, metadata_hash)))
        self.outbox.note(f"group epoch {epoch} after a heartbeat of member {updated.member_id}")
        return epoch, True

    def regexes_resolved(self, found: Mapping[str, frozenset[str]], version: int, now: Now) -> Steps[None]:
        """Store the topics that match the group's regular expressions in this version of the metadata."""
        state = self.state
        records: list[ConsumerRecord] = []
        names, has_new_topics = yield from self._regexes.resolved(found, version, now, records)
        metadata = state.current_metadata
        if state.exists:
            metadata_hash = self._topics.metadata_hash(names)
            if has_new_topics or metadata_hash != metadata.metadata_hash:
                epoch = metadata.epoch + 1
                self._must_compare_hash = False
                self._counts.consumer_rebalances += 1
                records.append(GroupMetadataRecord(self.group_id, GroupMetadata(epoch, metadata_hash)))
        if records:
            self.outbox.write(Write(records, MembersStored()))

    def target(
        self,
        group_epoch: int,
        compared: bool,
        former: Member,
        member: Member,
        replaced: Member | None,
        now: Now,
        records: list[ConsumerRecord],
    ) -> "Steps[tuple[int, Assignment]]":
        """Return the epoch and the member's part of the target assignment, which is computed if it is due."""
        state = self.state
        known = state.target.current
        interval_ms = self.common.settings(self.group_id).assignment_interval_ms
        # The age is negative if the clock has been set back.
        is_recent = known.timestamp_ms != 0 and 0 <= now.wall_ms - known.timestamp_ms < interval_ms
        if group_epoch <= known.epoch or is_recent:
            return known.epoch, state.target_of(member.member_id, member.instance_id)
        members = state.ordered_members()
        targets = dict(state.targets.current)
        if replaced is not None and replaced.member_id != member.member_id:
            del members[replaced.member_id]
            inherited = targets.pop(replaced.member_id, None)
            if inherited is not None:
                targets[member.member_id] = inherited
        members[member.member_id] = member
        if compared:
            is_homogeneous = yield from state.is_homogeneous_after(former, member)
        else:
            # As in Kafka, these are the subscriptions before the heartbeat.
            is_homogeneous = state.is_homogeneous
        yield None
        computed = yield from self.common.assign(
            self._assignor_after(former, member), members, targets, self.state.matched, is_homogeneous
        )
        for some in batched(computed.items()):
            yield None
            for member_id, assignment in some:
                stored = targets.get(member_id)
                if stored is None or not same_partitions(stored, assignment):
                    records.append(TargetAssignmentRecord(self.group_id, member_id, assignment))
        records.append(TargetMetadataRecord(self.group_id, TargetMetadata(group_epoch, now.wall_ms)))
        return group_epoch, computed.get(member.member_id, {})

    def _assignor_after(self, former: Member, updated: Member) -> str:
        """Return the assignor that most members prefer after this change, or the default."""
        votes = self.state.votes
        preferred = votes.preferred_after(former.server_assignor, updated.server_assignor)
        return preferred or self.common.limits.assignors[0]

    def _topic_ids(self, member: Member) -> "set[UUID]":
        existing = self._topics.existing
        names = existing(member.topic_names) | existing(self.state.matched(member.topic_regex))
        return {topic_id for topic_id in map(self._topics.topic_id, names) if topic_id is not None}

    def _leave(self, request: Heartbeat, now: Now) -> tuple[HeartbeatResult, Write]:
        member = leaving_member(self.state, request)
        if request.member_epoch == LEAVE_TEMPORARILY_EPOCH:
            # KIP-1251: the member that returns may commit with any epoch.
            left = member._replace(
                epoch=LEAVE_TEMPORARILY_EPOCH,
                assigned={topic_id: dict.fromkeys(each, 0) for topic_id, each in member.assigned.items()},
                pending_revocation={},
            )
            self.outbox.note(f"static member {request.instance_id} left temporarily")
            write = Write([current_assignment_record(self.group_id, left)], MembersStored())
        else:
            self.outbox.note(f"member {member.member_id} left")
            write = self.remove([member], now)
        return HeartbeatResult(ErrorCode.NONE, None, member.member_id, request.member_epoch), write

    def remove(self, leaving: Collection[Member], now: Now) -> Write:
        """Return the write that removes members from the group. If only classic members remain, it may
        convert the group to a classic group.
        """
        if self.downgrade.is_due_without(self.state, leaving):
            reason = "the last member of the consumer protocol left"
            record, then = self.downgrade.convert(self.state, leaving, None, reason, now)
            return Write([*self.tombstones(), record], MembersStored(), then=then)
        records: list[ConsumerRecord] = []
        for member in leaving:
            self.timers.cancel(member.member_id)
            records += self._removal(member)
        gone = self.state.regex_subscribers.keys() - self.state.subscribed_regexes(leaving, None)
        records += (RegexRecord(self.group_id, regex, None) for regex in sorted(gone))
        epoch = self.state.epoch + 1
        names = self.state.subscribed_names(leaving, None, self._topics.existing)
        metadata_hash = self._topics.metadata_hash(names)
        records.append(GroupMetadataRecord(self.group_id, GroupMetadata(epoch, metadata_hash)))
        if len(self.state.members) == len(leaving):
            records.append(TargetMetadataRecord(self.group_id, TargetMetadata(epoch, 0)))
        return Write(records, MembersStored())

    def _removal(self, member: Member) -> list[ConsumerRecord]:
        """Return the tombstones of a member, in the order that Kafka needs to replay them."""
        return [
            CurrentAssignmentRecord(self.group_id, member.member_id, None),
            TargetAssignmentRecord(self.group_id, member.member_id, None),
            MemberMetadataRecord(self.group_id, member.member_id, None),
        ]

    def tombstones(self, replaced: str = "", joining: str = "") -> "list[Record]":
        """Return the records that delete the group, in the order that Kafka needs to replay them. If the same
        write replaces a static member, `replaced` is its former member ID, and `joining` the new one.
        """
        state, group_id = self.state, self.group_id
        members = [joining if each == replaced else each for each in state.ordered_members()]
        records: list[Record] = []
        records += (CurrentAssignmentRecord(group_id, each, None) for each in members)
        records += (TargetAssignmentRecord(group_id, each, None) for each in members)
        records.append(TargetMetadataRecord(group_id, None))
        records += (MemberMetadataRecord(group_id, each, None) for each in members)
        records += (RegexRecord(group_id, each, None) for each in state.regexes.current)
        records.append(PartitionMetadataRecord(group_id, None))
        records.append(GroupMetadataRecord(group_id, None))
        return records

    def topics_changed(self) -> None:
        """Compare the metadata hash with the next heartbeat, because a subscribed topic may have changed."""
        self._must_compare_hash = True

    def write_failed(self, now: Now) -> None:
        """Continue with the stored state, because its last change could not be stored."""
        self._must_compare_hash = True
        self.timers.match_members(now)

    def timer_over(self, timer: Timer, now: Now) -> None:
        """Fence a member that has not done something in time."""
        late = late_member(timer, self.state)
        if late is not None:
            member, reason = late
            self.outbox.note(f"member {member.member_id} was fenced: {reason}")
            self.outbox.write(self.remove([member], now))


def _failed(error: ErrorCode) -> HeartbeatResult:
    return HeartbeatResult(STORE_FAILURES.get(error, error))
