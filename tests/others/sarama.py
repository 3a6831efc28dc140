"""sarama: its functional tests, against five brokers in five racks behind toxiproxy, which the tests stop and
start.
"""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.others.docker_stand_in import docker
from tests.others.go_modules import GoTests, installed
from tests.others.servers import START_TIMEOUT_S
from tests.others.suite import Outcomes, Side, Suite
from tests.support.ports import adjacent_ports, free_port
from tests.support.process import Process, wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server, ZooKeeper, metadata

VERSION = "v1.61.1"
_KAFKA = "3.9.1"
_BROKER_IDS = (1, 2, 3, 4, 5)
_TIMEOUT_S = 2400
_ATTEMPTS = 3
"""The suite's own workflow repeats failed tests too. One of them panics if the broker that it stops is the
one that it asks.
"""
_ADDRESSES = "29090"
"""In the sources: the port before the first of the five that the tests connect to."""


class _Cluster:
    """Five brokers on ZooKeeper, with the settings of the suite's own environment."""

    def __init__(self, side: Side, directory: Path, advertised_ports: Sequence[int]) -> None:
        self.zookeeper = ZooKeeper(directory / "zookeeper")
        self.client_ports = [free_port() for _ in _BROKER_IDS]
        self.brokers: dict[int, Server] = {}
        for index, broker_id in enumerate(_BROKER_IDS):
            port = free_port()
            settings = self._settings(broker_id, port, self.client_ports[index], advertised_ports[index])
            folder = directory / f"broker-{broker_id}"
            self.brokers[broker_id] = (
                KafkaCompatBroker(folder, settings, port=port)
                if side == "ours"
                else GenuineKafka(folder, settings, port=port, zookeeper=self.zookeeper)
            )

    def _settings(self, broker_id: int, port: int, client_port: int, advertised_port: int) -> dict[str, str]:
        return {
            "broker.id": str(broker_id),
            "broker.rack": str(broker_id),
            "listeners": f"INTERNAL://127.0.0.1:{port},LOCAL://127.0.0.1:{client_port}",
            "advertised.listeners": f"INTERNAL://127.0.0.1:{port},LOCAL://127.0.0.1:{advertised_port}",
            "listener.security.protocol.map": "INTERNAL:PLAINTEXT,LOCAL:PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "zookeeper.connect": self.zookeeper.address,
            "zookeeper.session.timeout.ms": "6000",
            "default.replication.factor": "2",
            "offsets.topic.replication.factor": "2",
            "transaction.state.log.replication.factor": "2",
            "transaction.state.log.min.isr": "1",
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "auto.create.topics.enable": "false",
        }

    def start(self) -> None:
        self.zookeeper.start()
        for broker in self.brokers.values():
            broker.launch()
        for broker in self.brokers.values():
            broker.wait_ready(START_TIMEOUT_S)
        wait_until(self._complete, START_TIMEOUT_S, "all brokers know each other", 0.1)

    def stop(self) -> None:
        for broker in self.brokers.values():
            broker.process.kill()
            broker.stop()
        self.zookeeper.stop()

    def control(self, arguments: Sequence[str]) -> str:
        """Carry out `docker compose start`, `stop` and `logs`."""
        match arguments:
            case ["compose", "start", service]:
                if not self._broker(service).running:
                    self._broker(service).start(START_TIMEOUT_S)
            case ["compose", "stop", service]:
                self._broker(service).process.stop()
            case ["compose", "logs", *_, service]:
                return self._broker(service).log.read_text(errors="replace")
            case _:
                raise ValueError("unknown command")
        return ""

    def _broker(self, service: str) -> Server:
        return self.brokers[int(service.removeprefix("kafka-"))]

    def _complete(self) -> bool:
        found = [metadata(broker.port) for broker in self.brokers.values()]
        return all(each is not None and len(each.brokers) == len(_BROKER_IDS) for each in found)


@contextmanager
def _toxiproxy(log: Path, upstreams: Mapping[int, int]) -> Iterator[str]:
    """Run toxiproxy, which forwards ports of this machine to others. Yield its URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    program = installed("github.com/Shopify/toxiproxy/v2", "v2.5.0", "cmd/server")
    process = Process(
        [program, "-host", "127.0.0.1", "-port", str(port)], log, "Starting HTTP server on endpoint"
    )
    process.start()
    try:
        proxies = [
            {"name": f"kafka{index}", "listen": f"127.0.0.1:{listen}", "upstream": f"127.0.0.1:{target}"}
            for index, (listen, target) in enumerate(upstreams.items(), 1)
        ]
        request = urllib.request.Request(f"{url}/populate", json.dumps(proxies).encode(), method="POST")
        wait_until(lambda: _accepts(request), 30, "toxiproxy accepts requests", 0.1)
        yield url
    finally:
        process.stop()


def _accepts(request: urllib.request.Request) -> bool:
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return bool(response.status < 300)
    except OSError:
        return False


def _functional_tests(sources: Path) -> str:
    """Return the pattern of the functional tests."""
    texts = [file.read_text() for file in sorted(sources.glob("functional_*_test.go"))]
    names = re.findall(r"^func (Test\w+)\(t ", "\n".join(texts), re.MULTILINE)
    return f"^({'|'.join(names)})$"


def run(side: Side, directory: Path) -> Outcomes:
    """Run the functional tests."""
    first = adjacent_ports(len(_BROKER_IDS))
    tests = GoTests(
        "github.com/IBM/sarama",
        VERSION,
        ["."],
        replaced={_ADDRESSES: str(first - 1)},
        tags=["functional"],
        directory=directory / "sources",
    )
    tests.compile()
    advertised = [first + index for index in range(len(_BROKER_IDS))]
    cluster = _Cluster(side, directory, advertised)
    upstreams = dict(zip(advertised, cluster.client_ports, strict=True))
    with ExitStack() as stack:
        stack.callback(cluster.stop)
        cluster.start()
        url = stack.enter_context(_toxiproxy(directory / "toxiproxy.log", upstreams))
        programs = stack.enter_context(docker(directory / "programs", cluster.control))
        environment = {
            "TOXIPROXY_ADDR": url,
            "KAFKA_VERSION": _KAFKA,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        }
        return tests.run(
            directory / "tests.json",
            environment,
            pattern=_functional_tests(directory / "sources"),
            timeout_s=_TIMEOUT_S,
            attempts=_ATTEMPTS,
        )


SUITE = Suite(
    name="sarama",
    version=VERSION.removeprefix("v"),
    source="Go module",
    servers=f"Kafka {_KAFKA}, five brokers",
    run=run,
    link="https://github.com/IBM/sarama",
)
