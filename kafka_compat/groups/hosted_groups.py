"""The groups of one broker, as the handlers of their requests see them: the running state machines, and the
events of groups that take long.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kafka_compat.errors import ErrorCode

if TYPE_CHECKING:
    from kafka_compat.coordinator_runtime.machine import Now
    from kafka_compat.coordinator_runtime.runtime import CoordinatorRuntime
    from kafka_compat.coordinator_runtime.shard import RunningMachine
    from kafka_compat.groups.group import Group
    from kafka_compat.groups.long_events import LongEvents
    from kafka_compat.groups.records import Record

    Running = RunningMachine[Group]

AnyView = TypeVar("AnyView")


class HostedGroups:
    """The groups of one broker. `running` maps group IDs to state machines, and `now` returns the time."""

    __slots__ = ("long_events", "now", "running", "runtime")

    def __init__(self, runtime: "CoordinatorRuntime[Group, Record]", long_events: "LongEvents") -> None:
        self.runtime = runtime
        self.long_events = long_events
        self.running = runtime.running
        self.now: Callable[[], Now] = runtime.now

    def find(self, group_id: str, missing: ErrorCode) -> "tuple[Running | None, ErrorCode]":
        """Return a group and NONE, or None and an error code, which is `missing` if the group is unknown."""
        error = self.refusal(group_id)
        running = self.running.get(group_id)
        return running, missing if running is None and not error else error

    def find_or_host(
        self, group_id: str, missing: ErrorCode, *, is_created: bool
    ) -> "tuple[Running | None, ErrorCode]":
        """Like `find`, but if `is_created`, host an unknown group."""
        running, error = self.find(group_id, ErrorCode.NONE)
        if running is None and not error:
            return (self.runtime.host(group_id), error) if is_created else (None, missing)
        return running, error

    def view(
        self, group_id: str, view_of: "Callable[[Group], AnyView | None]"
    ) -> tuple[ErrorCode, AnyView | None]:
        """Return an error code, and what `view_of` returns for a group. If it returns None, the code is
        GROUP_ID_NOT_FOUND, because the group is of another type.
        """
        running, error = self.find(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        view = None if running is None else view_of(running.machine)
        return (error or ErrorCode.GROUP_ID_NOT_FOUND if view is None else error), view

    def refusal(self, group_id: str, *, empty_id_allowed: bool = False) -> ErrorCode:
        """Return the error code if this broker cannot serve a group with this ID, or NONE if it can."""
        if not group_id and not empty_id_allowed:
            return ErrorCode.INVALID_GROUP_ID
        return ErrorCode.NONE if group_id in self.running else self.runtime.refusal(group_id)
