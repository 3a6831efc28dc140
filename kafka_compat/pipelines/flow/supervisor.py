"""Decide when the jobs of a flow start, restart and stop. No I/O: events and times go in, actions come out.

Continuous jobs run at the same time. A job that ends is restarted after a pause that doubles, up to
PAUSE_MAX_S, until the job has run for HEALTHY_S. A job that has lost records (exit code 3) is not restarted,
because the next run would fail in the same way until somebody decides what to do. Other flows run each job
once, in the order of the file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

PAUSE_S: Final = 1.0
PAUSE_MAX_S: Final = 60.0
HEALTHY_S: Final = 60.0
_RECORDS_LOST: Final = 3
_INTERRUPTED: Final = 130


class State(StrEnum):
    """The state of a job."""

    WAITING = "waiting"
    RUNNING = "running"
    RESTARTING = "restarting"
    """It has ended, and is restarted after a pause."""
    STOPPING = "stopping"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"
    """It has failed, and is not restarted."""


class What(StrEnum):
    START = "start"
    TERMINATE = "terminate"
    KILL = "kill"


class Action(NamedTuple):
    """What to do with a job's process."""

    what: What
    name: str


@dataclass(slots=True)
class JobStatus:
    """The status of one job. `message` is the last progress, or the reason of the last failure."""

    name: str
    job: str
    state: State = State.WAITING
    pid: int | None = None
    restarts: int = 0
    exit_code: int | None = None
    message: str = ""
    started_s: float | None = None
    next_s: float | None = None
    """When the job is to be restarted, or killed."""
    pause_s: float = PAUSE_S
    report: Any = None

    def as_json(self, now_s: float) -> dict[str, Any]:
        """Return the status as a JSON-compatible dict."""
        running = self.state in (State.RUNNING, State.STOPPING) and self.started_s is not None
        found = {
            "name": self.name,
            "job": self.job,
            "state": str(self.state),
            "pid": self.pid,
            "up_s": round(now_s - self.started_s, 1) if running and self.started_s is not None else None,
            "restarts": self.restarts,
            "exit_code": self.exit_code,
            "message": self.message,
        }
        return found if self.report is None else {**found, "report": self.report}

    def as_text(self, now_s: float, width: int) -> str:
        """Return the status as one line. `width` is the width of the name."""
        facts = []
        if self.state is State.RESTARTING and self.next_s is not None:
            facts.append(f"in {max(0, self.next_s - now_s):.0f} s")
        elif self.pid is not None and self.started_s is not None:
            facts.append(f"pid {self.pid}, up {now_s - self.started_s:.0f} s")
        if self.exit_code is not None and self.pid is None:
            facts.append(f"exit code {self.exit_code}")
        if self.restarts:
            facts.append(f"{self.restarts} restart{'s' if self.restarts > 1 else ''}")
        line = f"{self.name.ljust(width)}  {self.state.ljust(10)}  {', '.join(facts)}"
        return (f"{line}: {self.message}" if self.message else line).rstrip()


class Supervisor:
    """The jobs of a flow, given as (name, job), and what to do next."""

    def __init__(
        self, jobs: Sequence[tuple[str, str]], *, continuous: bool, stop_timeout_s: float = 60.0
    ) -> None:
        self.statuses = {name: JobStatus(name, job) for name, job in jobs}
        self._continuous = continuous
        self._stop_timeout_s = stop_timeout_s
        self._stopping = False
        self._due: list[Action] = []

    @property
    def finished(self) -> bool:
        """Whether no job is running, or will be started."""
        return all(each.state in (State.DONE, State.FAILED, State.STOPPED) for each in self.statuses.values())

    @property
    def exit_code(self) -> int:
        """The service's exit code: 1 if a job failed, 130 if a signal interrupted a flow that runs once."""
        states = {each.state for each in self.statuses.values()}
        if State.FAILED in states:
            return 1
        return _INTERRUPTED if self._stopping and not self._continuous and State.STOPPED in states else 0

    def actions(self, now_s: float) -> list[Action]:
        """Return the actions that are due. Each is returned once."""
        due, self._due = self._due, []
        for each in self.statuses.values():
            late = each.next_s is not None and now_s >= each.next_s
            if late and each.state is State.STOPPING:
                each.next_s = None
                due.append(Action(What.KILL, each.name))
            elif late and each.state is State.RESTARTING:
                each.restarts += 1
                due.append(self._start(each))
            elif each.state is State.WAITING and (self._continuous or not self._is_any_active()):
                due.append(self._start(each))
        return due

    def next_s(self) -> float | None:
        """Return the time of the next action, or None if only an event can cause one."""
        return min((each.next_s for each in self.statuses.values() if each.next_s is not None), default=None)

    def started(self, name: str, pid: int, now_s: float) -> None:
        """A job's process runs."""
        status = self.statuses[name]
        status.pid, status.started_s, status.message = pid, now_s, ""

    def said(self, name: str, line: str) -> None:
        """A job has written a line to stderr. The hint after an error does not replace the error."""
        status = self.statuses[name]
        error = f"kafka-compat pipeline {status.job}: "
        if line.startswith(error):
            status.message = line.removeprefix(error)
        elif line.startswith(f"{status.job}: "):
            status.message = line.removeprefix(f"{status.job}: ")

    def ended(self, name: str, exit_code: int, now_s: float, report: Any = None) -> None:
        """A job's process has ended, or could not be started."""
        status = self.statuses[name]
        ran_s = 0.0 if status.started_s is None else now_s - status.started_s
        status.pid, status.started_s, status.next_s = None, None, None
        status.exit_code, status.report = exit_code, report
        if self._stopping:
            status.state = State.STOPPED
        elif exit_code == _RECORDS_LOST or not self._continuous:
            status.state = State.DONE if exit_code == 0 else State.FAILED
        else:
            if ran_s >= HEALTHY_S:
                status.pause_s = PAUSE_S
            status.state, status.next_s = State.RESTARTING, now_s + status.pause_s
            status.pause_s = min(2 * status.pause_s, PAUSE_MAX_S)

    def stop(self, now_s: float) -> None:
        """Stop all jobs; kill those that do not end in time. A second call kills them immediately."""
        for each in self.statuses.values():
            if each.state is State.RUNNING:
                each.state, each.next_s = State.STOPPING, now_s + self._stop_timeout_s
                self._due.append(Action(What.TERMINATE, each.name))
            elif each.state is State.STOPPING:
                each.next_s = now_s
            elif each.state in (State.WAITING, State.RESTARTING):
                each.state, each.next_s = State.STOPPED, None
        self._stopping = True

    def _start(self, status: JobStatus) -> Action:
        status.state, status.next_s = State.RUNNING, None
        return Action(What.START, status.name)

    def _is_any_active(self) -> bool:
        return any(each.state in (State.RUNNING, State.STOPPING) for each in self.statuses.values())
