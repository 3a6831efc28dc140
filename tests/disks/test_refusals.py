"""What a disk, or the process, has no room for is refused with errors upon which clients try again, and
nothing goes offline for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance import batches, wire
from tests.disks.full_disk import FullDisk
from tests.disks.strace import failing
from tests.support.servers import KafkaCompatBroker

NONE, STORAGE_ERROR = 0, 56


class Asking:
    """One broker and one connection to it."""

    def __init__(self, broker: KafkaCompatBroker) -> None:
        self.broker = broker
        self.connection = wire.Connection(broker.address)

    def restart(self) -> None:
        self.connection.close()
        self.broker.restart(kill=True)
        self.connection = wire.Connection(self.broker.address)

    def create(self, name: str, **configs: str) -> tuple[int, str]:
        topic: dict[str, Any] = {"name": name, "num_partitions": 1, "replication_factor": 1}
        topic["configs"] = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        answer = self.connection.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 20_000})
        return answer["topics"][0]["error_code"], answer["topics"][0]["error_message"] or ""

    def produce(self, topic: str) -> int:
        data = {"index": 0, "records": batches.batch(10)}
        request = {"acks": -1, "timeout_ms": 5000, "topic_data": [{"name": topic, "partition_data": [data]}]}
        answer = self.connection.ask(ApiKey.PRODUCE, 7, request)
        code: int = answer["responses"][0]["partition_responses"][0]["error_code"]
        return code

    def delete_records(self, topic: str, offset: int) -> int:
        wanted = {"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}
        answer = self.connection.ask(ApiKey.DELETE_RECORDS, 1, {"topics": [wanted], "timeout_ms": 20_000})
        code: int = answer["topics"][0]["partitions"][0]["error_code"]
        return code

    def start_offset(self, topic: str) -> int:
        return self._offset(topic, -2)

    def end_offset(self, topic: str) -> int:
        return self._offset(topic, -1)

    def _offset(self, topic: str, timestamp: int) -> int:
        wanted = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}
        answer = self.connection.ask(ApiKey.LIST_OFFSETS, 4, {"replica_id": -1, "topics": [wanted]})
        offset: int = answer["topics"][0]["partitions"][0]["offset"]
        return offset

    def directory_errors(self) -> list[int]:
        answer = self.connection.ask(ApiKey.DESCRIBE_LOG_DIRS, 1, {"topics": None})
        return [found["error_code"] for found in answer["results"]]


@pytest.fixture
def disk(tmp_path: Path) -> FullDisk:
    return FullDisk(tmp_path / "full-disk")


@pytest.fixture
def asking(tmp_path: Path, disk: FullDisk) -> Iterator[Asking]:
    settings = {"auto.create.topics.enable": "false"}
    broker = KafkaCompatBroker(tmp_path / "broker", settings, environment=disk.environment)
    broker.start()
    asking = Asking(broker)
    yield asking
    asking.connection.close()
    broker.stop()


def test_without_descriptors_new_topics_and_segments_are_refused_until_there_are_some(asking: Asking) -> None:
    assert asking.create("t", segment_bytes="1000")[0] == NONE
    assert asking.produce("t") == NONE
    # Asked before, so that the code that answers is loaded.
    assert asking.directory_errors() == [NONE]
    with failing(asking.broker.pid, ["openat"], "EMFILE"):
        codes = {asking.produce("t") for _ in range(100)}
        assert STORAGE_ERROR in codes
        assert codes <= {NONE, STORAGE_ERROR}
        code, message = asking.create("u")
        assert code == STORAGE_ERROR
        assert "ulimit -n" in message
        assert asking.directory_errors() == [NONE]
    assert asking.produce("t") == NONE
    assert asking.create("u") == (NONE, "")
    assert asking.produce("u") == NONE
    log = asking.broker.log.read_text()
    assert "offline" not in log
    assert "Traceback" not in log
    assert log.count("ulimit -n") < 10


def test_records_are_not_told_to_be_deleted_when_a_full_disk_cannot_note_it(
    asking: Asking, disk: FullDisk
) -> None:
    assert asking.create("t")[0] == NONE
    assert asking.produce("t") == NONE
    with disk.full():
        assert asking.delete_records("t", 7) == STORAGE_ERROR
    assert asking.delete_records("t", 7) == NONE
    asking.restart()
    assert asking.start_offset("t") == 7
