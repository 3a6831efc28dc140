"""kafka-compat status against this broker and genuine Kafka: what is there is told, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from kafka_compat.client.cluster import Cluster
from kafka_compat.status.observer import Observer
from tests.conformance.features import disable_consumer_groups, enable_consumer_groups
from tests.status import world
from tests.status.world import COMMITTED, RECORDS, one, status
from tests.support.ports import free_port
from tests.support.servers import PROJECT, KafkaCompatBroker, StartBroker, run_kafka_compat


@pytest.mark.parametrize("server", ["shared_broker", "genuine", "genuine_41"])
def test_the_status_shows_topics_groups_and_lag(request: pytest.FixtureRequest, server: str) -> None:
    address = request.getfixturevalue(server).address
    topic = f"status-{uuid.uuid4()}"
    world.make_topic(address, topic, [[1], [1]], **{"min.insync.replicas": "1"})
    world.write(address, topic)
    world.write(address, topic, 3, partition=1)
    world.commit(address, f"{topic}-empty", topic, COMMITTED)
    world.commit(address, f"{topic}-lags", topic, COMMITTED)
    world.commit(address, f"{topic}-lags", topic, 1, partition=1)
    with world.reading(address, f"{topic}-lags", topic):
        _, found = status(address)
    told = one(found["topics"], "name", topic)
    assert (told["records"], told["replication_factor"], told["min_insync_replicas"]) == (RECORDS + 3, 1, 1)
    assert 10 * 100 < told["size_bytes"] == told["disk_bytes"] < 10_000
    assert [(each["leader"], each["isr"], each["end_offset"]) for each in told["partitions"]] == [
        (1, [1], RECORDS),
        (1, [1], 3),
    ]
    lags = one(found["groups"], "group", f"{topic}-lags")
    assert (lags["state"], lags["members"], lags["lag"], lags["type"]) == ("Stable", 1, 8, "classic")
    assert [(each["partition"], each["lag"]) for each in lags["partitions"]] == [(0, 6), (1, 2)]
    empty = one(found["groups"], "group", f"{topic}-empty")
    assert (empty["state"], empty["members"], empty["lag"]) == ("Empty", 0, 6)
    (broker,) = found["brokers"]
    assert (broker["id"], f"{broker['host']}:{broker['port']}", broker["is_up"]) == (1, address, True)
    assert broker["kafka"] == {"shared_broker": "4.1+", "genuine": "3.9", "genuine_41": "4.1+"}[server]
    assert found["controller_id"] == (None if found["is_kraft"] else 1)
    assert found["is_kraft"] == (server == "genuine_41")
    (log_dir,) = found["log_dirs"]
    assert log_dir["total_bytes"] > log_dir["usable_bytes"] > 0 and log_dir["error"] is None
    assert log_dir["replica_bytes"] >= told["disk_bytes"]


def _consume(address: str, topic: str) -> Consumer:
    """Return a member of the group `topic` that has received a record of the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": topic,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + 60
    while consumer.poll(0.1) is None and time.monotonic() < deadline:
        pass
    return consumer


def test_a_group_that_uses_the_consumer_protocol_is_shown(genuine_41: Any) -> None:
    topic = f"status-{uuid.uuid4()}"
    world.make_topic(genuine_41.address, topic, [[1]])
    world.write(genuine_41.address, topic)
    consumer = _consume(genuine_41.address, topic)
    try:
        _, found = status(genuine_41.address)
    finally:
        consumer.close()
    group = one(found["groups"], "group", topic)
    assert (group["type"], group["state"], group["members"]) == ("consumer", "Stable", 1)


def test_an_empty_group_of_a_disabled_protocol_is_not_a_problem(broker: KafkaCompatBroker) -> None:
    world.make_topic(broker.address, "orders", [[1]])
    world.write(broker.address, "orders")
    consumer = _consume(broker.address, "orders")
    disable_consumer_groups(broker.address)
    code, found = status(broker.address)
    assert code == 1 and "(orders): UNSUPPORTED_VERSION" in found["problems"][0]["text"]
    enable_consumer_groups(broker.address)
    consumer.close()
    disable_consumer_groups(broker.address)
    code, found = status(broker.address)
    group = one(found["groups"], "group", "orders")
    assert (code, group["state"], group["members"]) == (0, "Empty", 0)


