"""Simulated brokers: processes that can be killed, and restarted with their disks."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from kafka_compat.broker import Broker, BrokerHooks, StartupError, cluster_broker, standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.storage.directories.directory_worker import Done, Job, log_failure, run
from kafka_compat.testing.simulation.ensemble import Ensemble, tree_of
from kafka_compat.testing.simulation.filesystem import SimulatedFilesystem
from kafka_compat.testing.simulation.loop import SimulatedLoop
from kafka_compat.testing.simulation.nodes import Node

_DISK_S = (0.00002, 0.002)


class SimulatedWorker:
    """Simulated worker thread. It runs jobs in order, one by one, each after a delay chosen by the seed."""

    def __init__(self, chance: random.Random) -> None:
        self._loop = asyncio.get_running_loop()
        self._chance = chance
        self._urgent: deque[tuple[Job, Done | None]] = deque()
        self._jobs: deque[tuple[Job, Done | None]] = deque()
        self._is_due = False
        self._closed = False

    def submit(self, job: Job, done: Done | None = None, *, urgent: bool = False) -> None:
        (self._urgent if urgent else self._jobs).append((job, done))
        if self._closed:
            self._do_next()
        else:
            self._do_later()

    def hand_back(self, function: Callable[[], None]) -> None:
        self._loop.call_soon(function)

    def close(self) -> None:
        while self._urgent or self._jobs:
            self._do_next()
        self._closed = True

    def _do_later(self) -> None:
        if not self._is_due and (self._urgent or self._jobs):
            self._is_due = True
            self._loop.call_later(self._chance.uniform(*_DISK_S), self._due)

    def _due(self) -> None:
        self._is_due = False
        if self._urgent or self._jobs:
            self._do_next()
        self._do_later()

    def _do_next(self) -> None:
        job, done = (self._urgent or self._jobs).popleft()
        error = run(job)
        if done is not None:
            self._loop.call_soon(done, error)
        elif error is not None:
            log_failure(error)


PORT = 9092
_QUICK = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}
_RETRY_S = 1.0
"""Delay before restarting a broker that could not start, for example because its old session exists."""


class SimulatedProcess:
    """A process that can be killed, paused and started again."""

    def __init__(self, loop: SimulatedLoop, name: str, host: str) -> None:
        self.name = name
        self.node: Node | None = None
        """The node that runs the process, or None if the process was killed or has ended."""
        self._loop = loop
        self._host = host

    def _spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._loop.journal.note(f"{self.name}: started")
        self.node = Node(self.name, self._host)
        self.node.spawn(self._loop, work)

    def kill(self) -> None:
        """Kill the process (kill -9). None of its code runs any more, not even `finally` blocks."""
        if self.node is not None:
            self._loop.journal.note(f"{self.name}: killed")
            self.node.kill()
            self.node = None

    def pause(self) -> None:
        """Pause the process (SIGSTOP)."""
        if self.node is not None:
            self._loop.journal.note(f"{self.name}: paused")
            self.node.pause()

    def resume(self) -> None:
        """Resume the process (SIGCONT)."""
        if self.node is not None:
            self._loop.journal.note(f"{self.name}: resumed")
            self._loop.resume(self.node)


class SimulatedBroker(SimulatedProcess):
    """Broker `number`, at `kafka-<number>:9092`. A kill (kill -9) takes effect between two steps of the
    broker, so that all written data exists at the next start.
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        seed: int,
        number: int,
        settings: Mapping[str, object],
        fail: Callable[[BaseException], None],
        ensemble: Ensemble | None,
    ) -> None:
        """`fail` ends the simulation with an error. `ensemble` is None for a standalone broker."""
        super().__init__(loop, f"broker {number}", f"10.0.0.{number}")
        self.number = number
        self._fail = fail
        self._ensemble = ensemble
        self._chance = random.Random(f"{seed} {self.name}")
        self._settings = {
            **_QUICK,
            "broker.id": number,
            "listeners": f"PLAINTEXT://{self._host}:{PORT}",
            "advertised.listeners": f"PLAINTEXT://kafka-{number}:{PORT}",
            "log.dirs": f"/broker-{number}",
            **settings,
        }
        self._disk = SimulatedFilesystem(random.Random(f"{seed} disk {number}"))
        self._disk.now_ms = int(loop.time_of_day_s() * 1000)
        self._tree = bytearray()
        self._has_served = False
        self.ready = asyncio.Event()
        """Set while the broker serves clients."""
        loop.network.names[f"kafka-{number}"] = self._host

    def start(self) -> None:
        """Start the broker with its disk, unless it is running. Do not wait until it serves."""
        if self.node is None:
            self._spawn(self._serve)

    async def _serve(self) -> None:
        try:
            settings = {name: str(value) for name, value in self._settings.items()}
            broker = self._new_broker(BrokerConfig.from_properties(settings))
            broker.on_fatal = self.kill
            await broker.start()
        except Exception as error:
            if self._has_served and isinstance(error, StartupError):
                self._loop.journal.note(f"{self.name}: cannot start: {error}")
                self.kill()
                self._loop.network.later(self._loop.time() + _RETRY_S, self.start)
            else:
                self._fail(error)
            return
        self._loop.journal.note(f"{self.name}: serves")
        self._has_served = True
        self.ready.set()

    def _new_broker(self, config: BrokerConfig) -> Broker:
        def new_worker(path: str) -> SimulatedWorker:
            return SimulatedWorker(self._chance)

        hooks = BrokerHooks(filesystem=self._disk, new_worker=new_worker)
        if self._ensemble is not None:
            return cluster_broker(config, self._ensemble.connect, hooks)
        return standalone_broker(config, hooks, new_tree=tree_of(self._tree))

    def kill(self) -> None:
        """Kill the process (kill -9)."""
        if self.node is not None:
            super().kill()
            self.ready.clear()
            self._disk = self._disk.after_kill()
