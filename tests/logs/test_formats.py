"""Log formats: text, and JSON for programs."""

from __future__ import annotations

import json
import re
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import Consumer

from tests.logs.reading import entries, lines_with, make_topic, wait_for
from tests.processes.command import Command
from tests.support.servers import KafkaCompatBroker, StartBroker, run_kafka_compat

JSON = {"kafka.compat.log.format": "json"}


def speak_http(broker: KafkaCompatBroker) -> None:
    with socket.create_connection(("127.0.0.1", broker.port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert connection.recv(100) == b""


def test_the_default_format_is_text(start_broker: StartBroker) -> None:
    broker = start_broker()
    speak_http(broker)
    wait_for(broker, "HTTP")
    ready, refused = broker.log.read_text().splitlines()
    assert ready == f"Broker 1 ready on PLAINTEXT://{broker.address}, data in {broker.log_dir}"
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING Closed a connection from 127\.0\.0\.1: this looks "
        r"like an HTTP request, .*",
        refused,
    )


def test_json_logs_contain_one_object_per_line(start_broker: StartBroker) -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    broker = start_broker(JSON | {"kafka.compat.log.level": "INFO", "no.such.setting": "x"})
    make_topic(broker, "orders", 2)
    speak_http(broker)
    assert broker.stop() == 0
    told = entries(broker)
    messages = {entry["message"]: entry for entry in told}
    assert all({*entry} == {"time", "level", "logger", "message"} for entry in told)
    times = [datetime.strptime(entry["time"], "%Y-%m-%dT%H:%M:%S.%f%z") for entry in told]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["time"]) for entry in told)
    assert before <= min(times) and max(times) <= datetime.now(UTC)
    assert messages["Ignored unknown settings: no.such.setting"]["level"] == "WARN"
    ready = f"Broker 1 ready on PLAINTEXT://{broker.address}, data in {broker.log_dir}"
    assert messages[ready]["level"] == "INFO"
    made = messages["Created topic orders (2 partitions, 1 replica each)"]
    assert (made["level"], made["logger"]) == ("INFO", "kafka_compat.metadata.topic_log")
    [http] = [entry for entry in told if "HTTP request" in entry["message"]]
    assert (http["level"], http["logger"]) == ("WARN", "kafka_compat.network.strangers")


def test_startup_errors_are_also_logged_as_json(start_broker: StartBroker) -> None:
    first = start_broker()
    settings = [f"--override={name}={value}" for name, value in (first.overrides | JSON).items()]
    refused = run_kafka_compat("serve", *settings)
    assert refused.returncode == 2
    assert [line[:1] + line[-1:] for line in refused.stderr.splitlines()] == ["{}"]
    assert '"level": "FATAL"' in refused.stderr and "cannot listen on" in refused.stderr


def test_client_names_cannot_add_log_lines(start_broker: StartBroker) -> None:
    """A group can have any name, which must neither add nor break a log line."""
    name = "g\n1999-12-31 12:00:00,000 ERROR all data are lost\x1b[2J"
    for settings in ({}, JSON):
        broker = start_broker({"kafka.compat.log.level": "INFO", **settings})
        make_topic(broker, "orders")
        consumer = Consumer({"bootstrap.servers": broker.address, "group.id": name, "log_level": 0})
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.05)
        consumer.close()
        assert wait_for(broker, "members: 1")
        assert "\x1b" not in broker.log.read_text()
        assert not any(line.startswith("1999") for line in lines_with(broker, "all data are lost"))
        if settings:
            assert any(name in entry["message"] for entry in entries(broker))


def test_each_process_logs_its_broker_id(tmp_path: Path) -> None:
    with Command(tmp_path, 2, JSON, arguments=["--verbose"]) as command:
        command.stop()
    lines = (tmp_path / "command.log").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    assert {entry.get("broker") for entry in told} == {None, 1, 2}
    ready = {entry["message"].split(" on ")[0]: entry.get("broker") for entry in told}
    assert ready["Broker 1 ready"] == 1 and ready["Broker 2 ready"] == 2
