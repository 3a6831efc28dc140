"""Three brokers, ours or Apache Kafka's, on a real ZooKeeper, and their state in its nodes."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.faults.proxy import SilentProxy
from tests.support.client_security import for_librdkafka
from tests.support.node_acls import node_acls
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.secured import SecuredOnZooKeeper
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, ZooKeeper

BROKER_IDS = (1, 2, 3)
_CHROOT = "/cluster"
_START_S = 180.0
_RECOVERY_S = 120.0


@dataclass(frozen=True)
class PartitionState:
    """The state of a partition in its ZooKeeper node."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]


class LastingGenuineKafka(GenuineKafka):
    """Apache Kafka whose session stays open after a kill until its timeout, as in production."""

    def _forget_session(self) -> None:
        """Keep the session until its timeout."""

    def _knows_controller(self) -> bool:
        """Ask the way clients do, which may have to authenticate."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 2, **for_librdkafka()})
        with suppress(KafkaException):
            found = admin.list_topics(timeout=5)
            return found.controller_id in found.brokers
        return False


class FaultCluster:
    """ZooKeeper and three brokers on 127.0.0.1. Use it as a context manager, which stops all processes at the
    end.

    With `proxied`, each broker connects to ZooKeeper through a proxy (`proxies`), which can stop forwarding.
    With `secured`, the cluster is configured as in tests/support/secured.py, and clients started in the block
    authenticate.
    """

    heap = "512M"
    """Heap size of Apache Kafka's brokers."""
    version = "3.9.1"
    """The version of Apache Kafka's brokers."""

    def __init__(
        self,
        directory: Path,
        *,
        genuine: bool = False,
        session_timeout_ms: int = 6000,
        overrides: Mapping[str, str] | None = None,
        proxied: bool = False,
        secured: bool = False,
    ) -> None:
        self.genuine = genuine
        self.session_timeout_ms = session_timeout_ms
        self.security = SecuredOnZooKeeper(directory / "security") if secured else None
        self.zookeeper = self.security.zookeeper if self.security else ZooKeeper(directory / "zookeeper")
        self._clients = ExitStack()
        self.proxies: dict[int, SilentProxy] = {}
        self._proxied = proxied
        self._directory = directory
        self._overrides = dict(overrides or {})
        self._nodes: Any = None
        self.brokers: dict[int, Server] = {}
        self._paused: set[int] = set()

    @property
    def nodes(self) -> dict[int, Server]:
        """The brokers, and the voters of a quorum, by node ID."""
        return self.brokers

    def __enter__(self) -> Self:
        try:
            self._start_store()
            if self._proxied:
                for broker_id in BROKER_IDS:
                    self.proxies[broker_id] = SilentProxy(self._zookeeper_port)
                    self.proxies[broker_id].__enter__()
            self.brokers = {broker_id: self._broker(broker_id) for broker_id in BROKER_IDS}
            for broker in self.brokers.values():
                broker.launch()
            for broker in self.brokers.values():
                broker.wait_ready(_START_S)
            self._nodes = self._connect()
            wait_until(lambda: self.registered() == set(BROKER_IDS), _START_S, "registration of all brokers")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._clients.close()
        if self._nodes is not None:
            self._nodes.stop()
            self._nodes.close()
        for broker in self.brokers.values():
            broker.process.kill()
            broker.stop()
        for proxy in self.proxies.values():
            proxy.__exit__()
        self._stop_store()

    def _start_store(self) -> None:
        self.zookeeper.start()
        if self.security is not None:
            self.security.prepare(_CHROOT)
            self._clients.enter_context(self.security.clients())

    def _stop_store(self) -> None:
        self.zookeeper.stop(0)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, whether they are running or not."""
        return ",".join(broker.address for broker in self.brokers.values())

    @property
    def _zookeeper_port(self) -> int:
        """The port at which brokers reach ZooKeeper."""
        return self.security.zookeeper.secure_port if self.security else self.zookeeper.port

    def _settings(self, broker_id: int, address: str) -> dict[str, str]:
        """Return the settings of the broker that listens at `address`."""
        proxy = self.proxies.get(broker_id)
        port = proxy.port if proxy is not None else self._zookeeper_port
        return {
            "broker.id": str(broker_id),
            "zookeeper.connect": f"127.0.0.1:{port}{_CHROOT}",
            "zookeeper.session.timeout.ms": str(self.session_timeout_ms),
            "zookeeper.connection.timeout.ms": "30000",
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": "3",
            "offsets.topic.num.partitions": "4",
            **(self.security.settings(address) if self.security else {}),
            **self._overrides,
        }

    def is_genuine(self, broker_id: int) -> bool:
        """Return whether a broker is Apache Kafka."""
        return self.genuine

    def _broker(self, broker_id: int) -> Server:
        """Return a broker that is not started. It uses the port of its predecessor, if there was one."""
        known = self.brokers.get(broker_id)
        port = known.port if known is not None else free_port()
        directory = self._directory / f"broker-{broker_id}"
        settings = self._settings(broker_id, f"127.0.0.1:{port}")
        java_options = [self.security.java_option] if self.security else []
        if self.is_genuine(broker_id):
            return LastingGenuineKafka(
                directory,
                settings,
                version=self.version,
                port=port,
                zookeeper=self.zookeeper,
                heap=self.heap,
                jvm_options=java_options,
            )
        return KafkaCompatBroker(
            directory,
            settings,
            port=port,
            arguments=["--verbose", *(["--env"] if java_options else [])],
            environment={"KAFKA_OPTS": " ".join(java_options)},
        )

    def _connect(self) -> Any:
        from kazoo.client import KazooClient
        from kazoo.retry import KazooRetry

        patience = KazooRetry(max_tries=-1, max_delay=0.5)
        options = {"timeout": 30, "connection_retry": patience, "command_retry": patience}
        if self.security is not None:
            client = self.security.zookeeper.all_powerful(_CHROOT, **options)
        else:
            client = KazooClient(self.zookeeper.address + _CHROOT, **options)
        client.start(20)
        return client

    def registered(self) -> set[int]:
        """Return the broker ids under /brokers/ids."""
        return {int(name) for name in self._children("/brokers/ids")}

    def controller(self) -> int | None:
        """Return the broker id in /controller."""
        found = self._json("/controller")
        return None if found is None else int(found["brokerid"])

    def states(self, topic: str) -> dict[int, PartitionState]:
        """Return the states of a topic's partitions, by partition number."""
        states = {}
        for name in self._children(f"/brokers/topics/{topic}/partitions"):
            found = self._json(f"/brokers/topics/{topic}/partitions/{name}/state")
            if found is not None:
                states[int(name)] = PartitionState(
                    found["leader"], found["leader_epoch"], tuple(found["isr"])
                )
        return states

    def has_topic(self, topic: str) -> bool:
        """Return whether the topic exists, including the remains of an incomplete deletion."""
        return self._nodes.retry(self._nodes.exists, f"/brokers/topics/{topic}") is not None

    def node(self, path: str) -> Any:
        """Return the JSON value in a node, or None if the node does not exist."""
        return self._json(path)

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

    def refused_a_login(self) -> bool:
        """Return whether any broker logged a failed authentication. No client here has a wrong password."""
        logs = (broker.log.read_text(errors="replace") for broker in self.brokers.values())
        return any("invalid credentials" in log for log in logs)

    def node_acls(self) -> dict[str, tuple[str, ...]]:
        """Return the ACLs of all nodes."""
        return node_acls(self._nodes)

    def create_topic(self, topic: str, partitions: int, *, replicas: int = len(BROKER_IDS)) -> None:
        """Create a topic with `replicas` replicas, and wait until they are in sync."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 2, **for_librdkafka()})
        wanted = NewTopic(topic, partitions, replicas, config={"min.insync.replicas": "2"})

        def is_taken() -> bool:
            try:
                admin.create_topics([wanted])[topic].result(60)
            except KafkaException as error:
                # The controller may have moved since the client last looked it up. The client does not retry
                # by itself.
                if error.args[0].name() != "NOT_CONTROLLER":
                    raise
                admin.list_topics(timeout=60)
                return False
            return True

        wait_until(is_taken, _RECOVERY_S, f"acceptance of {topic}", 0.1)
        wait_until(lambda: len(self.states(topic)) == partitions, _RECOVERY_S, f"creation of {topic}")
        self.wait_in_sync(topic, replicas=replicas)

    def wait_in_sync(
        self, topic: str, timeout_s: float = _RECOVERY_S, *, replicas: int = len(BROKER_IDS)
    ) -> None:
        """Wait until every partition has a leader and `replicas` in-sync replicas."""

        def all_in_sync() -> bool:
            return all(
                state.leader in BROKER_IDS and len(state.isr) == replicas
                for state in self.states(topic).values()
            )

        wait_until(all_in_sync, timeout_s, f"all replicas of {topic} in sync", 0.1)

    def wait_without(self, broker_id: int, topic: str, timeout_s: float = _RECOVERY_S) -> None:
        """Wait until the broker leads no partition, is in no ISR and is not the controller."""

        def taken_over() -> bool:
            return self.controller() not in (None, broker_id) and all(
                state.leader not in (-1, broker_id) and broker_id not in state.isr
                for state in self.states(topic).values()
            )

        wait_until(taken_over, timeout_s, f"failover from broker {broker_id}", 0.05)

    def start(self, broker_id: int, launched: Callable[[int], None] = lambda pid: None) -> None:
        """Start a broker again, and wait until it is ready. `launched` is called with its process id before
        it is ready.
        """
        self.brokers[broker_id].launch()
        launched(self.brokers[broker_id].pid)
        self.brokers[broker_id].wait_ready(_START_S)

    @contextmanager
    def paused(self, broker_id: int) -> Iterator[None]:
        """Pause the broker with SIGSTOP within the block."""
        child = self.nodes[broker_id].process.child
        self._paused.add(broker_id)
        child.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._paused.discard(broker_id)
            child.send_signal(signal.SIGCONT)


def sleep_until(moment_s: float) -> None:
    """Sleep until time.monotonic() reaches `moment_s`."""
    time.sleep(max(0.0, moment_s - time.monotonic()))  # faults are scheduled for given moments
