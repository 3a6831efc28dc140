"""Deadlines of the members of a consumer group: sessions, revocations, and requests of classic members."""

from typing import Final

from kafka_compat.coordinator_runtime.machine import Now
from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
from kafka_compat.groups.consumer.member import Member, MemberState
from kafka_compat.groups.consumer.state import GroupState
from kafka_compat.groups.timers import Timer, TimerKind, Timers

_LATE: Final = {
    TimerKind.SESSION: "its session expired",
    TimerKind.REVOCATION: "it did not revoke its partitions in time",
    TimerKind.JOIN: "it did not rejoin in time",
    TimerKind.SYNC: "it did not send SyncGroup in time",
}
"""Maps the timers of a member to the reasons for which it is fenced."""


class MemberTimers:
    """The deadlines of one group's members."""

    __slots__ = ("_common", "_group_id", "_state", "timers")

    def __init__(self, group_id: str, state: GroupState, common: ConsumerGroups, timers: Timers) -> None:
        self._group_id = group_id
        self._state = state
        self._common = common
        self.timers = timers

    def start_session(self, member: Member, now: Now) -> None:
        """Start a member's session anew. Classic members have their own session timeouts."""
        if member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
        else:
            timeout_ms = self._common.settings(self._group_id).session_timeout_ms
        self.timers.set(Timer(TimerKind.SESSION, member.member_id), now.timer_ms + timeout_ms)

    def start_sessions(self, now: Now) -> None:
        """Start the sessions of all members, after the group has replaced a classic group."""
        for member in self._state.members.current.values():
            self.start_session(member, now)

    def after_heartbeat(self, member: Member, has_moved: bool, now: Now) -> None:
        """Set the deadlines of a member that has sent a heartbeat, and whose state may have moved on."""
        self.start_session(member, now)
        if not has_moved:
            return
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            self._start_revocation(member, now)
        else:
            self.timers.cancel(Timer(TimerKind.REVOCATION, member.member_id))

    def loaded(self, now: Now) -> None:
        """Start the sessions of all members, after the group has been loaded."""
        timeout_ms = self._common.settings(self._group_id).session_timeout_ms
        for member in self._state.members.current.values():
            self.timers.set(Timer(TimerKind.SESSION, member.member_id), now.timer_ms + timeout_ms)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._start_revocation(member, now)

    def match_members(self, now: Now) -> None:
        """Cancel the timers of members that do not exist, and start missing sessions."""
        self.timers.keep_members(self._state.members.current)
        for member in self._state.members.current.values():
            if Timer(TimerKind.SESSION, member.member_id) not in self.timers.pending:
                self.start_session(member, now)

    def cancel(self, member_id: str) -> None:
        """Cancel all deadlines of a member."""
        for kind in _LATE:
            self.timers.cancel(Timer(kind, member_id))

    def _start_revocation(self, member: Member, now: Now) -> None:
        timer = Timer(TimerKind.REVOCATION, member.member_id)
        self.timers.set(timer, now.timer_ms + member.rebalance_timeout_ms)


def late_member(timer: Timer, state: GroupState) -> tuple[Member, str] | None:
    """Return the member that must be fenced when a timer is over, and the reason, or None."""
    member = state.members.current.get(timer.member_id)
    if member is None:
        return None
    if timer.kind is TimerKind.REVOCATION and member.state is not MemberState.UNREVOKED_PARTITIONS:
        return None
    return member, _LATE[timer.kind]
