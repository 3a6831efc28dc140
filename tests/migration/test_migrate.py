"""kafka-compat migrate check with a genuine broker, and migrate offsets between two brokers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.cli import main
from kafka_compat.migration import translated_offsets
from kafka_compat.pipelines.exact_sink_writer import ORIGIN_HEADER, origin_name
from tests.support.servers import GenuineKafka, KafkaCompatBroker, StartBroker


def _changed(genuine: GenuineKafka, directory: Path, **settings: str) -> str:
    """Return a copy of the broker's server.properties with other settings."""
    lines = [f"{name.replace('_', '.')}={value}\n" for name, value in settings.items()]
    path = directory / "server.properties"
    path.write_text(genuine.properties_file.read_text() + "\n" + "".join(lines))
    return str(path)


def test_nothing_stands_in_the_way_of_a_genuine_broker(
    genuine: GenuineKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["migrate", "check", str(genuine.properties_file), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    texts = [each["text"] for each in report["findings"] if each["level"] == "info"]
    assert "runs Kafka 3.9" in texts
    assert any(text.startswith(f"{genuine.log_dir} is in use") for text in texts)
    assert main(["migrate", "check", str(genuine.properties_file)]) == 0
    assert capsys.readouterr().out.endswith("Nothing stands in the way.\n")


def test_exit_codes_tell_obstacles_from_an_incomplete_check(
    genuine: GenuineKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = _changed(genuine, tmp_path, inter_broker_protocol_version="2.6")
    assert main(["migrate", "check", wrong]) == 1
    assert "inter.broker.protocol.version=2.6" in capsys.readouterr().out
    unreachable = _changed(genuine, tmp_path, zookeeper_connect="127.0.0.1:1")
    assert main(["migrate", "check", unreachable, "--timeout", "1"]) == 2
    assert "the nodes were not read" in capsys.readouterr().out
    assert main(["migrate", "check", unreachable, "--skip", "zookeeper", "--skip", "brokers"]) == 0
    assert main(["migrate", "check", str(tmp_path / "missing.properties")]) == 2
    assert "missing.properties" in capsys.readouterr().err


def test_the_check_changes_nothing_in_zookeeper(
    genuine: GenuineKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from kazoo.client import KazooClient

    assert genuine.zookeeper is not None
    address = genuine.zookeeper.address
    client = KazooClient(address)
    client.start()
    try:
        before = client.get_children("/")
        wrong = _changed(genuine, tmp_path, zookeeper_connect=f"{address}/elsewhere")
        assert main(["migrate", "check", wrong, "--skip", "brokers"]) == 1
        assert "there is no cluster" in capsys.readouterr().out
        assert client.get_children("/") == before
    finally:
        client.stop()
        client.close()


# --- offsets


class _Mirror:
    """Two brokers, of which the second has the records of the first in another place, as after a mirror."""

    def __init__(self, original: KafkaCompatBroker, mirror: KafkaCompatBroker) -> None:
        self.original = original.address
        self.mirror = mirror.address

    def write(self, servers: str, records: list[tuple[bytes, list[Any]]]) -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": servers})
        for value, headers in records:
            producer.produce("t", value, partition=0, headers=headers)
        assert producer.flush(30) == 0

    def commit(self, servers: str, group: str, offset: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
        consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
        consumer.close()

    def committed(self, group: str) -> int:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.mirror, "group.id": group})
        (found,) = consumer.committed([TopicPartition("t", 0)], timeout=30)
        consumer.close()
        return int(found.offset)

    def copy(self, *more: str) -> int:
        return main(["migrate", "offsets", "--from", self.original, "--to", self.mirror, *more])


@pytest.fixture
def mirror(start_broker: StartBroker) -> _Mirror:
    """Twenty records, of which the mirror has the first sixteen, behind three records of its own."""
    brokers = _Mirror(start_broker(), start_broker())
    brokers.write(brokers.original, [(b"%d" % number, []) for number in range(20)])
    mirrored = [
        (b"%d" % number, [(ORIGIN_HEADER, origin_name("t", 0, number).encode())]) for number in range(16)
    ]
    brokers.write(brokers.mirror, [(b"own", [])] * 3 + mirrored)
    return brokers


def test_the_header_of_mirrored_records_is_that_of_the_pipeline() -> None:
    assert translated_offsets.ORIGIN_HEADER == ORIGIN_HEADER


def test_groups_continue_in_the_mirror_where_they_stopped(
    mirror: _Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    for group, offset in (("start", 0), ("middle", 7), ("end", 16), ("ahead", 18)):
        mirror.commit(mirror.original, group, offset)
    assert mirror.copy("--dry-run") == 1
    assert mirror.committed("middle") < 0
    capsys.readouterr()
    assert mirror.copy("--json") == 1
    copies = {each["group"]: each for each in json.loads(capsys.readouterr().out)}
    assert {group: each["new_offset"] for group, each in copies.items()} == {
        "start": 0,
        "middle": 10,
        "end": 19,
        "ahead": None,
    }
    assert "the mirror lacks offset 16" in copies["ahead"]["note"]
    assert [mirror.committed(group) for group in ("start", "middle", "end")] == [0, 10, 19]
    assert mirror.committed("ahead") < 0


def test_offsets_in_the_mirror_never_move_back(mirror: _Mirror) -> None:
    mirror.commit(mirror.original, "g", 5)
    mirror.commit(mirror.mirror, "g", 12)
    assert mirror.copy("--group", "g") == 0
    assert mirror.committed("g") == 12


def test_a_group_without_offsets_is_not_a_success(
    mirror: _Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.commit(mirror.original, "g", 5)
    assert mirror.copy("--group", "g", "--group", "misspelled") == 1
    assert "the group misspelled has no committed offsets in the old cluster" in capsys.readouterr().err
    assert mirror.committed("g") > 0


def test_groups_with_members_in_the_mirror_are_left_alone(
    mirror: _Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    from confluent_kafka import Consumer

    mirror.commit(mirror.original, "g", 5)
    member = Consumer({"bootstrap.servers": mirror.mirror, "group.id": "g", "auto.offset.reset": "earliest"})
    member.subscribe(["t"])
    assert member.poll(30) is not None
    try:
        assert mirror.copy("--group", "g") == 1
        assert "the group has members in the new cluster" in capsys.readouterr().out
    finally:
        member.close()
