"""Deterministic simulation (docs/testing.md). `simulate(seed, main)` runs brokers and the user's asyncio code
on one event loop in simulated time, with faults chosen by the seed.
"""

from kafka_compat.testing.simulation.api import Found, SimulationFailed, search, simulate
from kafka_compat.testing.simulation.faults import Faults
from kafka_compat.testing.simulation.run import Report
from kafka_compat.testing.simulation.simulation import Process, Simulation

__all__ = ["Faults", "Found", "Process", "Report", "Simulation", "SimulationFailed", "search", "simulate"]
