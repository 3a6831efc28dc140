"""`kafka-compat serve --processes N`: a cluster of N brokers on this machine, each a process of its own.

This process serves no clients. It starts the others, starts one again that dies, and has them stop; without
zookeeper.connect it has the metadata store that they share. It imports no broker, and stays small.

Rules
1. Each broker keeps its id, its ports and its folders over all of its processes.
2. A broker that cannot start at first ends the command. One that dies after it served is started again: at
   once, and when it dies again soon, after waits that grow (restarts.py).
3. A process whose connection ends is dead for the others at that moment: its sessions end.
4. When this process dies, however that is, the others notice by their connections, and stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket

from kafka_compat.cli.http_services import LISTENER
from kafka_compat.cli.local_brokers import Tree, address, broker_configs, http_listeners
from kafka_compat.cli.log_output import refuse, tell
from kafka_compat.cli.restarts import RestartWaits
from kafka_compat.cli.supervised import End, SupervisedBroker
from kafka_compat.config import BrokerConfig
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.errors import StartupError

log = logging.getLogger("kafka_compat")

STOP_TIMEOUT_S = 10.0
"""For a broker that serves; its own is shorter."""
START_TIMEOUT_S = 15.0
"""What one that still starts gets beside that: it waits for others that stop, too."""


async def serve_processes(config: BrokerConfig, count: int, *, verbose: bool) -> int:
    """Run the brokers until SIGINT or SIGTERM. Returns the exit code."""
    try:
        return await Supervisor(config, count, verbose=verbose).run()
    except StartupError as error:
        return refuse(str(error), config)


class Supervisor:
    """See the rules above."""

    def __init__(self, config: BrokerConfig, count: int, *, verbose: bool) -> None:
        """Raises StartupError."""
        configs = broker_configs(config, count, config.broker_id)
        for each, http_listener in zip(configs, http_listeners(config, count), strict=True):
            # Replicas are spread over machines, when several share a ZooKeeper.
            each.static.setdefault("broker.rack", socket.gethostname())
            if http_listener is not None:
                each.static[LISTENER] = http_listener
        self._config = config
        self._brokers = [SupervisedBroker(each, self._served, verbose=verbose) for each in configs]
        self._tree: Tree | None = None
        self._is_ready = False
        self._stopping = asyncio.Event()
        self._in_time = True
        self._refusal: str | None = None
        self._patience: asyncio.TimerHandle | None = None

    async def run(self) -> int:
        """Until all is over. Returns the exit code; raises StartupError."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        launched: list[SupervisedBroker] = []
        try:
            for broker in self._brokers:
                await broker.launch()
                launched.append(broker)
            # While the processes import what they need.
            self._tree = None if self._config.str("zookeeper.connect") else Tree(self._config)
        except (StartupError, OSError) as error:
            for broker in launched:
                broker.tell_to_stop()
            await asyncio.gather(*(broker.end() for broker in launched))
            raise StartupError(str(error)) from error
        for index, broker in enumerate(self._brokers):
            broker.instruct(self._store, () if index else self._config.create_topics)
        if self._stopping.is_set():
            # The signal may have come before there was anyone to tell.
            for broker in self._brokers:
                broker.tell_to_stop()
        codes: list[int] = await asyncio.gather(*(self._keep(broker) for broker in self._brokers))
        if self._patience is not None:
            self._patience.cancel()
        if self._tree is not None:
            await self._tree.close()
        if self._refusal is not None:
            raise StartupError(self._refusal)
        return 0 if self._in_time and not any(codes) else 1

    # --- one broker

    async def _keep(self, broker: SupervisedBroker) -> int:
        """Its processes, one after the other. Returns the exit code of the last."""
        waits = RestartWaits()
        has_served = False
        while True:
            end = await broker.end()
            has_served = has_served or end.served_s is not None
            if self._stopping.is_set():
                return end.code
            if not has_served:
                self._refuse(broker, end)
                return end.code
            log.warning("Broker %d %s", broker.broker_id, end)
            if not await self._start_again(broker, waits, end.served_s or 0.0):
                return 0

    async def _start_again(self, broker: SupervisedBroker, waits: RestartWaits, served_s: float) -> bool:
        """Whether there is another process, or else all are to stop."""
        while True:
            wait_s = waits.after(served_s)
            when = f"in {wait_s:g} s" if wait_s else "now"
            log.warning("Broker %d is started again %s", broker.broker_id, when)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._stopping.wait()
            if self._stopping.is_set():
                return False
            try:
                await broker.launch()
            except OSError as error:
                log.error("No process can be made for broker %d: %s", broker.broker_id, error)
                served_s = 0.0
                continue
            broker.instruct(self._store)
            if self._stopping.is_set():
                broker.tell_to_stop()
            return True

    @property
    def _store(self) -> EmbeddedMetadataStore | None:
        return None if self._tree is None else self._tree.store

    # --- all of them

    def _served(self) -> None:
        """One of them serves."""
        if not self._is_ready and all(broker.serves for broker in self._brokers):
            self._is_ready = True
            listening = ",".join(address(*broker.listening[0][1:]) for broker in self._brokers)
            tell(self._config, f"{len(self._brokers)} processes ready: {listening}")

    def _refuse(self, broker: SupervisedBroker, end: End) -> None:
        """End the command: a broker could not start."""
        if self._refusal is None:
            self._refusal = end.refusal or f"broker {broker.broker_id} {end} before it served"
        self._stop()

    def _stop(self) -> None:
        """Have all stop; called again, without waiting for successors."""
        is_again = self._stopping.is_set()
        self._stopping.set()
        for broker in self._brokers:
            broker.tell_to_stop(at_once=is_again)
        if self._patience is not None:
            self._patience.cancel()
        patience_s = STOP_TIMEOUT_S if is_again else self._stop_timeout_s()
        self._patience = asyncio.get_running_loop().call_later(patience_s, self._kill)

    def _stop_timeout_s(self) -> float:
        config, timeout_s = self._config, STOP_TIMEOUT_S
        if not all(broker.serves for broker in self._brokers):
            timeout_s += START_TIMEOUT_S
        if config.str("zookeeper.connect") and config.bool("controlled.shutdown.enable"):
            once_ms = config.int("controlled.shutdown.retry.backoff.ms")
            once_ms += config.int("controller.socket.timeout.ms")
            timeout_s += config.int("controlled.shutdown.max.retries") * once_ms / 1000
        return timeout_s

    def _kill(self) -> None:
        for broker in self._brokers:
            if broker.kill():
                log.error("Broker %d did not stop in time and was killed", broker.broker_id)
                self._in_time = False
