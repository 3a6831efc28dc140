"""JoinGroup and LeaveGroup of a classic group: new members, rejoining members, and restarted static members
that replace their previous member ID (KIP-345, KIP-814). The rules are in `rebalance.py`.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from kafka_compat.coordinator_runtime.machine import Now, Output, Waiter
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.classic.rebalance import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    Rebalance,
    StaticMemberStored,
)
from kafka_compat.groups.classic.roster import Member
from kafka_compat.groups.requests import UNKNOWN_MEMBER_ID, Join, LeaveResult, Leaving
from kafka_compat.groups.timers import Timer, TimerKind


class Joining:
    """Handler of JoinGroup and LeaveGroup requests for the members of a `Rebalance`."""

    __slots__ = ("_new_member_id", "_outbox", "_rebalance", "_roster")

    def __init__(self, rebalance: Rebalance, new_member_id: Callable[[str | None], str]) -> None:
        self._rebalance = rebalance
        self._roster = rebalance.roster
        self._outbox = rebalance.outbox
        self._new_member_id = new_member_id

    def join(self, request: Join, waiter: Waiter, now: Now) -> None:
        """Process a JoinGroup request. The caller must have checked the session timeout."""
        if not self._has_room_for(request.member_id):
            self._rebalance.remove(request.member_id)
            self._rebalance.refuse_join(waiter, UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif not self._supports(request):
            self._rebalance.refuse_join(waiter, request.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif request.member_id == UNKNOWN_MEMBER_ID:
            self._join_as_new(request, waiter, now)
        elif request.member_id in self._roster.pending:
            self._join_as_pending(request, waiter, now)
        elif error := self._rebalance.check_member(request.member_id, request.group_instance_id):
            self._rebalance.refuse_join(waiter, request.member_id, error)
        else:
            self._join_again(self._roster.members[request.member_id], request, waiter, now)
        self._rebalance.complete_join_if_all_joined(now)

    def join_at_once(self, request: Join, waiter: Waiter, now: Now) -> Output:
        """Process a JoinGroup request as an event of its own."""
        out = self._outbox.begin()
        self.join(request, waiter, now)
        return out

    def _has_room_for(self, member_id: str) -> bool:
        most = self._rebalance.settings.group_max_size
        if self._rebalance.state is PREPARING_REBALANCE:
            # If group.max.size is less than the number of members, the first members to rejoin may stay.
            return member_id in self._roster.awaiting_join or len(self._roster.awaiting_join) < most
        return self._rebalance.state is EMPTY or member_id in self._roster or len(self._roster) < most

    def _supports(self, request: Join) -> bool:
        if self._rebalance.state is EMPTY:
            return bool(request.protocol_type and request.protocols)
        return request.protocol_type == self._rebalance.protocol_type and self._roster.shares_protocol(
            {name for name, _ in request.protocols}
        )

    def _join_as_new(self, request: Join, waiter: Waiter, now: Now) -> None:
        instance_id = request.group_instance_id
        member_id = self._new_member_id(instance_id if instance_id is not None else request.client_id)
        if instance_id is not None and instance_id in self._roster.static_ids:
            self._replace_static_member(instance_id, member_id, request, waiter, now)
        elif request.requires_known_member_id:
            self._roster.pending.add(member_id)
            self._rebalance.timers.set(
                Timer(TimerKind.PENDING, member_id), now.timer_ms + request.session_timeout_ms
            )
            self._rebalance.refuse_join(waiter, member_id, ErrorCode.MEMBER_ID_REQUIRED)
        else:
            self._add_member(member_id, request, waiter, now)

    def _join_as_pending(self, request: Join, waiter: Waiter, now: Now) -> None:
        if request.group_instance_id is not None:
            # Reject the request, as Kafka does. Clients do not send it: static members get no ID in advance.
            self._rebalance.refuse_join(waiter, request.member_id, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._rebalance.timers.cancel(Timer(TimerKind.PENDING, request.member_id))
        self._add_member(request.member_id, request, waiter, now)

    def _add_member(self, member_id: str, request: Join, waiter: Waiter, now: Now) -> None:
        if not self._roster.members:
            self._rebalance.protocol_type = request.protocol_type
        member = Member(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=request.protocols,
            is_new=True,
        )
        reason = f"adding new member {member_id}; client reason: {request.reason}"
        self._rebalance.add_member(member, waiter, reason, now)

    def _join_again(self, member: Member, request: Join, waiter: Waiter, now: Now) -> None:
        same = member.protocols == request.protocols
        if self._rebalance.state is COMPLETING_REBALANCE and same:
            # The member is retrying: it did not receive the response to its JoinGroup request.
            self._rebalance.answer_join(member, waiter)
        elif self._rebalance.state is STABLE and same and member.member_id != self._roster.leader_id:
            self._outbox.respond(waiter, self._rebalance.join_result(member.member_id, members=False))
        else:
            self._update_member(member, request, waiter)
            why = "leader" if member.member_id == self._roster.leader_id else "member"
            self._rebalance.prepare_unless_preparing(
                f"{why} {member.member_id} rejoined; client reason: {request.reason}", now
            )

    def _replace_static_member(
        self, instance_id: str, new_id: str, request: Join, waiter: Waiter, now: Now
    ) -> None:
        former_leader_id = self._roster.leader_id
        old_id = self._roster.static_ids[instance_id]
        self._rebalance.answer_waiting(old_id, ErrorCode.FENCED_INSTANCE_ID, old_id)
        self._rebalance.timers.cancel(Timer(TimerKind.SESSION, old_id))
        former = replace(self._roster.members[old_id])
        member = self._roster.rename(old_id, new_id)
        self._rebalance.restart_session(member, now)
        self._update_member(member, request, waiter)
        self._outbox.note(f"static member {instance_id} rejoined as {new_id}, replacing {old_id}")
        if self._rebalance.state is COMPLETING_REBALANCE:
            self._rebalance.prepare(f"static member {instance_id} rejoined as {new_id}", now)
        elif self._rebalance.state is STABLE:
            if self._roster.select_protocol() != self._rebalance.protocol_name:
                self._rebalance.prepare(f"static member {instance_id} rejoined with different protocols", now)
            else:
                self._rebalance.store_generation(
                    {
                        other.member_id: self._rebalance.stored.assignment(other)
                        for other in self._roster.members.values()
                    },
                    StaticMemberStored(
                        new_id, former, former_leader_id, request.supports_skipping_assignment
                    ),
                )

    def _update_member(self, member: Member, request: Join, waiter: Waiter) -> None:
        self._roster.update_protocols(member, request.protocols)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        replaced = self._roster.awaiting_join.pop(member.member_id, None)
        if replaced is not None:
            # The client retried, and no longer waits for the response to the earlier request.
            self._rebalance.refuse_join(replaced, member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
        self._roster.awaiting_join[member.member_id] = waiter

    def static_member_written(self, purpose: StaticMemberStored, error: ErrorCode, now: Now) -> None:
        member = self._roster.members.get(purpose.member_id)
        if member is None or self._rebalance.state is not STABLE:
            return
        waiter = self._roster.awaiting_join.pop(purpose.member_id, None)
        if error:
            self._restore_static_member(member, purpose.former, now)
            result = self._rebalance.join_result(
                UNKNOWN_MEMBER_ID, members=False, leader_id=purpose.former_leader_id or "", error=error
            )
        elif purpose.skips_assignment:
            leads = purpose.member_id == self._roster.leader_id
            result = self._rebalance.join_result(purpose.member_id, members=leads, skip_assignment=leads)
        else:
            # Return the former leader ID: given its own ID, an older client would assign partitions again.
            result = self._rebalance.join_result(
                purpose.member_id, members=False, leader_id=purpose.former_leader_id or ""
            )
        if waiter is not None:
            self._outbox.respond(waiter, result)
        self._rebalance.restart_session(member, now)

    def _restore_static_member(self, member: Member, former: Member, now: Now) -> None:
        self._rebalance.timers.cancel(Timer(TimerKind.SESSION, member.member_id))
        self._roster.update_protocols(member, former.protocols)
        member.rebalance_timeout_ms = former.rebalance_timeout_ms
        member.session_timeout_ms = former.session_timeout_ms
        self._roster.rename(member.member_id, former.member_id)

    def leave(self, leaving: Iterable[Leaving], waiter: Waiter, now: Now) -> None:
        """Process a LeaveGroup request, which may name several members (version 3 and later)."""
        errors = tuple((one, self._leave_one(one, now)) for one in leaving)
        self._outbox.respond(waiter, LeaveResult(error=ErrorCode.NONE, members=errors))

    def _leave_one(self, leaving: Leaving, now: Now) -> ErrorCode:
        member_id = leaving.member_id
        if member_id == UNKNOWN_MEMBER_ID:
            current_id = self._roster.static_ids.get(leaving.group_instance_id or "")
            if current_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = current_id
        elif member_id in self._roster.pending:
            self._rebalance.remove(member_id)
            self._rebalance.complete_join_if_all_joined(now)
            return ErrorCode.NONE
        elif error := self._rebalance.check_member(member_id, leaving.group_instance_id):
            return error
        self._rebalance.remove_and_rebalance(
            member_id, f"member {member_id} left; client reason: {leaving.reason}", now
        )
        return ErrorCode.NONE
