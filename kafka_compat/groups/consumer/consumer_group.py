"""State machine of one consumer group (KIP-848): members, epochs and assignments. It does no I/O.

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
- Regular expressions are resolved in the background, all those of a group together: when one is new, when
  topics were created, and when group.consumer.regex.refresh.interval.ms have passed, but at most every ten
  seconds. If the topics change, the group epoch rises.
- A static member that has left temporarily keeps its partitions until its session ends. It returns with a new
  member ID, and its former ID is fenced.

Every response shows the current state, and therefore waits until this state is committed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kafka_compat.coordinator_runtime.coordinator_log import STORE_ERRORS
from kafka_compat.coordinator_runtime.machine import Now, Outbox, Waiter, Write
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatError, HeartbeatResult
from kafka_compat.groups.consumer.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_TEMPORARILY_EPOCH,
    Member,
    MemberState,
    PartitionEpochs,
)
from kafka_compat.groups.consumer.reconciliation import Owned, reconciled
from kafka_compat.groups.consumer.records import (
    ConsumerRecord,
    CurrentAssignment,
    CurrentAssignmentRecord,
    GroupMetadata,
    GroupMetadataRecord,
    MemberMetadataRecord,
    RegexRecord,
    ResolvedRegex,
    TargetAssignmentRecord,
    TargetMetadata,
    TargetMetadataRecord,
)
from kafka_compat.groups.consumer.regular_expressions import ResolveRegexes, problem
from kafka_compat.groups.consumer.state import GroupState
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.timers import Timer, TimerKind, Timers

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.config.group import ConsumerGroupConfig, ConsumerGroupLimits
    from kafka_compat.groups.consumer.assignors.assignor import Assignment, TargetAssignment
    from kafka_compat.groups.records import Record
    from kafka_compat.groups.requests import Commit

_STORE_ERRORS: Final = STORE_ERRORS | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Maps error codes of a failed append to error codes for members."""

_REGEX_INTERVAL_MS: Final = 10_000
"""Time between two resolutions of a group's regular expressions, in ms."""

FIRST_EPOCH: Final = 1
"""The epoch of a new group, before its first member has joined."""


class MembersStored(NamedTuple):
    """A write of members, epochs or assignments."""


class Topics(Protocol):
    """The topics of the cluster, as a group sees them."""

    def topic_id(self, name: str) -> "UUID | None":
        """Return the ID of a topic, or None if it does not exist."""

    @property
    def new_topics_version(self) -> int:
        """The version of the metadata in which the last topic was created."""

    @property
    def version(self) -> int:
        """The version of the metadata."""

    @property
    def names(self) -> list[str]:
        """The names of all topics."""

    def metadata_hash(self, names: "Sequence[str]") -> int:
        """Return the metadata hash of a group that subscribes to these topics (0: none of them exists)."""


class Assign(Protocol):
    """Computes target assignments."""

    def __call__(
        self,
        assignor: str,
        members: Mapping[str, Member],
        targets: "Mapping[str, Assignment]",
        names_of: Callable[[Member], frozenset[str]],
    ) -> "TargetAssignment":
        """Return the target assignment of a group, in the order of its records. `targets` is the former
        assignment, and `names_of` returns all topics to which a member subscribes.
        """


class ConsumerGroups(NamedTuple):
    """What the consumer groups of a broker have in common."""

    topics: Topics
    assign: Assign
    settings: "Callable[[str], ConsumerGroupConfig]"
    """A function that returns the current settings of a group."""
    limits: "ConsumerGroupLimits"


