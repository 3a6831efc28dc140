"""What the control API replaces in the brokers of one process: clock, timers, disks and requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from kafka_compat.api.stages import Next, Served, StagedContext
from kafka_compat.broker.hooks import BrokerHooks
from kafka_compat.control.fault_rules import FaultRules
from kafka_compat.control.faulty_disks import FaultyFilesystem
from kafka_compat.control.pulse import Pulse
from kafka_compat.control.recording import Recording
from kafka_compat.control.time_travel import TimeTravel

if TYPE_CHECKING:
    from kafka_compat.telemetry.pushed import PushedMetrics


class ControlHooks:
    """The replacements, and what the control API changes them by. Created on the brokers' event loop."""

    def __init__(self) -> None:
        self.pulse = Pulse()
        self.faults = FaultRules()
        self.travel = TimeTravel(asyncio.get_running_loop(), self.pulse.beat)
        self.recording = Recording(self.travel.clock.now_ms)

    def for_broker(self, pushed: PushedMetrics | None) -> BrokerHooks:
        """The replacements as a broker takes them; `pushed` receives the metrics that clients push."""
        return BrokerHooks(
            clock=self.travel.clock,
            scheduler=self.travel.scheduler,
            filesystem=FaultyFilesystem(self.faults.disks),
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
