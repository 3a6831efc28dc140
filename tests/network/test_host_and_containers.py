"""One broker in a container, with clients on the host and in another container at the same time.

Network namespaces take the place of containers, and a proxy that of the published port. As with Docker, the
connections of the host come from the gateway of the containers' network.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.proxy import SilentProxy
from tests.partitions.network import Network, missing
from tests.support.servers import PROJECT, KafkaCompatBroker

HOST, CONTAINER, OTHER = "host", "kafka", "client"
PORT = 9092
COUNT = 50
_BROKER_FOR_TESTS = """
import json, sys
from kafka_compat.testing import KafkaBroker

with KafkaBroker(containers=True) as broker:
    print(json.dumps([broker.bootstrap_servers, broker.container_bootstrap_servers]), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    made = Network([HOST, CONTAINER, OTHER])
    made.create()
    for container in (CONTAINER, OTHER):
        made.route(container, HOST)
    yield made
    made.delete()


def run_both(network: Network, servers: dict[str, str]) -> dict[str, list[str]]:
    """Run a client on each host at the same time, with these bootstrap servers. Return the addresses of the
    brokers that each client received.
    """
    running = {}
    for host, bootstrap in servers.items():
        arguments = [bootstrap, host, str(COUNT), str(COUNT * len(servers))]
        command = [*network.launcher(host), sys.executable, "-m", "tests.network.one_side", *arguments]
        running[host] = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    outputs = {host: process.communicate(timeout=180)[0] for host, process in running.items()}
    assert {process.returncode for process in running.values()} == {0}
    return {host: json.loads(output) for host, output in outputs.items()}


def test_a_published_port_serves_the_host_and_other_containers(network: Network, tmp_path: Path) -> None:
    with ExitStack() as stack:
        proxy = SilentProxy(PORT, network.address(CONTAINER))
        network.on(HOST, proxy.__enter__)
        stack.callback(proxy.__exit__)
        published = f"localhost:{proxy.port}"
        settings = {
            "listeners": f"PLAINTEXT://:{PORT}",
            "kafka.compat.published.listeners": f"PLAINTEXT://{published}",
        }
        broker = KafkaCompatBroker(tmp_path, settings, port=PORT)
        broker.launcher = network.launcher(CONTAINER)
        broker.start()
        stack.callback(broker.stop)
        inside = f"{network.address(CONTAINER)}:{PORT}"
        received = run_both(network, {HOST: published, OTHER: inside})
        assert received == {HOST: [published], OTHER: [inside]}


def test_a_broker_for_tests_serves_its_machine_and_containers(network: Network) -> None:
    command = [*network.launcher(HOST), sys.executable, "-c", _BROKER_FOR_TESTS]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as broker:
        assert broker.stdout is not None
        local, for_containers = json.loads(broker.stdout.readline())
        assert local.startswith("127.0.0.1:")
        assert for_containers.startswith(network.address(HOST) + ":")
        received = run_both(network, {HOST: local, OTHER: for_containers})
        assert received == {HOST: [local], OTHER: [for_containers]}
        broker.communicate()
    assert broker.returncode == 0
