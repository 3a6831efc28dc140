"""Interface for simulated programs: their brokers and processes, and the faults."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from kafka_compat.testing.simulation.brokers import PORT, SimulatedBroker, SimulatedProcess
from kafka_compat.testing.simulation.ensemble import Ensemble
from kafka_compat.testing.simulation.faults import Bringer, Faults
from kafka_compat.testing.simulation.loop import SimulatedLoop

Work = Callable[[], Coroutine[Any, Any, None]]

_RESTART_S = (0.5, 3.0)
_SESSION_TIMEOUT_S = 6.0
_REPLICAS_MAX = 3


class Process(SimulatedProcess):
    """A process of the program. `work` is restarted after a kill or an exception, as by a supervisor. An
    AssertionError fails the simulation.
    """

    def __init__(self, simulation: "Simulation", name: str, host: str, work: Work) -> None:
        super().__init__(simulation.loop, name, host)
        self._simulation = simulation
        self._work = work
        self.ended = asyncio.Event()
        """Set when `work` has returned."""

    def start(self) -> None:
        """Start the process, unless it is running or has ended."""
        if self.node is None and not self.ended.is_set():
            self._spawn(self._run)

    async def _run(self) -> None:
        node = self.node
        assert node is not None
        simulation = self._simulation
        try:
            await self._work()
        except AssertionError as error:
            simulation.fail(error)
            return
        except Exception as error:
            simulation.note(f"{self.name}: ended by {type(error).__name__}: {error}")
            node.kill()
            self.node = None
            simulation.after(simulation.between(_RESTART_S), self.start)
            return
        simulation.note(f"{self.name}: ended")
        self.node = None
        self.ended.set()


class Simulation:
    """The running simulation. `random` is a seeded generator for the program."""

    def __init__(
        self, loop: SimulatedLoop, seed: int, brokers: int, settings: Mapping[str, object], faults: Faults
    ) -> None:
        self.seed = seed
        self.loop = loop
        self.random = random.Random(f"{seed} program")
        ensemble = None
        if brokers > 1:
            ensemble = Ensemble(loop, _SESSION_TIMEOUT_S)
            settings = {**_replicated(brokers), **settings}
        self.brokers = [
            SimulatedBroker(loop, seed, number, settings, self.fail, ensemble)
            for number in range(1, brokers + 1)
        ]
        self.processes: list[Process] = []
        self._faults = faults
        self._chance = random.Random(f"{seed} faults")
        self._bringer = Bringer(faults, self._chance, self.after, self._bring)
        self._failed: asyncio.Future[None] = loop.create_future()
        loop.network.delay_s = _in_seconds(faults.delay_ms)

    @property
    def bootstrap_servers(self) -> str:
        """Bootstrap servers for clients."""
        return ",".join(f"kafka-{broker.number}:{PORT}" for broker in self.brokers)

    @property
    def now_s(self) -> float:
        """Simulated seconds since the start."""
        return self.loop.time()

    def note(self, what: str) -> None:
        """Add a line to the journal, with the current time."""
        self.loop.journal.note(what)

    def process(self, name: str, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> Process:
        """Run `work(*arguments)` as a separate process that faults may kill or pause. A kill discards local
        variables: pass state that must survive, such as a database, as an argument.
        """
        host = f"10.0.1.{len(self.processes) + 1}"
        process = Process(self, name, host, lambda: work(*arguments))
        self.processes.append(process)
        process.start()
        return process

    async def calm(self) -> None:
        """Stop all faults, and wait until all brokers serve and all processes are running."""
        self.note("calm")
        self._bringer.stop()
        self._network_is_as_usual()
        self.loop.network.lose_no_answers()
        struck: list[SimulatedBroker | Process] = [*self.brokers, *self.processes]
        for each in struck:
            each.resume()
            each.start()
        for broker in self.brokers:
            await broker.ready.wait()

    # --- running

    async def run(self, main: "Callable[[Simulation], Coroutine[Any, Any, None]]") -> None:
        """Start the brokers, run `main` with faults, and wait until it ends or the simulation fails."""
        for broker in self.brokers:
            broker.start()
        running = asyncio.ensure_future(self._main(main))
        await asyncio.wait([running, self._failed], return_when=asyncio.FIRST_COMPLETED)
        if self._failed.done():
            self._failed.result()
        running.result()

    async def _main(self, main: "Callable[[Simulation], Coroutine[Any, Any, None]]") -> None:
        for broker in self.brokers:
            await broker.ready.wait()
        self._bringer.start()
        await main(self)

    def fail(self, error: BaseException) -> None:
        """Fail the simulation with an error."""
        if not self._failed.done():
            self._failed.set_exception(error)

    def after(self, delay_s: float, what: Callable[[], None]) -> None:
        """Schedule a call that does not belong to a process."""
        self.loop.network.later(self.now_s + delay_s, what)

    def between(self, bounds: tuple[float, float]) -> float:
        """Return a random number in a range, determined by the seed."""
        return self._chance.uniform(*bounds)

    def _bring(self, kind: str) -> None:
        network = self.loop.network
        if kind == "slow_network":
            self.note("the network is slow")
            network.delay_s = _in_seconds(self._faults.slow_ms)
            self.after(self.between(self._faults.slow_s), self._network_is_as_usual)
        elif kind in ("dropped_connections", "lost_answers"):
            found = list(network.connections)
            if found:
                connection = self._chance.choice(found)
                if kind == "lost_answers":
                    connection.lose_answer()
                else:
                    connection.drop()
        elif kind.startswith("broker"):
            self._strike(self.brokers, kind)
        else:
            self._strike(self.processes, kind)

    def _strike(self, whom: Sequence[SimulatedBroker | Process], kind: str) -> None:
        alive = [each for each in whom if each.node is not None and each.node.running]
        if not alive:
            return
        struck = self._chance.choice(alive)
        if kind.endswith("kills"):
            struck.kill()
            self.after(self.between(self._faults.down_s), struck.start)
        else:
            struck.pause()
            self.after(self.between(self._faults.pause_s), struck.resume)

    def _network_is_as_usual(self) -> None:
        self.loop.network.delay_s = _in_seconds(self._faults.delay_ms)


def _replicated(brokers: int) -> dict[str, object]:
    names = (
        "default.replication.factor",
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "share.coordinator.state.topic.replication.factor",
    )
    return {name: min(brokers, _REPLICAS_MAX) for name in names}


def _in_seconds(bounds_ms: tuple[float, float]) -> tuple[float, float]:
    return bounds_ms[0] / 1000, bounds_ms[1] / 1000
