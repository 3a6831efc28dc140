"""Recovery of damaged logs after kill -9, which must keep the same records as Apache Kafka 3.9.1."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interop import dataset
from tests.interop.contents import read_records, wait_until_led
from tests.support.servers import GenuineKafka, KafkaCompatBroker, ZooKeeper

RECORDS, BATCH_RECORDS = 800, 10
SETTINGS = {"segment.bytes": "14000", "index.interval.bytes": "500"}
"""Five segments: four of 180 records each, and the last with 80."""


class Segments:
    """The files of one topic after the kill."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = sorted(folder.glob("*.log"))
        assert [int(log.stem) for log in self.logs] == [0, 180, 360, 540, 720]

    def remove(self, number: int, pattern: str = ".*") -> None:
        for file in self.folder.glob(self.logs[number].stem + pattern):
            file.unlink()

    def rename(self, number: int, suffix: str) -> None:
        for file in list(self.folder.glob(self.logs[number].stem + ".*")):
            file.rename(f"{file}{suffix}")

    def copy(self, number: int, suffix: str) -> None:
        for kind in ("log", "index", "timeindex"):
            file = self.logs[number].with_suffix(f".{kind}")
            shutil.copy(file, f"{file}{suffix}")

    def cut(self, number: int, size_bytes: int) -> None:
        # A killed broker may leave preallocated zeros at the end.
        content = self.logs[number].read_bytes().rstrip(b"\0")
        self.logs[number].write_bytes(content[:-size_bytes])

    def flip(self, number: int) -> None:
        content = bytearray(self.logs[number].read_bytes())
        at = content.index(b"%060d" % (int(self.logs[number].stem) + 93))
        content[at] ^= 1
        self.logs[number].write_bytes(content)

    def spoil(self, number: int, kind: str, content: bytes) -> None:
        self.logs[number].with_suffix(f".{kind}").write_bytes(content)


DAMAGES: dict[str, tuple[list[Callable[[Segments], None]], int]] = {
    "none": ([], 800),
    "segment-missing": ([lambda s: s.remove(2)], 620),
    "log-file-missing": ([lambda s: s.remove(2, ".log")], 620),
    "two-missing": ([lambda s: s.remove(1), lambda s: s.remove(3)], 440),
    "first-missing": ([lambda s: s.remove(0)], 620),
    "log-file-empty": ([lambda s: s.spoil(2, "log", b"")], 620),
    "indexes-missing": ([lambda s: s.remove(1, ".index"), lambda s: s.remove(2, ".timeindex")], 800),
    "indexes-corrupt": (
        [
            lambda s: s.spoil(1, "index", b"\0\0\0\x09\0\0\0\1" + b"\0\0\0\1" * 2),
            lambda s: s.spoil(2, "timeindex", b"xyz"),
        ],
        800,
    ),
    "batch-cut-in-the-middle": ([lambda s: s.cut(2, 300)], 530),
    "batch-cut-at-the-end": ([lambda s: s.cut(4, 5)], 790),
    "byte-changed": ([lambda s: s.flip(2)], 450),
    "deleted": ([lambda s: s.rename(0, ".deleted")], 620),
    "cleaning-begun": ([lambda s: s.copy(1, ".cleaned")], 800),
    "swap-begun": ([lambda s: s.copy(1, ".swap")], 800),
    "swap-half-done": ([lambda s: s.rename(1, ".swap")], 800),
}
"""The damage to each topic, by topic name, and the number of records that Apache Kafka recovers."""


class Left(NamedTuple):
    first: int
    end: int
    offsets: list[int]


def _left(address: str) -> dict[str, Left]:
    wait_until_led(address, {topic: 1 for topic in DAMAGES})
    left = {}
    for (topic, _), records in read_records(address, [(topic, 0) for topic in DAMAGES]).items():
        assert [record.value for record in records] == [b"%060d" % record.offset for record in records], topic
        offsets = [record.offset for record in records]
        left[topic] = Left(offsets[0], offsets[-1] + 1, offsets)
    return left


def _fill(address: str) -> None:
    dataset.create_topics(address, {topic: (1, SETTINGS) for topic in DAMAGES})
    producer = dataset.new_producer(address, {"linger.ms": 1000, "enable.idempotence": True})
    for number in range(RECORDS):
        for topic in DAMAGES:
            producer.produce(topic, b"%060d" % number, None, 0, timestamp=dataset.FIRST_TIMESTAMP + number)
        if number % BATCH_RECORDS == BATCH_RECORDS - 1:
            assert producer.flush(30) == 0


def _after_damage(server: GenuineKafka | KafkaCompatBroker) -> dict[str, Left]:
    server.start()
    _fill(server.address)
    server.kill()
    for topic, (steps, _) in DAMAGES.items():
        segments = Segments(server.log_dir / f"{topic}-0")
        for step in steps:
            step(segments)
    server.start()
    return _left(server.address)


@pytest.fixture(scope="module")
def genuine(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Left]]:
    settings = {"broker.id": "1", "zookeeper.connect": f"{zookeeper.address}/damaged"}
    server = GenuineKafka(tmp_path_factory.mktemp("genuine"), settings, zookeeper=zookeeper)
    yield _after_damage(server)
    server.stop()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Left]]:
    server = KafkaCompatBroker(tmp_path_factory.mktemp("ours"))
    yield _after_damage(server)
    server.stop()


@pytest.mark.parametrize("damage", DAMAGES)
def test_recovery_keeps_as_many_records_as_apache_kafka(
    damage: str, genuine: dict[str, Left], ours: dict[str, Left]
) -> None:
    assert ours[damage] == genuine[damage]
    assert len(ours[damage].offsets) == DAMAGES[damage][1]
