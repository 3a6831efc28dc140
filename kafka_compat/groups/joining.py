"""How members join a classic group, and leave it: new ones, those that come again, and static ones in the
place of their former selves (KIP-345, KIP-814). The rules are those of `machine.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kafka_compat.coordinator_runtime.machine import Now, Output, Waiter
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.group_states import (
    UNKNOWN_MEMBER_ID,
    Join,
    LeaveResult,
    Leaving,
    Member,
    StaticMemberStored,
)
from kafka_compat.groups.machine import (
    COMPLETING_REBALANCE,
    EMPTY,
    NEW_MEMBER_SESSION_MS,
    PREPARING_REBALANCE,
    STABLE,
    RebalanceMachine,
)
from kafka_compat.groups.timers import Timer, TimerKind


class JoiningMachine(RebalanceMachine):
    """A RebalanceMachine with JoinGroup and LeaveGroup."""

    def join(self, request: Join, waiter: Waiter, now: Now) -> Output:
        """JoinGroup of a member whose session timeout has been checked."""
        out = self._begin()
        if not self._has_room_for(request.member_id):
            self._remove(request.member_id)
            self._refuse_join(waiter, UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif not self._supports(request):
            self._refuse_join(waiter, request.member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif request.member_id == UNKNOWN_MEMBER_ID:
            self._join_as_new(request, waiter, now)
        elif request.member_id in self.roster.pending:
            self._join_as_pending(request, waiter, now)
        elif error := self._check_member(request.member_id, request.group_instance_id):
            self._refuse_join(waiter, request.member_id, error)
        else:
            self._join_again(self.roster.members[request.member_id], request, waiter, now)
        self._complete_join_if_all_joined(now)
        return out

    def _has_room_for(self, member_id: str) -> bool:
        most = self._settings.group_max_size
        if self.state is PREPARING_REBALANCE:
            # A smaller group.max.size than the group has members lets the first to join again stay.
            return member_id in self.roster.awaiting_join or len(self.roster.awaiting_join) < most
        return self.state is EMPTY or member_id in self.roster or len(self.roster) < most

    def _supports(self, request: Join) -> bool:
        if self.state is EMPTY:
            return bool(request.protocol_type and request.protocols)
        return request.protocol_type == self.protocol_type and self.roster.shares_protocol(
            {name for name, _ in request.protocols}
        )

    def _join_as_new(self, request: Join, waiter: Waiter, now: Now) -> None:
        instance_id = request.group_instance_id
        member_id = self._new_member_id(instance_id if instance_id is not None else request.client_id)
        if instance_id is not None and instance_id in self.roster.static_ids:
            self._replace_static_member(instance_id, member_id, request, waiter, now)
        elif request.requires_known_member_id:
            self.roster.pending.add(member_id)
            self.timers.set(Timer(TimerKind.PENDING, member_id), now.timer_ms + request.session_timeout_ms)
            self._refuse_join(waiter, member_id, ErrorCode.MEMBER_ID_REQUIRED)
        else:
            self._add_member(member_id, request, waiter, now)

    def _join_as_pending(self, request: Join, waiter: Waiter, now: Now) -> None:
        if request.group_instance_id is not None:
            # No client does this: static members get no id in advance. Kafka fails on it as well.
            self._refuse_join(waiter, request.member_id, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self.timers.cancel(Timer(TimerKind.PENDING, request.member_id))
        self._add_member(request.member_id, request, waiter, now)

    def _add_member(self, member_id: str, request: Join, waiter: Waiter, now: Now) -> None:
        if not self.roster.members:
            self.protocol_type = request.protocol_type
        if self.state is PREPARING_REBALANCE and self.generation_id == 0:
            self._member_added = True
        self.roster.add(
            Member(
                member_id=member_id,
                group_instance_id=request.group_instance_id,
                client_id=request.client_id,
                client_host=request.client_host,
                session_timeout_ms=request.session_timeout_ms,
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                protocols=request.protocols,
                is_new=True,
            )
        )
        self.roster.awaiting_join[member_id] = waiter
        self.timers.set(Timer(TimerKind.SESSION, member_id), now.timer_ms + NEW_MEMBER_SESSION_MS)
        self._rebalance_if_settled(f"adding new member {member_id}; client reason: {request.reason}", now)

    def _join_again(self, member: Member, request: Join, waiter: Waiter, now: Now) -> None:
        same = member.protocols == request.protocols
        if self.state is COMPLETING_REBALANCE and same:
            # The answer to its first JoinGroup was lost.
            self._answer_join(member, waiter)
        elif self.state is STABLE and same and member.member_id != self.roster.leader_id:
            self._respond(waiter, self._join_result(member.member_id, members=False))
        else:
            self._update_member(member, request, waiter)
            why = "leader" if member.member_id == self.roster.leader_id else "member"
            self._rebalance_if_settled(
                f"{why} {member.member_id} joins again; client reason: {request.reason}", now
            )

    def _replace_static_member(
        self, instance_id: str, new_id: str, request: Join, waiter: Waiter, now: Now
    ) -> None:
        former_leader_id = self.roster.leader_id
        old_id = self.roster.static_ids[instance_id]
        self._answer_parked(old_id, ErrorCode.FENCED_INSTANCE_ID, old_id)
        self.timers.cancel(Timer(TimerKind.SESSION, old_id))
        former = replace(self.roster.members[old_id])
        member = self.roster.rename(old_id, new_id)
        self._restart_session(member, now)
        self._update_member(member, request, waiter)
        self._note(f"static member {instance_id} returns as {new_id} in place of {old_id}")
        if self.state is COMPLETING_REBALANCE:
            self._prepare_rebalance(f"static member {instance_id} has returned as {new_id}", now)
        elif self.state is STABLE:
            if self.roster.select_protocol() != self.protocol_name:
                self._prepare_rebalance(f"static member {instance_id} has returned with other protocols", now)
            else:
                assignments = {
                    other.member_id: self.stored.assignment(other) for other in self.roster.members.values()
                }
                self._write_group(
                    assignments,
                    StaticMemberStored(
                        new_id, former, former_leader_id, request.supports_skipping_assignment
                    ),
                )

    def _update_member(self, member: Member, request: Join, waiter: Waiter) -> None:
        self.roster.update_protocols(member, request.protocols)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        replaced = self.roster.awaiting_join.pop(member.member_id, None)
        if replaced is not None:
            # The client has given up on that request and sent it again.
            self._refuse_join(replaced, member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
        self.roster.awaiting_join[member.member_id] = waiter

    def _static_member_written(self, purpose: StaticMemberStored, error: ErrorCode, now: Now) -> None:
        member = self.roster.members.get(purpose.member_id)
        if member is None or self.state is not STABLE:
            return
        waiter = self.roster.awaiting_join.pop(purpose.member_id, None)
        if error:
            self._restore_static_member(member, purpose.former, now)
            result = self._join_result(
                UNKNOWN_MEMBER_ID, members=False, leader_id=purpose.former_leader_id or "", error=error
            )
        elif purpose.skips_assignment:
            leads = purpose.member_id == self.roster.leader_id
            result = self._join_result(purpose.member_id, members=leads, skip_assignment=leads)
        else:
            # An older client that finds itself the leader assigns anew, so it is told of its former self.
            result = self._join_result(
                purpose.member_id, members=False, leader_id=purpose.former_leader_id or ""
            )
        if waiter is not None:
            self._respond(waiter, result)
        self._restart_session(member, now)

    def _restore_static_member(self, member: Member, former: Member, now: Now) -> None:
        self.timers.cancel(Timer(TimerKind.SESSION, member.member_id))
        self.roster.update_protocols(member, former.protocols)
        member.rebalance_timeout_ms = former.rebalance_timeout_ms
        member.session_timeout_ms = former.session_timeout_ms
        self.roster.rename(member.member_id, former.member_id)

    # Leaving

    def leave(self, leaving: Iterable[Leaving], waiter: Waiter, now: Now) -> Output:
        """LeaveGroup, of several members from v3 on."""
        out = self._begin()
        errors = tuple((one, self._leave_one(one, now)) for one in leaving)
        self._respond(waiter, LeaveResult(error=ErrorCode.NONE, members=errors))
        return out

    def _leave_one(self, leaving: Leaving, now: Now) -> ErrorCode:
        member_id = leaving.member_id
        if member_id == UNKNOWN_MEMBER_ID:
            current_id = self.roster.static_ids.get(leaving.group_instance_id or "")
            if current_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = current_id
        elif member_id in self.roster.pending:
            self._remove(member_id)
            self._complete_join_if_all_joined(now)
            return ErrorCode.NONE
        elif error := self._check_member(member_id, leaving.group_instance_id):
            return error
        self._remove_and_rebalance(
            member_id, f"member {member_id} leaves; client reason: {leaving.reason}", now
        )
        return ErrorCode.NONE
