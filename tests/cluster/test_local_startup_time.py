"""Startup time of `serve --brokers 3`, from the command to the first Metadata response and the first
acknowledged record.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain
from tests.restart.client import produce
from tests.support.ports import free_port
from tests.support.servers import PROJECT

TRIES = 5
"""Number of starts. The fastest one counts."""

_SAMPLE_S = 0.05


def test_three_brokers_serve_a_client_within_a_second_of_startup(tmp_path: Path) -> None:
    found = []
    for number in range(TRIES):
        before = _slowdown()
        metadata_s, record_s = _start(tmp_path / str(number))
        found.append((record_s / max(before, _slowdown()), metadata_s, record_s))
    record_on_idle_s, metadata_s, record_s = min(found)
    print(
        f"Metadata with three brokers after {metadata_s:.2f} s, a record on all three after {record_s:.2f} s"
    )
    assert record_on_idle_s < 1


def _slowdown() -> float:
    """Return the factor by which other load slows down this process: 1 on an idle machine."""
    started, cpu = time.monotonic(), time.process_time()
    while time.process_time() - cpu < _SAMPLE_S:
        pass
    return max(1.0, (time.monotonic() - started) / _SAMPLE_S)


def _start(directory: Path) -> tuple[float, float]:
    """Return the seconds from the command to Metadata with three brokers and a controller, and to a record
    with acks=all in a new topic with three replicas.
    """
    port = _three_free_ports()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(directory),
        "default.replication.factor": "3",
        "min.insync.replicas": "3",
    }
    overrides = [f"--override={name}={value}" for name, value in settings.items()]
    started = time.monotonic()
    command = [sys.executable, "-m", "kafka_compat", "serve", "--brokers", "3", *overrides]
    child = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL)
    try:
        connection = _connected(port)
        request: Plain = {"topics": []}
        while True:
            found = connection.ask(ApiKey.METADATA, 9, request)
            if len(found["brokers"]) == 3 and found["controller_id"] > 0:
                break
        metadata_s = time.monotonic() - started
        request = {"topics": [{"name": "first"}], "allow_auto_topic_creation": True}
        while True:
            (topic,) = connection.ask(ApiKey.METADATA, 9, request)["topics"]
            if topic["error_code"] == ErrorCode.NONE and len(topic["partitions"][0]["isr_nodes"]) == 3:
                break
        leader = Connection(f"127.0.0.1:{port + topic['partitions'][0]['leader_id'] - 1}")
        while produce(leader, "first", [b"first"]).error is not ErrorCode.NONE:
            pass
        return metadata_s, time.monotonic() - started
    finally:
        child.terminate()
        child.wait(20)


def _three_free_ports() -> int:
    """Return the first of three consecutive free ports."""
    while True:
        port = free_port()
        with contextlib.suppress(OSError), contextlib.ExitStack() as open_ports:
            for offset in (1, 2):
                open_ports.enter_context(socket.create_server(("127.0.0.1", port + offset)))
            return port


def _connected(port: int) -> Connection:
    deadline = time.monotonic() + 30
    while True:
        try:
            return Connection(f"127.0.0.1:{port}")
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "no broker is listening"
            time.sleep(0.005)  # interval of polling
