"""What brokers have that can be controlled: made before them, handed in to them, and asked over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

from kafka_compat.control.fault_rules import FaultRules
from kafka_compat.control.faulty_disks import FaultyFilesystem
from kafka_compat.control.pulse import Pulse
from kafka_compat.control.recording import Recording
from kafka_compat.control.time_travel import TimeTravel
from kafka_compat.network.stages import Fault, Served, StagedContext, Stages


class ControlSide:
    """Of the brokers of one process."""

    def __init__(self) -> None:
        """On their event loop."""
        self.pulse = Pulse()
        self.faults = FaultRules()
        self.travel = TimeTravel(asyncio.get_running_loop(), self.pulse.beat)
        self.recording = Recording(self.travel.clock.now_ms)

    @property
    def handed_in(self) -> dict[str, Any]:
        """What brokers are to be made with."""
        return {
            "clock": self.travel.clock,
            "scheduler": self.travel.scheduler,
            "filesystem": FaultyFilesystem(self.faults.disks),
            "stages": Stages(account=self._served, faults=self._came),
        }

    def _came(self, ctx: StagedContext[Any], request: Any) -> Fault | None:
        self.recording.came(ctx, request)
        return self.faults.fault_for(ctx, request)

    def _served(self, served: Served) -> None:
        self.recording.answered(served)
        self.pulse.beat()
