"""Brokers for tests, in one line: `with KafkaBroker() as broker: …` (docs/testing.md).

This package does not import broker code: brokers run in processes, and the simulation imports code on demand.
"""

from typing import TYPE_CHECKING, Any

from kafka_compat.testing.broker import BrokerFailed, KafkaBroker, KafkaCluster
from kafka_compat.testing.control import Control, ControlFailed

if TYPE_CHECKING:
    from kafka_compat.testing.simulation import Faults, Simulation, SimulationFailed, search, simulate

__all__ = [
    "BrokerFailed",
    "Control",
    "ControlFailed",
    "Faults",
    "KafkaBroker",
    "KafkaCluster",
    "Simulation",
    "SimulationFailed",
    "search",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from kafka_compat.testing import simulation

        return getattr(simulation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
