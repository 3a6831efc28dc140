"""Rebalance state machine of one classic group: members, generations and assignments. It does no I/O: its
inputs are events and the time, and it adds responses and records to the `outbox`. `joining.py` handles
JoinGroup and LeaveGroup.

Rules
- A rebalance begins (PREPARING_REBALANCE) when a member is added, leaves, expires or changes its supported
  protocols, and when the leader rejoins. It ends when every member has joined, or when the longest rebalance
  timeout of any member has passed; members that have not joined by then are removed, except static members.
- The first rebalance of an empty group waits group.initial.rebalance.delay.ms. The wait is repeated while new
  members arrive, up to the rebalance timeout (KIP-134).
- Joining ends in COMPLETING_REBALANCE with a new generation, a leader, and a protocol that all members
  support. The leader's SyncGroup contains the assignment. When the assignment's record is committed, the
  assignment is distributed and the group is STABLE. A member that has not sent SyncGroup within the rebalance
  timeout is removed, and the group rebalances.
- In JoinGroup v4 and later, a new member first receives an ID and must rejoin with it before its session
  expires (KIP-394).
- A static member that rejoins without an ID takes its former place without a rebalance, unless the chosen
  protocol changes; its previous ID is fenced (KIP-345). In JoinGroup v9 and later, the response informs a
  returning leader that it is still leader and need not assign (KIP-814).
- A member expires when its session timeout has passed since its last request. For new members, the timeout is
  five minutes until their first rebalance has completed; after that, members that wait for a response cannot
  expire.
- A member that is removed while it waits for a response gets a response.
- Assignments, replaced static members, offsets and deletions become visible when their records are committed.
  `stored` mirrors the members in the log, and only its `replay` changes it. Pending members, waiting requests
  and sessions are not in the log; each coordinator initializes them from `stored`.

Events and their responses have the same order as in Kafka 3.9.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kafka_compat.coordinator_runtime.coordinator_log import STORE_ERRORS
from kafka_compat.coordinator_runtime.machine import Now, Outbox, Waiter, Write
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.classic.records import GroupRecord, GroupSnapshot
from kafka_compat.groups.classic.roster import Member, Roster, StoredGeneration
from kafka_compat.groups.classic.subscriptions import subscribed_topics
from kafka_compat.groups.requests import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_MEMBER_ID,
    GroupState,
    JoinResult,
    Sync,
    SyncResult,
)
from kafka_compat.groups.settings import GroupSettings
from kafka_compat.groups.timers import Timer, TimerKind, Timers

EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = GroupState

TRANSITIONS: Final[dict[GroupState, tuple[GroupState, ...]]] = {
    EMPTY: (PREPARING_REBALANCE, DEAD),
    PREPARING_REBALANCE: (COMPLETING_REBALANCE, EMPTY, DEAD),
    COMPLETING_REBALANCE: (STABLE, PREPARING_REBALANCE, DEAD),
    STABLE: (PREPARING_REBALANCE, DEAD),
    DEAD: (),
}

_STORE_ERRORS: Final = STORE_ERRORS | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Maps error codes of a failed append to error codes for members whose generation was not stored."""

_NEW_MEMBER_SESSION_MS: Final = 5 * 60_000
"""Session timeout of new members, whose first JoinGroup may take longer than their own timeout."""

_JOIN: Final = Timer(TimerKind.JOIN)
_SYNC: Final = Timer(TimerKind.SYNC)


class AssignmentStored(NamedTuple):
    """A write of the leader's assignment for a generation."""

    generation_id: int


class StaticMemberStored(NamedTuple):
    """A write of a static member's new ID. If it fails, `former` is restored."""

    member_id: str
    former: Member
    former_leader_id: str | None
    skips_assignment: bool


class EmptyGroupStored(NamedTuple):
    """A write of the group after its last member has left. No request waits for this write."""


