"""`serve --processes N` from startup to shutdown, as seen by a person at a terminal and by clients."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection
from tests.processes.command import Command, wait_gone
from tests.processes.topics import PARTITIONS, TOPIC, assert_holds, create_topic, fill, in_sync
from tests.support import campaign
from tests.support.process import wait_until
from tests.support.servers import PROJECT, run_kafka_compat


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """A command shared by tests that do not change it."""
    with Command(tmp_path_factory.mktemp("three"), 3) as command:
        yield command


def test_each_broker_has_its_own_process_port_and_directory(three: Command) -> None:
    assert three.ports == {1: three.port, 2: three.port + 1, 3: three.port + 2}
    addresses = ",".join(f"127.0.0.1:{three.port + index}" for index in range(3))
    assert f"3 processes ready: {addresses}\n" in three.said
    for broker_id in (1, 2, 3):
        assert f"data in {three.settings['log.dirs']}/broker-{broker_id}\n" in three.said
    pids = [three.pid_of(broker_id) for broker_id in (1, 2, 3)]
    assert len({three.pid, *pids}) == 4
    three.wait_registered({1, 2, 3})


@pytest.mark.parametrize("option", ["--processes", "--brokers"])
def test_each_broker_prints_the_lines_that_container_tools_wait_for(tmp_path: Path, option: str) -> None:
    with Command(tmp_path, 2, option=option, arguments=["--kafka-lines"]) as command:
        wait_until(lambda: "[KafkaServer id=2] started" in command.said, 20, "the lines of both brokers")
        for broker_id in (1, 2):
            assert f"[KafkaServer id={broker_id}] started" in command.said
            assert f"BrokerLifecycleManager id={broker_id}] The broker has been unfenced." in command.said
            assert f"[KafkaRaftServer nodeId={broker_id}] Kafka Server started" in command.said


def test_clients_can_write_to_and_read_from_all_processes(three: Command) -> None:
    create_topic(three)
    assert {leader for leader, _ in in_sync(three).values()} == {1, 2, 3}
    assert_holds(three, fill(three))


def test_a_kafka_python_group_commits_its_offsets(three: Command) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    servers = three.bootstrap_servers.split(",")
    create_topic(three, "greetings", replicas=3)
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    for number in range(30):
        producer.send("greetings", f"hello {number}".encode(), partition=number % PARTITIONS)
    producer.flush()
    producer.close()
    consumer = KafkaConsumer(
        "greetings", bootstrap_servers=servers, group_id="readers", auto_offset_reset="earliest"
    )
    found: set[bytes] = set()
    while len(found) < 30:
        for records in consumer.poll(5000).values():
            found.update(record.value for record in records)
    consumer.commit()
    committed = [consumer.committed(partition) for partition in consumer.assignment()]
    consumer.close()
    assert committed == [10, 10, 10]
    assert len(in_sync(three, "__consumer_offsets")[0][1]) == 3


def test_replicas_are_spread_even_if_all_brokers_are_in_one_rack(three: Command) -> None:
    with Connection(f"127.0.0.1:{three.port}") as connection:
        answer = connection.ask(ApiKey.METADATA, 9, {"topics": []})
    assert {broker["rack"] for broker in answer["brokers"]} == {socket.gethostname()}
    create_topic(three, "spread", replicas=2)
    assert {leader for leader, _ in in_sync(three, "spread").values()} == {1, 2, 3}


def test_the_health_command_checks_every_process(three: Command) -> None:
    given = f"--override=listeners=PLAINTEXT://127.0.0.1:{three.port}"
    assert run_kafka_compat("health", given, "--processes=3").returncode == 0
    one_more = run_kafka_compat("health", given, "--processes=4")
    assert one_more.returncode == 1
    assert f"no broker responds at 127.0.0.1:{three.port + 3}" in one_more.stderr


def test_the_parent_process_uses_little_memory(three: Command) -> None:
    status = Path(f"/proc/{three.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    assert int(found[1]) < 40_000
    maps = Path(f"/proc/{three.pid}/maps").read_text()
    assert "crc32c" not in maps
    assert "lz4" not in maps


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_all_brokers_cleanly(tmp_path: Path, number: int) -> None:
    with Command(tmp_path) as command:
        pids = command.processes()
        assert len(pids) == 2
        create_topic(command)
        load = fill(command)
        os.killpg(command.pid, number)
        assert command.wait() == 0
        assert wait_gone(pids, 0.5) < 0.5
        assert command.is_clean
        assert "Traceback" not in command.said
        command.start()
        assert_holds(command, load)
        assert command.stop() == 0


def test_a_ready_broker_knows_all_topics(tmp_path: Path) -> None:
    """A new controller first sends the brokers each other's addresses, and the topics afterwards."""
    command = Command(tmp_path, 3)
    with command:
        create_topic(command)
    for _ in range(campaign.rounds(4, 20)):
        with command:
            for port in command.ports.values():
                with Connection(f"127.0.0.1:{port}") as connection:
                    answer = connection.ask(ApiKey.METADATA, 9, {"topics": None})
                assert [(item["name"], len(item["partitions"])) for item in answer["topics"]] == [(TOPIC, 3)]


