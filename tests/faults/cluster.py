"""Three brokers on a real ZooKeeper, ours or genuine Kafka's, and what their nodes say of them."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.faults.proxy import SilentProxy
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, ZooKeeper

BROKER_IDS = (1, 2, 3)
_CHROOT = "/cluster"
_START_S = 180.0
_RECOVERY_S = 120.0


@dataclass(frozen=True)
class PartitionState:
    """What the node of a partition says."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


class LastingGenuineKafka(GenuineKafka):
    """Genuine Kafka whose session outlives its kill, as it does in production."""

    def _forget_session(self) -> None:
        """The session is left to its timeout."""


class FaultCluster:
    """ZooKeeper and three brokers on 127.0.0.1. A context manager: what it started ends with it.

    With `proxied`, each broker has a proxy of its own to ZooKeeper (`proxies`), which can go silent.
    """

    def __init__(
        self,
        directory: Path,
        *,
        genuine: bool = False,
        session_timeout_ms: int = 6000,
        overrides: Mapping[str, str] | None = None,
        proxied: bool = False,
    ) -> None:
        self.genuine = genuine
        self.session_timeout_ms = session_timeout_ms
        self.zookeeper = ZooKeeper(directory / "zookeeper")
        self.proxies: dict[int, SilentProxy] = {}
        self._proxied = proxied
        self._directory = directory
        self._overrides = dict(overrides or {})
        self._nodes: Any = None
        self.brokers: dict[int, Server] = {}

    def __enter__(self) -> Self:
        self.zookeeper.start()
        try:
            if self._proxied:
                for broker_id in BROKER_IDS:
                    self.proxies[broker_id] = SilentProxy(self.zookeeper.port)
                    self.proxies[broker_id].__enter__()
            self.brokers = {broker_id: self._broker(broker_id) for broker_id in BROKER_IDS}
            for broker in self.brokers.values():
                broker.launch()
            for broker in self.brokers.values():
                broker.wait_ready(_START_S)
            self._nodes = self._connect()
            wait_until(lambda: self.registered() == set(BROKER_IDS), _START_S, "all brokers are registered")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._nodes is not None:
            self._nodes.stop()
            self._nodes.close()
        for broker in self.brokers.values():
            broker.process.kill()
            broker.stop()
        for proxy in self.proxies.values():
            proxy.__exit__()
        self.zookeeper.stop(0)

    @property
    def bootstrap_servers(self) -> str:
        """All brokers, whether they run or not."""
        return ",".join(broker.address for broker in self.brokers.values())

    def _settings(self, broker_id: int) -> dict[str, str]:
        proxy = self.proxies.get(broker_id)
        address = proxy.address if proxy is not None else self.zookeeper.address
        return {
            "broker.id": str(broker_id),
            "zookeeper.connect": address + _CHROOT,
            "zookeeper.session.timeout.ms": str(self.session_timeout_ms),
            "zookeeper.connection.timeout.ms": "30000",
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": "3",
            "offsets.topic.num.partitions": "4",
            **self._overrides,
        }

    def _broker(self, broker_id: int) -> Server:
        settings = self._settings(broker_id)
        directory = self._directory / f"broker-{broker_id}"
        if self.genuine:
            return LastingGenuineKafka(directory, settings, zookeeper=self.zookeeper)
        return KafkaCompatBroker(directory, settings, arguments=["--verbose"])

    def _connect(self) -> Any:
        from kazoo.client import KazooClient
        from kazoo.retry import KazooRetry

        patience = KazooRetry(max_tries=-1, max_delay=0.5)
        client = KazooClient(
            self.zookeeper.address + _CHROOT, timeout=30, connection_retry=patience, command_retry=patience
        )
        client.start(20)
        return client

    # --- what the nodes say

    def registered(self) -> set[int]:
        """The ids under /brokers/ids."""
        return {int(name) for name in self._children("/brokers/ids")}

    def controller(self) -> int | None:
        """The broker that /controller names."""
        found = self._json("/controller")
        return None if found is None else int(found["brokerid"])

    def states(self, topic: str) -> dict[int, PartitionState]:
        """The states of a topic's partitions, by number."""
        states = {}
        for name in self._children(f"/brokers/topics/{topic}/partitions"):
            found = self._json(f"/brokers/topics/{topic}/partitions/{name}/state")
            if found is not None:
                states[int(name)] = PartitionState(
                    found["leader"], found["leader_epoch"], tuple(found["isr"])
                )
        return states

    def has_topic(self, topic: str) -> bool:
        """Whether there is such a topic, or what a deletion has left of it."""
        return self._nodes.retry(self._nodes.exists, f"/brokers/topics/{topic}") is not None

    def _children(self, path: str) -> list[str]:
        from kazoo.exceptions import NoNodeError

        try:
            names: list[str] = self._nodes.retry(self._nodes.get_children, path)
        except NoNodeError:
            return []
        return names

    def _json(self, path: str) -> Any:
        from kazoo.exceptions import NoNodeError

        try:
            data, _ = self._nodes.retry(self._nodes.get, path)
        except NoNodeError:
            return None
        return json.loads(data)

    # --- topics

    def create_topic(self, topic: str, partitions: int, *, replicas: int = len(BROKER_IDS)) -> None:
        """Create a topic on that many brokers, and wait until they are in sync."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 2})
        config = {"min.insync.replicas": "2"}
        admin.create_topics([NewTopic(topic, partitions, replicas, config=config)])[topic].result(60)
        wait_until(lambda: len(self.states(topic)) == partitions, _RECOVERY_S, f"{topic} is created")
        self.wait_in_sync(topic, replicas=replicas)

    def wait_in_sync(
        self, topic: str, timeout_s: float = _RECOVERY_S, *, replicas: int = len(BROKER_IDS)
    ) -> None:
        """Wait until every partition has a leader and that many replicas in sync."""

        def all_in_sync() -> bool:
            return all(
                state.leader in BROKER_IDS and len(state.isr) == replicas
                for state in self.states(topic).values()
            )

        wait_until(all_in_sync, timeout_s, f"all replicas of {topic} in sync", 0.1)

    def wait_without(self, broker_id: int, topic: str, timeout_s: float = _RECOVERY_S) -> None:
        """Wait until no partition is led by that broker, or has it in sync, and another is the controller."""

        def taken_over() -> bool:
            return self.controller() not in (None, broker_id) and all(
                state.leader not in (-1, broker_id) and broker_id not in state.isr
                for state in self.states(topic).values()
            )

        wait_until(taken_over, timeout_s, f"others took over from broker {broker_id}", 0.05)

    # --- faults

    def start(self, broker_id: int, launched: Callable[[int], None] = lambda pid: None) -> None:
        """Start a broker again and wait until it is ready; `launched` is told its process id before."""
        self.brokers[broker_id].launch()
        launched(self.brokers[broker_id].pid)
        self.brokers[broker_id].wait_ready(_START_S)

    @contextmanager
    def paused(self, broker_id: int) -> Iterator[None]:
        """SIGSTOP, and SIGCONT at the end."""
        child = self.brokers[broker_id].process.child
        child.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            child.send_signal(signal.SIGCONT)


def sleep_until(moment_s: float) -> None:
    """Sleep until time.monotonic() says so."""
    time.sleep(max(0.0, moment_s - time.monotonic()))