class Rebalance:
    """Rebalance state machine of one classic group. `tick` is due at `timers.wake_at_ms`.

    `state_timestamp_ms` is the time of day of the last transition, or -1 if it is unknown because the record
    has an old format. `subscribed_topics` is None if the group's subscription cannot be determined.
    """

    def __init__(self, group_id: str, snapshots: SnapshotRegistry, settings: GroupSettings, now: Now) -> None:
        self.group_id = group_id
        self.state = EMPTY
        self.state_timestamp_ms = now.wall_ms
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.subscribed_topics: frozenset[str] | None = None
        self.stored = StoredGeneration(snapshots)
        self.roster = Roster()
        self.timers = Timers()
        self.outbox = Outbox()
        self.settings = settings
        self._member_added = False
        self._initial_delay_left_ms: int | None = None
        self._initial_delay_ms = 0

    def add_member(self, member: Member, waiter: Waiter, reason: str, now: Now) -> None:
        """Add a member. Its first JoinGroup request waits until the rebalance ends."""
        if self.state is PREPARING_REBALANCE and self.generation_id == 0:
            self._member_added = True
        self.roster.add(member)
        self.roster.awaiting_join[member.member_id] = waiter
        self.timers.set(Timer(TimerKind.SESSION, member.member_id), now.timer_ms + _NEW_MEMBER_SESSION_MS)
        self.prepare_unless_preparing(reason, now)

    def prepare_unless_preparing(self, reason: str, now: Now) -> None:
        if self.state is not PREPARING_REBALANCE:
            self.prepare(reason, now)

    def prepare(self, reason: str, now: Now) -> None:
        self.outbox.note(
            f"preparing to rebalance in state {self.state} with generation {self.generation_id}: {reason}"
        )
        if self.state is COMPLETING_REBALANCE:
            self._note_assignments(False)
            self._propagate_assignments(ErrorCode.REBALANCE_IN_PROGRESS, now)
        self._end_sync_wait()
        timeout_ms = self.roster.rebalance_timeout_ms
        self._initial_delay_left_ms = None
        if self.state is EMPTY:
            self._initial_delay_ms = self.settings.group_initial_rebalance_delay_ms
            self._initial_delay_left_ms = max(timeout_ms - self._initial_delay_ms, 0)
            timeout_ms = self._initial_delay_ms
        self._transition(PREPARING_REBALANCE, now)
        self.timers.set(_JOIN, now.timer_ms + timeout_ms)
        self.complete_join_if_all_joined(now)

    def complete_join_if_all_joined(self, now: Now) -> None:
        if (
            self.state is PREPARING_REBALANCE
            and self._initial_delay_left_ms is None
            and self.roster.all_joined
        ):
            self._complete_join(now)

    def _join_wait_over(self, now: Now) -> None:
        if self._initial_delay_left_ms and self._member_added:
            self._member_added = False
            waited_ms, left_ms = self._initial_delay_ms, self._initial_delay_left_ms
            self._initial_delay_ms = min(self.settings.group_initial_rebalance_delay_ms, left_ms)
            self._initial_delay_left_ms = max(left_ms - waited_ms, 0)
            self.timers.set(_JOIN, now.timer_ms + self._initial_delay_ms)
        else:
            self._complete_join(now)

    def _complete_join(self, now: Now) -> None:
        self.timers.cancel(_JOIN)
        self._initial_delay_left_ms = None
        late = [
            member.member_id
            for member in self.roster.members.values()
            if not member.is_static and member.member_id not in self.roster.awaiting_join
        ]
        for member_id in late:
            self.outbox.note(f"removed member {member_id}: it did not join in time")
            self.remove(member_id)
        if not self.roster.elect_joined_leader() and self.roster.members:
            # Only static members remain, and none has rejoined. Wait until their sessions expire.
            self.timers.set(_JOIN, now.timer_ms + self.roster.rebalance_timeout_ms)
            return
        self.generation_id += 1
        self.roster.unsynced.clear()
        if self.roster.members:
            self._start_generation(now)
        else:
            self._become_empty(now)

    def _start_generation(self, now: Now) -> None:
        members = self.roster.members
        self.protocol_name = self.roster.select_protocol()
        self._learn_subscription()
        self._transition(COMPLETING_REBALANCE, now)
        self.outbox.note(
            f"formed generation {self.generation_id} (members: {len(members)}, protocol {self.protocol_name})"
        )
        for member_id, member in members.items():
            waiter = self.roster.awaiting_join.pop(member_id, None)
            if waiter is not None:
                self.answer_join(member, waiter)
            self.restart_session(member, now)
            member.is_new = False
        self.roster.unsynced.update(members)
        self.timers.set(_SYNC, now.timer_ms + self.roster.rebalance_timeout_ms)

    def _become_empty(self, now: Now) -> None:
        self.protocol_name = None
        self._learn_subscription()
        self._transition(EMPTY, now)
        self.outbox.note(f"became empty in generation {self.generation_id}")
        self.store_generation({}, EmptyGroupStored())

    def _learn_subscription(self) -> None:
        self.subscribed_topics = None
        if self.protocol_type == CONSUMER_PROTOCOL_TYPE:
            self.subscribed_topics = subscribed_topics(
                member.metadata(self.protocol_name) for member in self.roster.members.values()
            )

    def sync(self, request: Sync, waiter: Waiter, now: Now) -> None:
        """Process a SyncGroup request. The leader sends the assignments, and each member receives its own."""
        error = self.check_member(request.member_id, request.group_instance_id)
        if not error and request.generation_id != self.generation_id:
            error = ErrorCode.ILLEGAL_GENERATION
        if not error and (
            request.protocol_type not in (None, self.protocol_type)
            or request.protocol_name not in (None, self.protocol_name)
        ):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if not error and self.state is PREPARING_REBALANCE:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error:
            self.outbox.respond(waiter, SyncResult(error=error))
            return
        self.roster.unsynced.discard(request.member_id)
        if not self.roster.unsynced:
            self.timers.cancel(_SYNC)
        if self.state is STABLE:
            member = self.roster.members[request.member_id]
            self.outbox.respond(waiter, self._sync_result(member))
            self.restart_session(member, now)
            return
        replaced = self.roster.awaiting_sync.pop(request.member_id, None)
        if replaced is not None:
            self.outbox.respond(replaced, SyncResult(error=ErrorCode.REBALANCE_IN_PROGRESS))
        self.roster.awaiting_sync[request.member_id] = waiter
        if request.member_id == self.roster.leader_id:
            assignments = {
                member_id: request.assignments.get(member_id, b"") for member_id in self.roster.members
            }
            self.store_generation(assignments, AssignmentStored(self.generation_id))

    def _note_assignments(self, are_stored: bool) -> None:
        for member in self.roster.members.values():
            member.has_assignment = are_stored

    def _propagate_assignments(self, error: ErrorCode, now: Now) -> None:
        for member_id, member in self.roster.members.items():
            waiter = self.roster.awaiting_sync.pop(member_id, None)
            if waiter is not None:
                self.outbox.respond(waiter, SyncResult(error=error) if error else self._sync_result(member))
                self.restart_session(member, now)

    def _end_sync_wait(self) -> None:
        self.roster.unsynced.clear()
        self.timers.cancel(_SYNC)

    def heartbeat(
        self, generation_id: int, member_id: str, group_instance_id: str | None, now: Now
    ) -> ErrorCode:
        """Process a heartbeat and return an error code: REBALANCE_IN_PROGRESS if the member must rejoin."""
        error = self.check_member(member_id, group_instance_id)
        if error:
            return error
        if generation_id != self.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        self.restart_session(self.roster.members[member_id], now)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is PREPARING_REBALANCE else ErrorCode.NONE

    def tick(self, now: Now) -> None:
        """Process all deadlines that have passed at this time."""
        while (timer := self.timers.take_due(now.timer_ms)) is not None:
            if timer.kind is TimerKind.JOIN:
                self._join_wait_over(now)
            elif timer.kind is TimerKind.SYNC:
                self._sync_wait_over(now)
            elif timer.kind is TimerKind.PENDING:
                self.outbox.note(f"removed pending member {timer.member_id}: it did not rejoin in time")
                self.remove(timer.member_id)
                self.complete_join_if_all_joined(now)
            else:
                self._session_over(timer.member_id, now)

    def _session_over(self, member_id: str, now: Now) -> None:
        waits = member_id in self.roster.awaiting_join or member_id in self.roster.awaiting_sync
        if self.roster.members[member_id].is_new or not waits:
            self.remove_and_rebalance(member_id, f"the session of member {member_id} expired", now)

    def _sync_wait_over(self, now: Now) -> None:
        late = list(self.roster.unsynced)
        for member_id in late:
            self.remove(member_id)
        self.prepare(f"sync timed out for {', '.join(sorted(late))}", now)

    def remove_and_rebalance(self, member_id: str, reason: str, now: Now) -> None:
        self.remove(member_id)
        if self.state is PREPARING_REBALANCE:
            self.outbox.note(reason)
            self.complete_join_if_all_joined(now)
        elif self.state is not EMPTY:
            self.prepare(reason, now)

    def remove(self, member_id: str) -> None:
        self.answer_waiting(member_id, ErrorCode.UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID)
        self.timers.cancel(Timer(TimerKind.SESSION, member_id))
        self.timers.cancel(Timer(TimerKind.PENDING, member_id))
        self.roster.remove(member_id)

    def restore(self, snapshot: GroupSnapshot, now: Now) -> None:
        """Restore the stored generation, with a stable group and a full session timeout for every member."""
        members = [
            Member(
                member_id=stored.member_id,
                group_instance_id=stored.group_instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                session_timeout_ms=stored.session_timeout_ms,
                rebalance_timeout_ms=stored.rebalance_timeout_ms,
                protocols=((snapshot.protocol_name or "", stored.subscription),),
            )
            for stored in snapshot.members
        ]
        self.start_with(members, snapshot, now)
        if len(self.roster) > self.settings.group_max_size:
            self.prepare("the loaded group has more members than group.max.size", now)

    def start_with(self, members: Iterable[Member], snapshot: GroupSnapshot, now: Now) -> None:
        """Continue from a stored generation with these members, which are those of the snapshot."""
        self.reset(now)
        self.state_timestamp_ms = snapshot.state_timestamp_ms
        self.generation_id = snapshot.generation_id
        self.protocol_type = snapshot.protocol_type or None
        self.protocol_name = snapshot.protocol_name
        for member in members:
            self.roster.add(member)
            self.restart_session(member, now)
        self._note_assignments(True)
        self.state = STABLE if self.roster.members else EMPTY
        self.roster.leader_id = snapshot.leader_id
        self._learn_subscription()

    def reset(self, now: Now) -> None:
        """Return to the state of a new group. The caller must have completed all waiting requests."""
        self.timers.clear()
        self.roster.clear()
        self.state = EMPTY
        self.state_timestamp_ms = now.wall_ms
        self.generation_id = 0
        self.protocol_type = self.protocol_name = self.subscribed_topics = None
        self._member_added = False
        self._initial_delay_left_ms = None

    def store_failed(self, error: ErrorCode) -> ErrorCode:
        """Log a failed write, and return the error code for the members."""
        error = _STORE_ERRORS.get(error, error)
        self.outbox.note(f"could not store generation {self.generation_id}: {error.name}")
        return error

    def assignment_written(self, purpose: AssignmentStored, error: ErrorCode, now: Now) -> None:
        if self.state is not COMPLETING_REBALANCE or purpose.generation_id != self.generation_id:
            return
        self._propagate_assignments(error, now)
        if error:
            self.prepare(f"the assignment could not be stored: {error.name}", now)
        else:
            self._note_assignments(True)
            self._transition(STABLE, now)

    def _transition(self, state: GroupState, now: Now) -> None:
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state} -> {state}"
        self.state = state
        self.state_timestamp_ms = now.wall_ms

    def die(self) -> None:
        """Mark the group as deleted."""
        self.state = DEAD
        self.timers.clear()

    def check_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        if group_instance_id is not None:
            current_id = self.roster.static_ids.get(group_instance_id)
            if current_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.roster else ErrorCode.UNKNOWN_MEMBER_ID

    def restart_session(self, member: Member, now: Now) -> None:
        self.timers.set(Timer(TimerKind.SESSION, member.member_id), now.timer_ms + member.session_timeout_ms)

    def answer_waiting(self, member_id: str, error: ErrorCode, answered_id: str) -> None:
        join = self.roster.awaiting_join.pop(member_id, None)
        if join is not None:
            self.refuse_join(join, answered_id, error)
        sync = self.roster.awaiting_sync.pop(member_id, None)
        if sync is not None:
            self.outbox.respond(sync, SyncResult(error=error))

    def refuse_join(self, waiter: Waiter, member_id: str, error: ErrorCode) -> None:
        self.outbox.respond(waiter, JoinResult(error=error, member_id=member_id))

    def answer_join(self, member: Member, waiter: Waiter) -> None:
        leads = member.member_id == self.roster.leader_id
        self.outbox.respond(waiter, self.join_result(member.member_id, members=leads))

    def join_result(
        self,
        member_id: str,
        *,
        members: bool,
        skip_assignment: bool = False,
        leader_id: str | None = None,
        error: ErrorCode = ErrorCode.NONE,
    ) -> JoinResult:
        return JoinResult(
            error=error,
            member_id=member_id,
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader_id=(self.roster.leader_id or "") if leader_id is None else leader_id,
            members=self.roster.joined_members(self.protocol_name) if members else (),
            skip_assignment=skip_assignment,
        )

    def _sync_result(self, member: Member) -> SyncResult:
        return SyncResult(
            error=ErrorCode.NONE,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=self.stored.assignment(member),
        )

    def store_generation(
        self, assignments: dict[str, bytes], purpose: AssignmentStored | StaticMemberStored | EmptyGroupStored
    ) -> None:
        snapshot = GroupSnapshot(
            self.protocol_type or "",
            self.generation_id,
            self.protocol_name,
            self.roster.leader_id,
            self.state_timestamp_ms,
            self.roster.snapshots(self.protocol_name, assignments),
        )
        self.outbox.write(Write([GroupRecord(self.group_id, snapshot)], purpose))
