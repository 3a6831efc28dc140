"""Hooks for the control API: they replace a broker's clock, timers and disks, and intercept requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from kafka_compat.api.stages import Next, Served, StagedContext
from kafka_compat.broker.hooks import BrokerHooks
from kafka_compat.control.fault import Fault
from kafka_compat.control.faulty_disks import Disks, FaultyFilesystem
from kafka_compat.control.links import Links
from kafka_compat.control.pulse import Pulse
from kafka_compat.control.recording import Recording
from kafka_compat.control.time_travel import TimeTravel

if TYPE_CHECKING:
    from kafka_compat.control.commands import HeldBack
    from kafka_compat.control.rule import Rule
    from kafka_compat.telemetry.pushed import PushedMetrics


class FaultRules:
    """The faults that tests have set for the brokers of a process.

    If several rules match a request, the oldest rule applies.
    """

    def __init__(self) -> None:
        self.disks = Disks()
        self.links = Links()
        self.held: dict[int, HeldBack] = {}
        """Partitions that each broker does not fetch, by broker ID."""
        self.rules: dict[int, Rule] = {}
        self._last_number = 0

    def next_number(self) -> int:
        """Return a new rule number. Numbers are never reused."""
        self._last_number += 1
        return self._last_number

    def clear(self) -> None:
        """Remove all faults."""
        self.rules.clear()
        self.disks.faults.clear()
        self.links.clear()
        for held in self.held.values():
            held.clear()

    def fault_for(self, ctx: StagedContext, request: Any) -> Fault | None:
        """Return the fault for a request, or None to serve the request normally."""
        fault = self.links.fault_for(ctx)
        if fault is not None:
            return fault
        for rule in self.rules.values():
            fault = rule.fault_for(ctx, request)
            if fault is not None:
                return fault
        return None


class ControlHooks:
    """The control API's hooks for the brokers. Create this object on the brokers' event loop."""

    def __init__(self) -> None:
        self.pulse = Pulse()
        self.faults = FaultRules()
        self.travel = TimeTravel(asyncio.get_running_loop(), self.pulse.beat)
        self.recording = Recording(self.travel.clock.now_ms)

    def for_broker(self, pushed: PushedMetrics | None, *, syncs: bool) -> BrokerHooks:
        """Return the hooks for one broker. `pushed` receives the metrics that clients push, and `syncs` is
        the parameter of BrokerHooks.
        """
        return BrokerHooks(
            clock=self.travel.clock,
            scheduler=self.travel.scheduler,
            filesystem=FaultyFilesystem(self.faults.disks, syncs=syncs),
            syncs=syncs,
            middleware=(self._serve,),
            accounts=(self._served,),
            pushed=pushed,
        )

    def _serve(self, ctx: StagedContext, request: Any, go_on: Next) -> Any:
        self.recording.came(ctx, request)
        fault = self.faults.fault_for(ctx, request)
        return go_on(ctx, request) if fault is None else fault.serve(ctx, request, go_on)

    def _served(self, served: Served) -> None:
        self.recording.answered(served)
        self.pulse.beat()
