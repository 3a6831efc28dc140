"""Moves of logs between a broker's directories (AlterReplicaLogDirs): under load, with kills, and with
Kafka's tool.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.records import Record, build_batch
from tests.conformance import wire
from tests.durability.load import PARTITIONS, ConfluentProducer, Load, check, read_everything
from tests.support import campaign, java
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker

TOPIC = "ledger"
PATIENCE_S = 30

Server = KafkaCompatBroker | GenuineKafka


def two_disks(directory: Path, **more: str) -> tuple[list[Path], dict[str, str]]:
    disks = [directory / "disk-0", directory / "disk-1"]
    return disks, {"log.dirs": ",".join(map(str, disks)), **more}


@pytest.fixture
def moving(tmp_path: Path) -> Iterator[tuple[KafkaCompatBroker, list[Path]]]:
    disks, settings = two_disks(
        tmp_path,
        **{
            "log.segment.bytes": "262144",
            "replica.alter.log.dirs.io.max.bytes.per.second": "3000000",
            "log.segment.delete.delay.ms": "0",
        },
    )
    broker = KafkaCompatBroker(tmp_path / "broker", settings)
    broker.start()
    yield broker, disks
    broker.stop()


def ask(broker: Server, api_key: ApiKey, version: int, request: dict[str, Any]) -> dict[str, Any]:
    with wire.Connection(broker.address) as connection:
        return connection.ask(api_key, version, request)


def create(broker: Server, topic: str = TOPIC, partitions: int = PARTITIONS) -> None:
    wanted = {"name": topic, "num_partitions": partitions, "replication_factor": 1}
    answer = ask(broker, ApiKey.CREATE_TOPICS, 5, {"topics": [wanted], "timeout_ms": 20_000})
    assert answer["topics"][0]["error_code"] == 0, answer


def move(broker: Server, path: Path | str, topic: str, partitions: list[int]) -> list[int]:
    request = {"dirs": [{"path": str(path), "topics": [{"name": topic, "partitions": partitions}]}]}
    answer = ask(broker, ApiKey.ALTER_REPLICA_LOG_DIRS, 2, request)
    found = {item["partition_index"]: item["error_code"] for item in answer["results"][0]["partitions"]}
    return [found[partition] for partition in partitions]


def places(broker: Server) -> dict[int, str]:
    """Return the directory of each partition of the topic, ignoring future replicas."""
    answer = ask(broker, ApiKey.DESCRIBE_LOG_DIRS, 1, {"topics": None})
    return {
        partition["partition_index"]: result["log_dir"]
        for result in answer["results"]
        for topic in result["topics"]
        if topic["name"] == TOPIC
        for partition in topic["partitions"]
        if not partition["is_future_key"]
    }


def wait_until_all_in(broker: Server, directory: Path) -> None:
    wait_until(lambda: set(places(broker).values()) == {str(directory)}, PATIENCE_S, "all partitions moved")


@pytest.mark.timeout(900)
def test_moves_between_disks_under_load_and_kills_do_not_lose_records(
    moving: tuple[KafkaCompatBroker, list[Path]],
) -> None:
    broker, disks = moving
    create(broker)
    with Load(ConfluentProducer(broker.address, TOPIC)) as load:
        for number in range(campaign.rounds(3, 30)):
            load.wait_for_acknowledgement()
            target = disks[number % 2]
            assert move(broker, target, TOPIC, [0, 1, 2]) == [0, 0, 0]
            if number % 2:
                broker.restart(kill=True)
            wait_until_all_in(broker, target)
        load.stop_sending()
    broker.restart()
    log = read_everything(broker.address, TOPIC)
    findings = check(log, load.acknowledged, load.sent)
    assert findings.nothing, findings
    assert set(places(broker).values()) == {str(target)}
    (other,) = (disk for disk in disks if disk != target)
    logged = broker.log.read_text()

    def remaining() -> list[Path]:
        """Directories that are neither deleted nor set aside with a log message, as after a kill."""
        found = other.glob(f"{TOPIC}-*")
        return [path for path in found if f" to {path}: another log directory contains" not in logged]

    wait_until(lambda: not remaining(), PATIENCE_S, "deletion of the old directories")


def test_a_copy_whose_creation_was_interrupted_by_a_kill_gets_its_topic_id(
    moving: tuple[KafkaCompatBroker, list[Path]],
) -> None:
    """The broker was killed after it created the copy's directory and before it wrote the topic id. Then,
    after the next move, startup mistook the log for that of a different topic and set it aside.
    """
    broker, disks = moving
    create(broker, partitions=1)
    (here,) = [disk for disk in disks if (disk / f"{TOPIC}-0").exists()]
    (there,) = [disk for disk in disks if disk != here]
    batch = build_batch([Record(timestamp=1_790_000_000_000, value=b"kept") for _ in range(10)])
    data = {"name": TOPIC, "partition_data": [{"index": 0, "records": memoryview(batch)}]}
    ask(broker, ApiKey.PRODUCE, 8, {"acks": 1, "timeout_ms": 30_000, "topic_data": [data]})
    broker.kill()
    copy = there / f"{TOPIC}-0.{uuid.uuid4().hex}-future"
    copy.mkdir()
    (copy / f"{0:020}.log").touch()
    broker.start()
    wait_until_all_in(broker, there)
    assert move(broker, here, TOPIC, [0]) == [0]
    wait_until_all_in(broker, here)
    broker.restart(kill=True)
    assert "ID of a different topic" not in broker.log.read_text()
    wanted = {"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}
    answer = ask(broker, ApiKey.LIST_OFFSETS, 5, {"replica_id": -1, "topics": [wanted]})
    assert answer["topics"][0]["partitions"][0]["offset"] == 10


def test_errors_match_apache_kafkas(moving: tuple[KafkaCompatBroker, list[Path]], tmp_path: Path) -> None:
    broker, disks = moving
    theirs, settings = two_disks(tmp_path / "genuine")
    genuine = GenuineKafka(tmp_path / "genuine", settings)
    genuine.start()
    try:
        for server, directories in ((broker, disks), (genuine, theirs)):
            create(server)
            found = [
                move(server, "/not/there", TOPIC, [0]),
                move(server, "relative", TOPIC, [0]),
                move(server, directories[0], TOPIC, [0, 7]),
                move(server, directories[1], "nowhere", [0]),
            ]
            assert found == [[57], [57], [0, 3], [3]], server.name
    finally:
        genuine.stop()


def test_kafkas_tool_moves_replicas_and_verifies_the_moves(
    moving: tuple[KafkaCompatBroker, list[Path]], tmp_path: Path
) -> None:
    broker, disks = moving
    create(broker)
    plan = tmp_path / "plan.json"
    partitions = [
        {"topic": TOPIC, "partition": number, "replicas": [1], "log_dirs": [str(disks[1])]}
        for number in range(PARTITIONS)
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    arguments = ("--bootstrap-server", broker.address, "--reassignment-json-file", str(plan))
    done = java.run("kafka-reassign-partitions", *arguments, "--execute")
    assert "Successfully started" in done.stdout, done.stdout + done.stderr
    wait_until_all_in(broker, disks[1])
    done = java.run("kafka-reassign-partitions", *arguments, "--verify")
    assert done.stdout.count("is completed") >= PARTITIONS, done.stdout


@pytest.mark.parametrize("deletes_records", [False, True])
def test_repeated_moves_do_not_log_warnings(tmp_path: Path, deletes_records: bool) -> None:
    disks, settings = two_disks(tmp_path)
    broker = KafkaCompatBroker(tmp_path / "broker", settings)
    broker.start()
    data = {"index": 0, "records": build_batch([Record(value=bytes(1000)) for _ in range(10)])}
    produce = {"acks": 1, "timeout_ms": 1000, "topic_data": [{"name": TOPIC, "partition_data": [data]}]}
    everything = {"name": TOPIC, "partitions": [{"partition_index": 0, "offset": -1}]}
    moves, last = 0, ""
    try:
        create(broker, partitions=1)
        deadline = time.monotonic() + PATIENCE_S
        while moves < 20 and time.monotonic() < deadline:
            ask(broker, ApiKey.PRODUCE, 8, produce)
            if deletes_records:
                answer = ask(broker, ApiKey.DELETE_RECORDS, 1, {"topics": [everything], "timeout_ms": 1000})
                assert answer["topics"][0]["partitions"][0]["error_code"] == 0
            place = places(broker)[0]
            if place != last:
                moves, last = moves + 1, place
                assert move(broker, next(disk for disk in disks if str(disk) != place), TOPIC, [0]) == [0]
    finally:
        broker.stop()
    assert moves == 20
    assert "WARN" not in broker.log.read_text()


def test_a_move_continues_immediately_when_its_rate_limit_is_removed(tmp_path: Path) -> None:
    limit = "replica.alter.log.dirs.io.max.bytes.per.second"
    disks, settings = two_disks(tmp_path, **{limit: "100"})
    broker = KafkaCompatBroker(tmp_path / "broker", settings)
    broker.start()
    try:
        create(broker, partitions=1)
        data = {"index": 0, "records": build_batch([Record(value=bytes(100_000))])}
        topic = {"name": TOPIC, "partition_data": [data]}
        ask(broker, ApiKey.PRODUCE, 8, {"acks": -1, "timeout_ms": 1000, "topic_data": [topic]})
        target = next(disk for disk in disks if places(broker)[0] != str(disk))
        assert move(broker, target, TOPIC, [0]) == [0]
        change = {"name": limit, "config_operation": 0, "value": "10000000"}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [change]}
        answer = ask(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, {"resources": [resource]})
        assert answer["responses"][0]["error_code"] == 0
        wait_until_all_in(broker, target)
    finally:
        broker.stop()
