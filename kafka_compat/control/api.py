"""Routes of the control API, version 1, for the brokers of one process."""

import time
from collections.abc import Sequence

from kafka_compat.broker import Broker
from kafka_compat.control.awaiting import Awaiting
from kafka_compat.control.commands import Commands, PartitionCommands
from kafka_compat.control.events import EventLog
from kafka_compat.control.faults import FaultRoutes
from kafka_compat.control.faulty_disks import DiskFaults
from kafka_compat.control.hooks import ControlHooks
from kafka_compat.control.links import BrokerFaults
from kafka_compat.control.reset import Reset
from kafka_compat.control.share_groups import ShareGroups
from kafka_compat.control.snapshots import SharedTree, Snapshots
from kafka_compat.control.topic_fork import Forks
from kafka_compat.http.routes import Answer, BadCall, Call, Route, integer

_PREFIX = "/control/v1"


class ControlApi:
    """All routes of the control API."""

    def __init__(
        self, brokers: Sequence[Broker], hooks: ControlHooks, tree: SharedTree | None = None
    ) -> None:
        """`tree` is the metadata store that only these brokers share, if there is one."""
        self._faults = FaultRoutes(hooks.faults, hooks.pulse)
        self._disks = DiskFaults(brokers, hooks.faults.disks)
        self._links = BrokerFaults(brokers, hooks.faults.links)
        self._events = EventLog(brokers)
        self._recording = hooks.recording
        self._reset = Reset(brokers, hooks, self._events)
        self._snapshots = Snapshots(brokers, hooks, tree)
        self._pulse = hooks.pulse
        self._awaiting = Awaiting(brokers, hooks.pulse)
        for broker in brokers:
            broker.subscribe(hooks.pulse.beat)
        self._brokers = brokers
        self._held = hooks.faults.held
        self._travel = hooks.travel

    def routes(self) -> list[Route]:
        return [
            Route("GET", f"{_PREFIX}/time", self._time, "the brokers' current time"),
            Route(
                "POST",
                f"{_PREFIX}/time",
                self._advance,
                "advance the brokers' time, and run everything that becomes due",
                {"advance_ms": "integer: milliseconds, above 0"},
            ),
            Route(
                "POST",
                f"{_PREFIX}/time/stand",
                self._stand,
                "stop or resume the brokers' clock",
                {"still": "boolean: true: time advances on request only"},
            ),
            *self._events.routes(_PREFIX),
            *self._recording.routes(_PREFIX),
            *self._awaiting.routes(_PREFIX),
            *self._faults.routes(_PREFIX),
            *self._disks.routes(_PREFIX),
            *self._links.routes(_PREFIX),
            *Commands(self._brokers).routes(_PREFIX),
            *ShareGroups(self._brokers, self._pulse).routes(_PREFIX),
            *PartitionCommands(self._brokers, self._held).routes(_PREFIX),
            *Forks(self._brokers).routes(_PREFIX),
            *self._snapshots.routes(_PREFIX),
            *self._reset.routes(_PREFIX),
        ]

    async def _time(self, call: Call) -> Answer:
        return self._time_of_day()

    async def _advance(self, call: Call) -> Answer:
        began_s = time.perf_counter()
        by_ms, known = integer(call, "advance_ms", least=1), len(self._events.events)
        self._events.begin()
        await self._travel.advance(by_ms, self._at_rest)
        for broker in self._brokers:
            await broker.catch_up()
        self._events.note(by_ms)
        took_ms = round((time.perf_counter() - began_s) * 1000, 3)
        return {**self._time_of_day(), "took_ms": took_ms, "events": self._events.events[known:]}

    async def _stand(self, call: Call) -> Answer:
        still = call.body.get("still")
        if not isinstance(still, bool):
            raise BadCall(f"still={still!r}: expected true or false")
        self._travel.stand(still=still)
        return self._time_of_day()

    def _time_of_day(self) -> dict[str, int]:
        return {"now_ms": self._travel.clock.now_ms(), "ahead_ms": self._travel.clock.ahead_ms}

    async def _at_rest(self, after_ms: int) -> None:
        for broker in self._brokers:
            await broker.at_rest()
        self._events.note(after_ms)
