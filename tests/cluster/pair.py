"""Two clusters of three brokers on one ZooKeeper, this project's and Apache Kafka 3.9.1, that go through the
same steps.

After each step, `compare` compares the output of `kafka-topics --describe` and the payload of every node.
"""

from __future__ import annotations

import difflib
import json
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.support.java_tools import JavaTools, Printed
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, ZooKeeper

T = TypeVar("T")

SETTINGS = {
    "zookeeper.session.timeout.ms": "6000",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "500",
}
SETTLE_S = 30.0
START_S = 240.0
"""Apache Kafka starts slowly on a busy machine."""

_NEUTRAL = (
    (r'("timestamp": ?")\d+', r"\1TIME"),
    (r'("topic_id": ?")[^"]+', r"\1ID"),
    (r'("version":"1","id":")[^"]+', r"\1ID"),
    (r"TopicId: \S+", "TopicId: ID"),
    # From DescribeTopicPartitions, which Apache Kafka serves only with KRaft.
    (r"\tElr: [^\t\n]*\tLastKnownElr: [^\t\n]*", ""),
    # Apache Kafka's console producer requests producer ids from several brokers until one of them has fetched
    # a block.
    (r'("broker":)\d+(,"block_start":)"\d+"(,"block_end":)"\d+"', r'\1ID\2"ID"\3"ID"'),
)


class Side:
    """One of the two clusters. "{folder}" in a setting is replaced by the broker's directory."""

    def __init__(
        self,
        name: str,
        zookeeper: ZooKeeper,
        directory: Path,
        settings: Mapping[str, str],
        tools: JavaTools,
        genuine: Collection[int] = (),
    ) -> None:
        """`genuine` are the brokers of Apache Kafka in the cluster named "ours"."""
        self.name = name
        self._genuine = genuine
        self.brokers: dict[int, Server] = {}
        self.tools = tools
        self._zookeeper = zookeeper
        self.folder = directory / name
        self._settings = settings
        self.ports: dict[str, str] = {}
        """Maps each broker's port to its placeholder in outputs."""
        self._chroot = f"/{name}"
        self.store = zookeeper.address + self._chroot
        """The cluster's zookeeper.connect."""
        self._client = KazooClient(zookeeper.address)
        self._client.start(20)
        for broker_id in (1, 2, 3):
            self.add_broker(broker_id)

    def add_broker(self, broker_id: int, configured_id: int | None = None) -> Server:
        """Add a broker without starting it. `configured_id` is its broker.id setting, if different from
        `broker_id`.
        """
        folder = self.folder / str(broker_id)
        settings = {
            "broker.id": str(broker_id if configured_id is None else configured_id),
            "zookeeper.connect": self.store,
            **{name: value.replace("{folder}", str(folder)) for name, value in self._settings.items()},
        }
        broker: Server
        if self.name == "ours" and broker_id not in self._genuine:
            broker = KafkaCompatBroker(folder, settings)
        else:
            # Nothing is measured here, in a campaign either.
            broker = GenuineKafka(folder, settings, zookeeper=self._zookeeper, heap="256M", quick_start=True)
        self.brokers[broker_id] = broker
        self.ports[str(broker.port)] = f"PORT-{broker_id}"
        return broker

    def start(self) -> None:
        """Start broker 1 first, so that it becomes the controller."""
        first, *others = self.brokers.values()
        first.launch()
        first.wait_ready(START_S)
        wait_until(lambda: self.node("/controller") is not None, START_S, "a controller")
        for broker in others:
            broker.launch()
        for broker in others:
            broker.wait_ready(START_S)

    def close(self) -> None:
        self._client.stop()
        self._client.close()
        for broker in self.brokers.values():
            if broker.running:
                broker.kill()

    @property
    def alive(self) -> str:
        """The addresses of the running brokers."""
        return ",".join(broker.address for broker in self.brokers.values() if broker.running)

    def run(self, tool: str, *arguments: str, stdin: str = "") -> Printed:
        """Run a tool on this cluster, and check that it succeeds."""
        printed = self.tools.run(tool, "--bootstrap-server", self.alive, *arguments, stdin=stdin)
        assert printed.code == 0, f"{self.name}: {tool} {arguments}: {printed}"
        return printed

    def reassign(self, file: str, *arguments: str) -> str:
        """Return the output of kafka-reassign-partitions."""
        return self.run("kafka-reassign-partitions", "--reassignment-json-file", file, *arguments).out

    def describe(self) -> str:
        """Return the descriptions of all topics by kafka-topics, sorted."""
        lines = self.run("kafka-topics", "--describe").out.splitlines()
        return "\n".join(sorted(map(neutral, lines)))

    def node(self, path: str) -> bytes | None:
        """Return a node's payload, or None if the node is missing or has none."""
        try:
            data: bytes | None = self._client.get(self._chroot + path)[0]
        except NoNodeError:
            return None
        return data

    def exists(self, path: str) -> bool:
        return self._client.exists(self._chroot + path) is not None

    def broker_epoch(self, broker_id: int) -> int:
        """Return the czxid of a broker's registration."""
        epoch: int = self._client.get(f"{self._chroot}/brokers/ids/{broker_id}")[1].czxid
        return epoch

    def children(self, path: str) -> list[str]:
        try:
            return sorted(self._client.get_children(self._chroot + path))
        except NoNodeError:
            return []

    def nodes(self) -> dict[str, str]:
        """Map each node's path to its payload. Partition state nodes also have their version."""
        found: dict[str, str] = {}
        waiting = [""]
        while waiting:
            path = waiting.pop()
            try:
                data, stat = self._client.get(self._chroot + path)
            except NoNodeError:
                continue
            text = "null" if data is None else self._neutral(data.decode())
            if path.startswith(("/kafka-acl/", "/kafka-acl-extended/")) and data:
                # The entries are a set, whose order in Apache Kafka depends on hash codes.
                text = str(sorted(json.dumps(entry) for entry in json.loads(data).get("acls", ())))
            found[path or "/"] = f"{text} version {stat.version}" if path.endswith("/state") else text
            waiting.extend(f"{path}/{name}" for name in self.children(path or "/"))
        # The tools send requests to several brokers concurrently, so the order of their notices varies.
        notices = [path for path in found if path.startswith("/config/changes/")]
        found.update(zip(sorted(notices), sorted(found[path] for path in notices), strict=True))
        return dict(sorted(found.items()))

    def write(self, path: str, payload: object = None, *, sequential: bool = False) -> None:
        """Create a node, as administrators and old tools do, with a JSON payload or none."""
        data = None if payload is None else json.dumps(payload).encode()
        self._client.create(self._chroot + path, data, sequence=sequential)

    def elect(self, broker_id: int) -> None:
        """Make a broker the controller: delete /controller while the other brokers are paused."""

        def is_controller() -> bool:
            data = self.node("/controller")
            return data is not None and json.loads(data)["brokerid"] == broker_id

        others = [broker.process.child for number, broker in self.brokers.items() if number != broker_id]
        for child in others:
            child.send_signal(signal.SIGSTOP)
        try:
            self._client.delete(f"{self._chroot}/controller")
            wait_until(is_controller, SETTLE_S, f"{self.name}: controller {broker_id}", 0.02)
        finally:
            for child in others:
                child.send_signal(signal.SIGCONT)

    def partition(self, topic: str, partition: int = 0) -> tuple[int, list[int]]:
        """Return (leader, in-sync replicas) from the partition state node, or (-2, []) if it is missing."""
        data = self.node(f"/brokers/topics/{topic}/partitions/{partition}/state")
        if data is None:
            return -2, []
        state = json.loads(data)
        return state["leader"], state["isr"]

    def fully_in_sync(self, *, led_only: bool = False) -> bool:
        """Return whether all replicas on registered brokers are in sync. With `led_only`, ignore partitions
        without a leader.
        """
        brokers = {int(name) for name in self.children("/brokers/ids")}
        for topic in self.children("/brokers/topics"):
            replicas = json.loads(self.node(f"/brokers/topics/{topic}") or b"{}").get("partitions", {})
            for index, holders in replicas.items():
                leader, in_sync = self.partition(topic, int(index))
                if not set(holders) & brokers <= set(in_sync) and (leader >= 0 or not led_only):
                    return False
        return True

    def _neutral(self, text: str) -> str:
        for port, name in self.ports.items():
            text = re.sub(rf"\b{port}\b", name, text)
        return neutral(text)