class ConsumerGroup:
    """The members of one consumer group. `state` is what is stored of them."""

    def __init__(
        self,
        group_id: str,
        snapshots: SnapshotRegistry,
        common: ConsumerGroups,
        outbox: Outbox,
        timers: Timers,
        counts: GroupCounts,
    ) -> None:
        self.group_id = group_id
        self.state = GroupState(snapshots)
        self._common = common
        self._topics = common.topics
        self._outbox = outbox
        self._timers = timers
        self._counts = counts
        self._must_compare_hash = True
        """Whether a subscribed topic may have changed since the hash was computed."""
        self._is_resolving = False
        """Whether the regular expressions are being resolved."""
        self._resolved_version = -1
        """The metadata version for which this coordinator resolved the regular expressions."""

    def heartbeat(self, request: Heartbeat, waiter: Waiter, replaced: "list[Record]", now: Now) -> None:
        """Process a heartbeat that joins the group, leaves it, or keeps a session alive. `replaced` are the
        tombstones of a group of another type that this group replaces.
        """
        try:
            if request.member_epoch in (LEAVE_EPOCH, LEAVE_TEMPORARILY_EPOCH):
                result, records = self._leave(request, now)
            else:
                result, records = self._stay(request, now)
        except HeartbeatError as error:
            self._outbox.respond(waiter, error.result)
            return
        if records:
            self._outbox.write(Write([*replaced, *records], MembersStored()))
        self._outbox.respond_when_committed(waiter, result, _failed)

    def _stay(self, request: Heartbeat, now: Now) -> tuple[HeartbeatResult, list[ConsumerRecord]]:
        records: list[ConsumerRecord] = []
        former, replaced = self._known_member(request, records)
        updated = self._with_subscription(former, request)
        if updated != former or (updated.member_id not in self.state.members and replaced is None):
            records.append(MemberMetadataRecord(self.group_id, updated.member_id, updated))
        has_new_topics = updated.topic_names != former.topic_names
        if updated.topic_regex != former.topic_regex:
            has_new_topics |= self._change_regex(former, updated, records)
        self._resolve_if_due(former, updated, request, now)
        group_epoch = self._next_epoch(former, updated, has_new_topics, records)
        target_epoch, target = self._target(group_epoch, former, updated, replaced, now, records)
        after = reconciled(
            updated,
            target_epoch,
            target,
            self._topic_ids(updated) if has_new_topics else None,
            request.owned,
            lambda topic_id, partition: (
                self.state.owner(topic_id, partition) not in (None, updated.member_id)
            ),
        )
        has_moved = after is not updated and after != updated
        if has_moved:
            records.append(current_assignment_record(self.group_id, after))
        self._set_timers(after, has_moved, now)
        must_tell = request.is_full or after.assigned != former.assigned
        return (
            HeartbeatResult(
                ErrorCode.NONE,
                None,
                after.member_id,
                after.epoch,
                self._common.settings(self.group_id).heartbeat_interval_ms,
                after.assigned if must_tell else None,
            ),
            records,
        )

    def _known_member(
        self, request: Heartbeat, records: list[ConsumerRecord]
    ) -> tuple[Member, Member | None]:
        """Return the member that sends the heartbeat, which may be new. Raises HeartbeatError.

        If a static member returns, also return the former member, and add the records that replace it.
        """
        joins = request.member_epoch == JOIN_EPOCH
        member = self.state.members.current.get(request.member_id)
        if request.instance_id is not None:
            member = self.state.static_member(request.instance_id)
            if member is None and not joins:
                raise _unknown_instance(request)
        elif member is None and not joins:
            raise _unknown(request.member_id)
        if member is None:
            size_max = self._common.limits.size_max
            if len(self.state.members) >= size_max:
                raise HeartbeatError(
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    f"The group already has {size_max} members (group.consumer.max.size)",
                )
            return Member(request.member_id), None
        if not joins:
            _check_instance(member, request)
            _check_epoch(member, request)
        elif request.instance_id is not None:
            return self._return_static(member, request, records), member
        return member, None

    def _return_static(self, member: Member, request: Heartbeat, records: list[ConsumerRecord]) -> Member:
        if member.epoch != LEAVE_TEMPORARILY_EPOCH:
            raise HeartbeatError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"The instance ID {request.instance_id} belongs to member {member.member_id}, which has not "
                "left the group",
            )
        returned = member._replace(member_id=request.member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        records += self._removal(member)
        records.append(MemberMetadataRecord(self.group_id, returned.member_id, returned))
        target = self.state.targets.current.get(member.member_id, {})
        records.append(TargetAssignmentRecord(self.group_id, returned.member_id, target))
        records.append(current_assignment_record(self.group_id, returned))
        return returned

    def _with_subscription(self, member: Member, request: Heartbeat) -> Member:
        """Return the member with the fields that the request contains."""
        changes: dict[str, object] = {}
        if request.instance_id is not None:
            changes["instance_id"] = request.instance_id
        if request.rack_id is not None:
            changes["rack_id"] = request.rack_id
        if request.rebalance_timeout_ms != -1:
            changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        if request.topic_names is not None:
            changes["topic_names"] = tuple(sorted(set(request.topic_names)))
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

    def _next_epoch(
        self, former: Member, updated: Member, has_new_topics: bool, records: list[ConsumerRecord]
    ) -> int:
        """Return the group epoch after this heartbeat, and add its record if it is a new one."""
        state = self.state
        assignor = state.votes.preferred or self._common.limits.assignors[0]
        rises = has_new_topics or self._assignor_after(former, updated) != assignor
        metadata = state.metadata.current
        if not rises and not self._must_compare_hash and metadata is not None:
            return metadata.epoch
        metadata_hash = self._topics.metadata_hash(sorted(self._names_after(former, updated)))
        self._must_compare_hash = False
        if metadata is None:
            # The topics of a regular expression are not known yet.
            epoch = FIRST_EPOCH + 1 if rises or metadata_hash else FIRST_EPOCH
        elif rises or metadata_hash != metadata.metadata_hash:
            epoch = metadata.epoch + 1
        else:
            return metadata.epoch
        self._counts.consumer_rebalances += epoch > FIRST_EPOCH
        records.append(GroupMetadataRecord(self.group_id, GroupMetadata(epoch, metadata_hash)))
        self._outbox.note(f"group epoch {epoch} after a heartbeat of member {updated.member_id}")
        return epoch

    def _change_regex(self, former: Member, updated: Member, records: list[ConsumerRecord]) -> bool:
        """Change the regular expression of a member. Return whether its topics are known to be different."""
        old, new = former.topic_regex, updated.topic_regex
        if old and old not in self._regexes_after(former, updated):
            records.append(RegexRecord(self.group_id, old, None))
        if not new:
            return True
        if new not in self.state.regex_subscribers:
            reason = problem(new)
            if reason is not None:
                raise HeartbeatError(
                    ErrorCode.INVALID_REGULAR_EXPRESSION,
                    f"The regular expression {new!r} is not valid: {reason}",
                )
            return False
        return new in self.state.regexes

    def _regexes_after(self, former: Member, updated: Member | None) -> set[str]:
        """Return the regular expressions to which members subscribe after this change."""
        subscribers = self.state.regex_subscribers
        regexes = set(subscribers)
        if former.topic_regex and subscribers[former.topic_regex] == 1:
            regexes.discard(former.topic_regex)
        if updated is not None and updated.topic_regex:
            regexes.add(updated.topic_regex)
        return regexes

    def _names_after(self, former: Member, updated: Member | None) -> set[str]:
        """Return the topics to which members subscribe after this change."""
        subscribers = self.state.subscribers
        names = set(subscribers).difference(name for name in former.topic_names if subscribers[name] == 1)
        if updated is not None:
            names.update(updated.topic_names)
        for regex in self._regexes_after(former, updated):
            resolved = self.state.regexes.current.get(regex)
            if resolved is not None:
                names |= resolved.topics
        return names

    def _resolve_if_due(self, former: Member, updated: Member, request: Heartbeat, now: Now) -> None:
        if self._is_resolving or not (self.state.regex_subscribers or updated.topic_regex):
            return
        regexes = self._regexes_after(former, updated)
        known = self.state.regexes.current
        resolved_ms = max((each.timestamp_ms for each in known.values()), default=0)
        age_ms = now.wall_ms - resolved_ms
        if not regexes or age_ms < _REGEX_INTERVAL_MS:
            return
        if (
            regexes != known.keys()
            or self._resolved_version < self._topics.new_topics_version
            or age_ms >= self._common.limits.regex_refresh_interval_ms
        ):
            self._is_resolving = True
            self._outbox.perform(ResolveRegexes(tuple(sorted(regexes)), request.may_describe))

    def regexes_resolved(self, found: Mapping[str, frozenset[str]], version: int, now: Now) -> None:
        """Store the topics that match the group's regular expressions in this version of the metadata."""
        self._is_resolving = False
        self._resolved_version = version
        state = self.state
        records: list[ConsumerRecord] = []
        names = set(state.subscribers)
        has_new_topics = False
        for regex in state.regex_subscribers:
            known = state.regexes.current.get(regex)
            topics = found.get(regex)
            if topics is None:
                topics = frozenset() if known is None else known.topics
            else:
                records.append(RegexRecord(self.group_id, regex, ResolvedRegex(topics, version, now.wall_ms)))
                has_new_topics |= topics != (frozenset() if known is None else known.topics)
            names |= topics
        metadata = state.metadata.current
        if metadata is not None:
            metadata_hash = self._topics.metadata_hash(sorted(names))
            if has_new_topics or metadata_hash != metadata.metadata_hash:
                epoch = metadata.epoch + 1
                self._counts.consumer_rebalances += 1
                records.append(GroupMetadataRecord(self.group_id, GroupMetadata(epoch, metadata_hash)))
        if records:
            self._outbox.write(Write(records, MembersStored()))

    def _target(
        self,
        group_epoch: int,
        former: Member,
        member: Member,
        replaced: Member | None,
        now: Now,
        records: list[ConsumerRecord],
    ) -> "tuple[int, Assignment]":
        """Return the epoch and the member's part of the target assignment, which is computed if it is due."""
        state = self.state
        known = state.target.current
        due_ms = known.timestamp_ms + self._common.settings(self.group_id).assignment_interval_ms
        if group_epoch <= known.epoch or (known.timestamp_ms and now.wall_ms < due_ms):
            return max(known.epoch, 0), state.target_of(member.member_id, member.instance_id)
        members = state.ordered_members()
        if replaced is not None:
            del members[replaced.member_id]
        members[member.member_id] = member
        targets = dict(state.targets.current)
        if member.instance_id is not None:
            # The target assignment of a static member that has returned is still stored under its former ID.
            targets[member.member_id] = state.target_of(member.member_id, member.instance_id)
        computed = self._common.assign(self._assignor_after(former, member), members, targets, self._names_of)
        for member_id, assignment in computed.items():
            if assignment != state.targets.current.get(member_id):
                records.append(TargetAssignmentRecord(self.group_id, member_id, assignment))
        records.append(TargetMetadataRecord(self.group_id, TargetMetadata(group_epoch, now.wall_ms)))
        return group_epoch, computed.get(member.member_id, {})

    def _assignor_after(self, former: Member, updated: Member) -> str:
        """Return the assignor that most members prefer after this change, or the default."""
        votes = self.state.votes
        preferred = votes.preferred_after(former.server_assignor, updated.server_assignor)
        return preferred or self._common.limits.assignors[0]

    def _names_of(self, member: Member) -> frozenset[str]:
        """Return all topics to which a member subscribes."""
        resolved = self.state.regexes.current.get(member.topic_regex)
        return frozenset(member.topic_names).union(() if resolved is None else resolved.topics)

    def _topic_ids(self, member: Member) -> "set[UUID]":
        return {
            topic_id
            for topic_id in map(self._topics.topic_id, self._names_of(member))
            if topic_id is not None
        }

    def _leave(self, request: Heartbeat, now: Now) -> tuple[HeartbeatResult, list[ConsumerRecord]]:
        if request.instance_id is None:
            member = self.state.members.current.get(request.member_id)
            if member is None:
                raise _unknown(request.member_id)
        else:
            member = self.state.static_member(request.instance_id)
            if member is None:
                raise _unknown_instance(request)
            _check_instance(member, request)
        if request.member_epoch == LEAVE_TEMPORARILY_EPOCH:
            left = member._replace(epoch=LEAVE_TEMPORARILY_EPOCH, pending_revocation={})
            self._outbox.note(f"static member {request.instance_id} left temporarily")
            records: list[ConsumerRecord] = [current_assignment_record(self.group_id, left)]
        else:
            records = self._fence(member, "left")
        return HeartbeatResult(ErrorCode.NONE, None, member.member_id, request.member_epoch), records

    def _fence(self, member: Member, why: str) -> list[ConsumerRecord]:
        """Remove a member from the group. Return the records."""
        self._outbox.note(f"member {member.member_id} {why}")
        self._cancel_timers(member.member_id)
        records = self._removal(member)
        if member.topic_regex and member.topic_regex not in self._regexes_after(member, None):
            records.append(RegexRecord(self.group_id, member.topic_regex, None))
        epoch = self.state.epoch + 1
        metadata_hash = self._topics.metadata_hash(sorted(self._names_after(member, None)))
        records.append(GroupMetadataRecord(self.group_id, GroupMetadata(epoch, metadata_hash)))
        if len(self.state.members) == 1:
            records.append(TargetMetadataRecord(self.group_id, TargetMetadata(epoch, 0)))
        return records

    def _removal(self, member: Member) -> list[ConsumerRecord]:
        """Return the tombstones of a member, in the order that Kafka needs to replay them."""
        return [
            CurrentAssignmentRecord(self.group_id, member.member_id, None),
            TargetAssignmentRecord(self.group_id, member.member_id, None),
            MemberMetadataRecord(self.group_id, member.member_id, None),
        ]

    def check_commit(self, request: "Commit") -> ErrorCode:
        """Return NONE if these offsets may be committed, or an error code (KIP-848, KIP-1251)."""
        epoch, members = request.generation_id, self.state.members.current
        if epoch < 0 and (not members or (request.producer is not None and not request.member_id)):
            return ErrorCode.NONE
        member = members.get(request.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_transactional = request.producer is not None
        if member.classic is None and not request.has_member_epochs and not is_transactional:
            return ErrorCode.UNSUPPORTED_VERSION
        if epoch == member.epoch:
            return ErrorCode.NONE
        if member.classic is not None or not request.has_member_epochs:
            return ErrorCode.ILLEGAL_GENERATION
        if epoch < member.epoch and all(
            self._has_since(member, topic, partition, epoch) for topic, partition in request.offsets
        ):
            return ErrorCode.NONE
        return ErrorCode.STALE_MEMBER_EPOCH

    def _has_since(self, member: Member, topic: str, partition: int, epoch: int) -> bool:
        """Return whether the member has had a partition since this epoch or an earlier one."""
        topic_id = self._topics.topic_id(topic)
        if topic_id is None:
            return False
        for partitions in (member.assigned, member.pending_revocation):
            assigned = partitions.get(topic_id, {}).get(partition)
            if assigned is not None:
                return assigned <= epoch
        return False

    def tombstones(self) -> list[ConsumerRecord]:
        """Return the records that delete the group, in the order that Kafka needs to replay them."""
        state, group_id = self.state, self.group_id
        records: list[ConsumerRecord] = []
        records += (CurrentAssignmentRecord(group_id, each, None) for each in state.members.current)
        records += (TargetAssignmentRecord(group_id, each, None) for each in state.members.current)
        records.append(TargetMetadataRecord(group_id, None))
        records += (MemberMetadataRecord(group_id, each, None) for each in state.members.current)
        records += (RegexRecord(group_id, each, None) for each in state.regexes.current)
        records.append(GroupMetadataRecord(group_id, None))
        return records

    def topics_changed(self) -> None:
        """Compare the metadata hash with the next heartbeat, because a subscribed topic may have changed."""
        self._must_compare_hash = True

    def write_failed(self, now: Now) -> None:
        """Continue with the stored state, because its last change could not be stored."""
        self._must_compare_hash = True
        for member_id in self.state.members.current:
            if not self._timers.is_set(Timer(TimerKind.SESSION, member_id)):
                self._start_session(member_id, now)

    def loaded(self, now: Now) -> None:
        """Start the sessions of all members."""
        for member in self.state.members.current.values():
            self._start_session(member.member_id, now)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._start_revocation(member, now)

    def timer_over(self, timer: Timer) -> None:
        """Fence a member whose session has ended, or that has not revoked its partitions in time."""
        member = self.state.members.current.get(timer.member_id)
        if member is None:
            return
        if timer.kind is TimerKind.SESSION:
            records = self._fence(member, "was fenced: its session expired")
        elif member.state is MemberState.UNREVOKED_PARTITIONS:
            timeout_ms = member.rebalance_timeout_ms
            records = self._fence(
                member, f"was fenced: it did not revoke its partitions within {timeout_ms} ms"
            )
        else:
            return
        self._outbox.write(Write(records, MembersStored()))

    def _set_timers(self, member: Member, has_moved: bool, now: Now) -> None:
        self._start_session(member.member_id, now)
        if not has_moved:
            return
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._start_revocation(member, now)
        else:
            self._timers.cancel(Timer(TimerKind.REVOCATION, member.member_id))

    def _start_session(self, member_id: str, now: Now) -> None:
        timeout_ms = self._common.settings(self.group_id).session_timeout_ms
        self._timers.set(Timer(TimerKind.SESSION, member_id), now.timer_ms + timeout_ms)

    def _start_revocation(self, member: Member, now: Now) -> None:
        timer = Timer(TimerKind.REVOCATION, member.member_id)
        self._timers.set(timer, now.timer_ms + member.rebalance_timeout_ms)

    def _cancel_timers(self, member_id: str) -> None:
        self._timers.cancel(Timer(TimerKind.SESSION, member_id))
        self._timers.cancel(Timer(TimerKind.REVOCATION, member_id))


def current_assignment_record(group_id: str, member: Member) -> CurrentAssignmentRecord:
    """Return the record of a member's current assignment."""
    current = CurrentAssignment(
        member.epoch, member.previous_epoch, member.state, member.assigned, member.pending_revocation
    )
    return CurrentAssignmentRecord(group_id, member.member_id, current)


def _failed(error: ErrorCode) -> HeartbeatResult:
    return HeartbeatResult(_STORE_ERRORS.get(error, error))


def _unknown(member_id: str) -> HeartbeatError:
    return HeartbeatError(ErrorCode.UNKNOWN_MEMBER_ID, f"The group has no member {member_id}")


def _unknown_instance(request: Heartbeat) -> HeartbeatError:
    return HeartbeatError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"No member of the group has the instance ID {request.instance_id}"
    )


def _check_instance(member: Member, request: Heartbeat) -> None:
    if member.member_id != request.member_id:
        raise HeartbeatError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"The instance ID {request.instance_id} now belongs to member {member.member_id}",
        )


def _check_epoch(member: Member, request: Heartbeat) -> None:
    epoch = request.member_epoch
    if epoch == member.epoch:
        return
    if epoch == member.previous_epoch < member.epoch and _is_part_of(request.owned, member.assigned):
        return
    relation = "greater" if epoch > member.epoch else "smaller"
    raise HeartbeatError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The member's epoch {epoch} is {relation} than {member.epoch}. It must give up its partitions and "
        "join again",
    )


def _is_part_of(owned: Owned | None, assigned: PartitionEpochs) -> bool:
    return owned is not None and all(
        partition in assigned.get(topic_id, ())
        for topic_id, partitions in owned.items()
        for partition in partitions
    )
