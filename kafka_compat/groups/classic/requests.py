"""Requests of the classic protocol to the groups of one broker. A group of another type rejects them, or has
members that use the classic protocol.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.requests import (
    GroupDescription,
    GroupType,
    Join,
    JoinResult,
    LeaveResult,
    Leaving,
    Sync,
    SyncResult,
)
from kafka_compat.groups.settings import GroupSettings
from kafka_compat.long_work import Steps, batched

if TYPE_CHECKING:
    from kafka_compat.groups.hosted_groups import HostedGroups


class ClassicGroupRequests:
    """Requests of the classic protocol."""

    def __init__(self, hosted: "HostedGroups", settings: GroupSettings) -> None:
        self._hosted = hosted
        self._settings = settings
        self._running = hosted.running
        self._runtime = hosted.runtime
        self._now = hosted.now

    def join(self, group_id: str, request: Join, respond: Callable[[JoinResult], None]) -> None:
        low, high = self._settings.group_min_session_timeout_ms, self._settings.group_max_session_timeout_ms
        if low <= request.session_timeout_ms <= high:
            running, error = self._hosted.find_or_host(
                group_id, ErrorCode.UNKNOWN_MEMBER_ID, is_created=not request.member_id
            )
        else:
            running, error = None, self._hosted.refusal(group_id) or ErrorCode.INVALID_SESSION_TIMEOUT
        if error or running is None:
            respond(JoinResult(error=error, member_id=request.member_id))
        else:
            machine = running.machine
            self._hosted.long_events.process(
                running,
                lambda: machine.join(request, respond, self._now()),
                lambda: self.join(group_id, request, respond),
                lambda: respond(JoinResult(ErrorCode.UNKNOWN_SERVER_ERROR, request.member_id)),
            )

    def sync(self, group_id: str, request: Sync, respond: Callable[[SyncResult], None]) -> None:
        running, error = self._hosted.find(group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Make clients rejoin: the rebalance may have been lost with the previous coordinator.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error or running is None:
            respond(SyncResult(error=error))
        elif not self._hosted.long_events.waits(running, lambda: self.sync(group_id, request, respond)):
            self._runtime.carry_out(running, running.machine.sync(request, respond, self._now()))

    def heartbeat(
        self, group_id: str, generation_id: int, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        running = self._running.get(group_id)
        if running is not None:
            machine = running.machine
            error = machine.heartbeat(generation_id, member_id, group_instance_id, self._now())
            # Set the timer only for an earlier deadline: most requests are heartbeats, which rarely set one.
            wake_at_ms, alarm = machine.wake_at_ms, running.alarm
            if alarm is None or wake_at_ms is None or wake_at_ms < alarm.at_ms:
                self._runtime.set_alarm(running)
            return error
        error = self._hosted.refusal(group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Accept the heartbeat, because all sessions restart once the shard is loaded.
            return ErrorCode.NONE
        return error or ErrorCode.UNKNOWN_MEMBER_ID

    def leave(
        self, group_id: str, leaving: list[Leaving], respond: Callable[[LeaveResult], None]
    ) -> Steps[None]:
        """Remove members from a group. Each part of a long list is an event of the group."""
        parts = list(batched(leaving)) or [[]]
        results: dict[int, LeaveResult] = {}

        def answer(number: int, result: LeaveResult) -> None:
            results[number] = result
            if len(results) == len(parts):
                ordered = [results[each] for each in range(len(parts))]
                error = next((each.error for each in ordered if each.error), ErrorCode.NONE)
                members: list[tuple[Leaving, ErrorCode]] = []
                for each in ordered:
                    members += each.members
                respond(LeaveResult(error, tuple(members)))

        for number, part in enumerate(parts):
            self._leave(group_id, part, partial(answer, number))
            yield None

    def _leave(self, group_id: str, leaving: list[Leaving], respond: Callable[[LeaveResult], None]) -> None:
        error = self._hosted.refusal(group_id)
        running = self._running.get(group_id)
        if error:
            respond(LeaveResult(error=error))
        elif running is None:
            members = tuple((one, ErrorCode.UNKNOWN_MEMBER_ID) for one in leaving)
            respond(LeaveResult(error=ErrorCode.NONE, members=members))
        elif not self._hosted.long_events.waits(running, lambda: self._leave(group_id, leaving, respond)):
            self._runtime.carry_out(running, running.machine.leave(leaving, respond, self._now()))

    def describe(self, group_id: str) -> tuple[ErrorCode, GroupDescription | None]:
        """Return an error code, and the description of a classic group, or None if there is no such group."""
        error = self._hosted.refusal(group_id, empty_id_allowed=True)
        running = self._running.get(group_id)
        is_classic = running is not None and running.machine.view.type is GroupType.CLASSIC
        return error, running.machine.classic.describe() if running is not None and is_classic else None
