"""The HTTP listeners of nodes of a quorum: what is available on which node."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_compat.quorum.metadata_directory import OWN_LOG
from kafka_compat.storage.directories.directory_names import METADATA_LOG
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker


@contextmanager
def running(directory: Path, roles: str) -> Iterator[tuple[KafkaCompatBroker, str]]:
    """Run the only voter of a quorum with the control API, and yield it with the URL of its HTTP listener."""
    http, controllers = free_port(), free_port()
    node = KafkaCompatBroker(directory)
    own = f"PLAINTEXT://{node.address}," if "broker" in roles else ""
    port = controllers if own else node.port
    node.overrides |= {
        "process.roles": roles,
        "node.id": "1",
        "listeners": f"{own}CONTROLLER://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{port}",
        "kafka.compat.http.listener": f"http://127.0.0.1:{http}",
        "kafka.compat.control.enable": "true",
    }
    # With a metadata log, the only voter does not run as a standalone broker.
    own_log = node.log_dir / METADATA_LOG / OWN_LOG
    own_log.parent.mkdir(parents=True)
    own_log.touch()
    node.start()
    try:
        yield node, f"http://127.0.0.1:{http}"
    finally:
        node.stop()


def ask(url: str, body: object = None) -> tuple[int, str]:
    """Return the status and the text of a response."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_controller_serves_only_health_checks_and_metrics(tmp_path: Path) -> None:
    with running(tmp_path, "controller") as (_, url):
        assert ask(f"{url}/live")[0] == 200
        status, text = ask(f"{url}/metrics")
        assert status == 200
        assert "raft" in text
        for path in ("/ui", "/control/v1/time"):
            status, text = ask(url + path)
            assert status == 404
            assert "only a controller: use the HTTP listener of a broker" in text


def test_states_of_a_node_of_a_quorum_cannot_be_saved(tmp_path: Path) -> None:
    with running(tmp_path, "broker,controller") as (_, url):
        assert ask(f"{url}/ready")[0] == 200
        assert "raft" in ask(f"{url}/metrics")[1]
        status, text = ask(f"{url}/control/v1/snapshots", {"name": "state"})
        assert status == 501
        assert "process" in text
        status, text = ask(f"{url}/control/v1/brokers/1/expire", {})
        assert status == 409
        assert "--brokers" in text