def test_sigterm_is_handled_at_any_moment_during_startup(tmp_path: Path) -> None:
    command = Command(tmp_path)
    chance = random.Random(4)
    for _ in range(campaign.rounds(8, 60)):
        with command.launched():
            wait_until(lambda: _handles_sigterm(command.pid), 10, "installation of the signal handler", 0.001)
            time.sleep(chance.uniform(0, 0.6))  # the signal comes at a random moment of startup
            assert command.stop() == 0, command.said
            assert command.processes() == []
            assert "Traceback" not in command.said


def _handles_sigterm(pid: int) -> bool:
    found = re.search(r"SigCgt:\s+(\w+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return bool(int(found[1], 16) >> (signal.SIGTERM - 1) & 1)


def test_single_process_and_multi_process_clusters_can_use_a_directory_in_turn(tmp_path: Path) -> None:
    first = Command(tmp_path, option="--brokers")
    with first:
        create_topic(first)
        load = fill(first)
        assert first.stop() == 0
    second = Command(tmp_path, port=first.port)
    with second:
        assert_holds(second, load)
        create_topic(second, "added")
        assert second.stop() == 0
    with first:
        assert_holds(first, load)
        assert set(in_sync(first, "added")) == set(range(PARTITIONS))
        assert first.stop() == 0


def test_a_directory_can_be_used_by_only_one_command_at_a_time(tmp_path: Path) -> None:
    with Command(tmp_path / "first") as first:
        folder = first.settings["log.dirs"]
        for option in ("--brokers", "--processes"):
            other = Command(tmp_path / "other", settings={"log.dirs": folder}, option=option)
            with other.launched():
                assert other.wait() == 2
                assert f"another broker uses {folder}: stop it" in other.said
        first.wait_registered({1, 2})


def test_ids_are_assigned_starting_at_broker_id(tmp_path: Path) -> None:
    with Command(tmp_path, settings={"broker.id": "7"}) as command:
        assert command.ports == {7: command.port, 8: command.port + 1}
        assert sorted(path.name for path in (tmp_path / "data").glob("broker-*")) == ["broker-7", "broker-8"]


def test_topics_given_in_the_environment_are_created_once(tmp_path: Path) -> None:
    environment = {"KAFKA_CREATE_TOPICS": "orders:3:2,users:1:1:compact"}
    with Command(tmp_path, arguments=["--env"], environment=environment) as command:

        def replicas() -> list[int]:
            return [len(isr) for _, isr in in_sync(command, "orders").values()]

        wait_until(lambda: replicas() == [2, 2, 2], 20, "creation of the topic", 0.1)
        wait_until(lambda: len(in_sync(command, "users")) == 1, 20, "creation of the other topic", 0.1)


# Errors


def refusal(*arguments: str) -> str:
    """Run serve, which must exit with 2, and return its error message."""
    done = subprocess.run(
        [sys.executable, "-m", "kafka_compat", "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=PROJECT,
    )
    assert done.returncode == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("kafka-compat serve: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--brokers=3", "--processes=2"], "--brokers 3 and --processes 2 cannot be combined"),
        (["--brokers=1", "--processes=2"], "--brokers 1 and --processes 2 cannot be combined"),
        (
            ["--processes=2", "--override=zookeeper.connect=127.0.0.1:1"],
            "needs broker.id, the first of the brokers' IDs",
        ),
        (["--processes=3", "--override=broker.id=999"], "Invalid value 1001 for configuration broker.id"),
        (["--processes=3", "--port=65534"], "65536 is not a port"),
        (
            [
                "--processes=2",
                "--override=listeners=A://:9092,B://:9093",
                "--override=listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT",
            ],
            "those of B and A overlap at 9093 (expected ports at least 2 apart)",
        ),
    ],
)
def test_invalid_options_are_reported_without_creating_a_directory(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    assert said in refusal(*arguments, f"--override=log.dirs={tmp_path / 'data'}")
    assert not (tmp_path / "data").exists()


def test_a_port_in_use_stops_the_command_and_all_processes(tmp_path: Path) -> None:
    command = Command(tmp_path, 3)
    with socket.create_server(("127.0.0.1", command.port + 1)), command.launched():
        assert command.wait() == 2
        assert f"cannot listen on PLAINTEXT://127.0.0.1:{command.port + 1}" in command.said
        assert command.said.count("kafka-compat serve: ") == 1
        assert command.processes() == []
    with command:
        assert command.stop() == 0


def test_the_broker_process_cannot_be_started_manually() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kafka_compat.cli.process_broker"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        cwd=PROJECT,
    )
    assert (done.returncode, "serve --processes N" in done.stderr) == (2, True)
