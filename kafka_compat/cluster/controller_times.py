"""Statistics of the controller: its current state, and the duration of its work by state, as in Kafka.

The statistics cover all terms of this broker.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

from kafka_compat.coordination.controller.machine import DeletionCounts

T = TypeVar("T")

KEPT: Final = 512
IDLE: Final = "Idle"

STATES: Final = (
    IDLE,
    "ControllerChange",
    "LeaderElection",
    "TopicChange",
    "TopicDeletion",
    "PartitionReassignment",
    "AutoLeaderBalance",
    "ManualLeaderBalance",
    "ControlledShutdown",
    "IsrChange",
    "LeaderAndIsrResponseReceived",
    "LogDirChange",
    "ControllerShutdown",
    "UncleanLeaderElectionEnable",
    "TopicUncleanLeaderElectionEnable",
    "ListPartitionReassignment",
)
"""Kafka's controller states, by the names of their metrics and in the order of their numbers."""
_NEVER: Final = (IDLE, "ControllerShutdown")
"""States without a duration. As in Kafka, ControllerShutdown never occurs during a term."""

_STATE_OF: Final = {
    "Elected": "ControllerChange",
    "BrokersChanged": "LeaderElection",
    "TopicsChanged": "TopicChange",
    "PartitionsChanged": "TopicChange",
    "DeletionsRequested": "TopicDeletion",
    "StopReplicaAnswered": "TopicDeletion",
    "ReassignmentRequested": "PartitionReassignment",
    "ReassignmentFound": "PartitionReassignment",
    "RebalanceTick": "AutoLeaderBalance",
    "ElectionRequested": "ManualLeaderBalance",
    "PreferredElectionFound": "ManualLeaderBalance",
    "ControlledShutdownRequested": "ControlledShutdown",
    "AlterPartitionRequested": "IsrChange",
    "IsrChangesFound": "IsrChange",
    "LeaderAndIsrAnswered": "LeaderAndIsrResponseReceived",
    "LogDirsFailed": "LogDirChange",
    "ReassignmentsListed": "ListPartitionReassignment",
}
"""Maps the class name of each event in coordination/controller/events.py to a state."""


class Durations:
    """The number of occurrences of an event, and the durations in ms of the last KEPT occurrences."""

    __slots__ = ("count", "kept_ms")

    def __init__(self) -> None:
        self.count = 0
        self.kept_ms: deque[float] = deque(maxlen=KEPT)

    def add(self, took_ms: float) -> None:
        self.count += 1
        self.kept_ms.append(took_ms)


class ControllerTimes:
    """Statistics of one broker as controller."""

    def __init__(self) -> None:
        self.by_state = {state: Durations() for state in STATES if state not in _NEVER}
        self.waited = Durations()
        """How long events waited in the queue."""
        self.sent: dict[int, Durations] = {}
        """The response times of each broker."""
        self.state = IDLE
        self._unclean_default: bool | None = None

    @contextmanager
    def at(self, event: object) -> Iterator[None]:
        """Measure the time to handle an event. A failure is not counted, because it ends the term."""
        began_s = time.monotonic()
        self._begins(event)
        try:
            yield
            durations = self.by_state.get(self.state)
            if durations is not None:
                durations.add((time.monotonic() - began_s) * 1000)
        finally:
            self.state = IDLE

    def _begins(self, event: object) -> None:
        name = type(event).__name__
        if name == "UncleanConfigChanged":
            default = bool(getattr(event, "default"))  # noqa: B009
            is_default = default != self._unclean_default
            self._unclean_default = default
            self.state = "UncleanLeaderElectionEnable" if is_default else "TopicUncleanLeaderElectionEnable"
            return
        if name == "Elected":
            self._unclean_default = bool(getattr(event, "unclean_default"))  # noqa: B009
        self.state = _STATE_OF.get(name, IDLE)

    def answered(self, broker_id: int, took_ms: float) -> None:
        """Record a broker's response time for a controller request."""
        self.sent.setdefault(broker_id, Durations()).add(took_ms)


class Backlog(NamedTuple):
    """The pending work of a controller: queued events, unsent requests and topic deletions."""

    waiting: int
    unsent: Mapping[int, int]
    """The number of unsent requests to each broker."""
    deletions: DeletionCounts


class TimedQueue(asyncio.Queue[T]):
    """A queue that reports the waiting time of each item in ms."""

    def __init__(self, waited: Callable[[float], None]) -> None:
        super().__init__()
        self._since_s: deque[float] = deque()
        self._waited = waited

    def put_nowait(self, item: T) -> None:
        super().put_nowait(item)
        self._since_s.append(time.monotonic())

    def get_nowait(self) -> T:
        item = super().get_nowait()
        self._waited((time.monotonic() - self._since_s.popleft()) * 1000)
        return item