def test_a_standalone_broker_is_healthy(broker: KafkaCompatBroker) -> None:
    world.make_topic(broker.address, "orders", [[1]])
    done = run_kafka_compat("status", "--bootstrap-server", broker.address)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[2] == "healthy" and max(map(len, lines)) <= 80
    assert "\x1b" not in done.stdout
    assert any(line.startswith("orders") for line in lines)
    assert status(broker.address)[0] == 0


def test_min_isr_above_the_number_of_replicas_is_no_problem(broker: KafkaCompatBroker) -> None:
    world.make_topic(broker.address, "orders", [[1]], **{"min.insync.replicas": "2"})
    world.write(broker.address, "orders")
    code, found = status(broker.address)
    assert (code, found["problems"]) == (0, [])


def test_a_failed_log_directory_is_reported_and_determines_the_exit_code(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    bad.write_text("a file where a directory should be")
    broker = start_broker({"log.dirs": f"{good},{bad}"})
    code, found = status(broker.address)
    (problem,) = found["problems"]
    assert (code, problem["kind"], problem["subjects"]) == (1, "log-dir-failed", [str(bad)])
    told = one(found["log_dirs"], "path", str(bad))
    assert (told["error"], told["total_bytes"]) == ("KAFKA_STORAGE_ERROR", None)


def test_an_unreachable_cluster_is_reported() -> None:
    address = f"127.0.0.1:{free_port()}"
    done = run_kafka_compat("status", "--bootstrap-server", address)
    assert (done.returncode, done.stdout) == (2, "")
    reached, next_step = done.stderr.splitlines()
    assert reached.endswith(f"no broker can be reached: {address}: Connection refused, nothing listens there")
    assert "start the broker, or give its address with --bootstrap-server" in next_step
    assert "kafka-compat doctor" in next_step
    code, found = status(address)
    assert code == 2 and "refused" in found["error"]


def test_invalid_settings_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"

    def refused(*arguments: str) -> str:
        done = run_kafka_compat("status", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        return done.stderr

    assert "nonsense is not an address: expected HOST:PORT" in refused("--bootstrap-server", "nonsense")
    assert f"cannot read {file}" in refused("--command-config", str(file))
    file.write_text("security.protocol=TLS\n")
    assert "security.protocol=TLS: expected one of PLAINTEXT" in refused("--command-config", str(file))
    file.write_text("request.timeout.ms=soon\n")
    assert "request.timeout.ms=soon: expected a number" in refused("--command-config", str(file))
    assert "expected seconds, more than 0" in refused("--watch", "0")
    assert "expected 1 or more" in refused("--rows", "none")


def test_bootstrap_servers_can_be_set_in_the_file(shared_broker: KafkaCompatBroker, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={shared_broker.address}\n")
    done = run_kafka_compat("status", "--command-config", str(file))
    assert done.returncode in (0, 1) and shared_broker.address in done.stdout


def test_many_groups_are_queried_in_few_requests(broker: KafkaCompatBroker) -> None:
    asked = []

    class Counting(Cluster):
        def try_broker(self, node_id: int, key: Any, call: str, **request: Any) -> Any:
            asked.append(key)
            return super().try_broker(node_id, key, call, **request)

    def requests() -> int:
        asked.clear()
        cluster = Counting(broker.address)
        try:
            Observer(cluster).observe()
        finally:
            cluster.close()
        return len(asked)

    world.make_topic(broker.address, "orders", [[1]])
    world.commit(broker.address, "first", "orders", 0)
    few = requests()
    for number in range(20):
        world.make_topic(broker.address, f"topic-{number}", [[1]])
        world.commit(broker.address, f"group-{number}", "orders", 0)
    assert requests() == few <= 10


# --- again and again


@contextmanager
def watching(*arguments: str, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    line = [sys.executable, "-m", "kafka_compat", "status", *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment |= {"TERM": "xterm"}
    process = subprocess.Popen(line, stdout=stdout, text=True, cwd=PROJECT, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()


def test_watch_continues_after_the_broker_stops(broker: KafkaCompatBroker) -> None:
    world.make_topic(broker.address, "orders", [[1]])
    with watching("--bootstrap-server", broker.address, "--watch", "0.1", "--json") as process:
        assert process.stdout is not None
        lines = process.stdout

        def until(key: str) -> dict[str, Any]:
            while True:
                found: dict[str, Any] = json.loads(lines.readline())
                if key in found:
                    return found

        assert one(until("topics")["topics"], "name", "orders")["records_per_second"] is None
        world.write(broker.address, "orders", 50)
        while not one(until("topics")["topics"], "name", "orders")["records_per_second"]:
            pass
        broker.stop()
        assert broker.address in until("error")["error"]
        broker.start()
        assert one(until("topics")["topics"], "name", "orders")["records"] == 50
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def _of_terminal(*arguments: str) -> tuple[int, str]:
    """What it writes to a terminal of 24 lines; with --watch it is interrupted after some screens."""
    import fcntl
    import struct
    import termios

    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    printed = b""
    with watching(*arguments, stdout=its) as process:
        os.close(its)
        deadline = time.monotonic() + 60
        interrupted = False
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    part = os.read(ours, 65536)
                except OSError:
                    break
                if not part:
                    break
                printed += part
            if "--watch" in arguments and not interrupted and printed.count(b"healthy") > 2:
                process.send_signal(signal.SIGINT)
                interrupted = True
        os.close(ours)
        return process.wait(30), printed.decode()


def test_output_to_a_terminal_is_colored_unless_disabled(
    broker: KafkaCompatBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.make_topic(broker.address, "orders", [[1]])
    green = "\x1b[32mhealthy"
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    code, printed = _of_terminal("--bootstrap-server", broker.address)
    assert (code, green in printed, "orders" in printed) == (0, True, True)
    monkeypatch.setenv("NO_COLOR", "1")
    code, printed = _of_terminal("--bootstrap-server", broker.address)
    assert code == 0 and "healthy" in printed
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", printed)


def test_watch_redraws_in_place_and_keeps_the_last_state_on_exit(broker: KafkaCompatBroker) -> None:
    code, printed = _of_terminal("--bootstrap-server", broker.address, "--watch", "0.1")
    assert code == 0
    during, _, after = printed.partition("\x1b[?1049l")
    assert during.count("healthy") > 2 and "\x1b[H" in during
    assert after.count("healthy") == 1
    assert "LAST HOUR" in after and re.search(r"Records written[^\r\n]*▁[^\r\n]* 0/s", after)
    assert "Traceback" not in printed


def test_requests_are_not_sent_to_brokers_that_have_left(broker: KafkaCompatBroker) -> None:
    """Their connections are hung up; another broker may have their address."""
    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker

    cluster = Cluster(broker.address)
    try:
        assert [node.node_id for node in cluster.brokers()] == [1]
        cluster.try_broker(1, ApiKey.LIST_GROUPS, "test")
        other = MetadataResponseBroker(node_id=7, host="127.0.0.1", port=broker.port)
        cluster.take(MetadataResponse(brokers=[other], controller_id=7))
        assert cluster.try_broker(7, ApiKey.LIST_GROUPS, "test").groups == []
        # A connection that the broker ended is made anew.
        broker.restart()
        assert cluster.try_broker(7, ApiKey.LIST_GROUPS, "test").error_code == 0
        broker.stop()
        with pytest.raises((OSError, EOFError)):
            cluster.try_broker(7, ApiKey.LIST_GROUPS, "test")
    finally:
        cluster.close()