def neutral(text: str) -> str:
    """Replace values that always differ between clusters: times, topic ids, the cluster id and producer
    ids.
    """
    for pattern, shown in _NEUTRAL:
        text = re.sub(pattern, shown, text)
    return text


class Pair:
    """Both clusters. `both` runs a step on each of them concurrently. In our cluster, the brokers
    `genuine` are of Apache Kafka, too.
    """

    def __init__(
        self, directory: Path, settings: Mapping[str, str] | None = None, genuine: Collection[int] = ()
    ) -> None:
        self.directory = directory
        self.zookeeper = ZooKeeper(directory / "zookeeper")
        self.zookeeper.start()
        given = SETTINGS | dict(settings or {})
        # One JVM for both sides: it loads the classes once.
        self._tools = JavaTools()
        self.ours = Side("ours", self.zookeeper, directory, given, self._tools, genuine)
        self.genuine = Side("genuine", self.zookeeper, directory, given, self._tools)
        self.sides = (self.ours, self.genuine)
        self._threads = ThreadPoolExecutor(len(self.sides))

    def both(self, step: Callable[[Side], T]) -> tuple[T, T]:
        """Return the results of the step, this project's first."""
        ours, genuine = self._threads.map(step, self.sides)
        return ours, genuine

    def until(self, reached: Callable[[Side], object], what: str, timeout_s: float = SETTLE_S) -> None:
        """Wait until the condition holds for both clusters."""
        for side in self.sides:
            wait_until(lambda side=side: reached(side), timeout_s, f"{side.name}: {what}", 0.05)  # type: ignore[misc]

    def compare(self, step: str) -> None:
        """Check that both clusters look the same. Retry until SETTLE_S has passed."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            ours, genuine = self.both(lambda side: side.nodes())
            if ours == genuine or time.monotonic() > deadline:
                break
            time.sleep(0.1)  # interval of polling
        assert ours == genuine, _difference(step, _lines(genuine), _lines(ours))
        while True:
            shown, wanted = self.both(lambda side: side.describe())
            if shown == wanted or time.monotonic() > deadline:
                break
        assert shown == wanted, _difference(step, wanted.splitlines(), shown.splitlines())

    def close(self) -> None:
        for side in self.sides:
            side.close()
        self._tools.close()
        self._threads.shutdown()
        self.zookeeper.kill()


@contextmanager
def running(
    directory: Path, settings: Mapping[str, str] | None = None, genuine: Collection[int] = ()
) -> Iterator[Pair]:
    """Start both clusters with all brokers."""
    pair = Pair(directory, settings, genuine)
    try:
        pair.both(lambda side: side.start())
        yield pair
    finally:
        pair.close()


def _lines(nodes: Mapping[str, str]) -> list[str]:
    return [f"{path}  {text}" for path, text in nodes.items()]


def _difference(step: str, genuine: list[str], ours: list[str]) -> str:
    lines = difflib.unified_diff(genuine, ours, "genuine", "ours", lineterm="", n=0)
    return f"after {step}:\n" + "\n".join(lines)
