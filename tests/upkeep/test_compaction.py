"""A compacted topic of a running broker: readers from the start never fail, kills do not lose values, and
Kafka's own tool can read the cleaned files.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.interop import dataset
from tests.interop.contents import Stored, read_records
from tests.support import campaign, java
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

TOPIC = "compacted"
KEYS = 500
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "262144",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "0",
}


class World:
    """A broker that cleans continuously, and the records written to it."""

    def __init__(self, directory: Path) -> None:
        self.broker = KafkaCompatBroker(
            directory, {"log.cleaner.backoff.ms": "0", "log.cleaner.io.max.bytes.per.second": "3000000"}
        )
        self.written: dict[int, tuple[bytes, bytes | None]] = {}
        self.chance = random.Random(5)

    @property
    def folder(self) -> Path:
        return self.broker.log_dir / f"{TOPIC}-0"

    def write(self, count: int) -> None:
        def delivered(error: object, message: object) -> None:
            assert error is None, error
            self.written[message.offset()] = message.key(), message.value()  # type: ignore[attr-defined]

        producer = Producer({"bootstrap.servers": self.broker.address, "batch.size": 50_000, "log_level": 0})
        for _ in range(count):
            key = b"key %d" % self.chance.randrange(KEYS)
            producer.produce(TOPIC, self.chance.randbytes(20), key, on_delivery=delivered)
            producer.poll(0)
        assert producer.flush(30) == 0

    def write_until_a_cleaning_runs(self, count: int) -> None:
        """Write `count` records, and more if their cleaning ends before it is noticed."""
        self.write(count)
        for _ in range(100):
            with contextlib.suppress(AssertionError):
                wait_until(lambda: self.child() is not None, 0.5, "a cleaning")
                return
            self.write(10_000)
        raise AssertionError("no cleaning started")

    def read(self) -> list[Stored]:
        """Read all records, and check that each was written at its offset."""
        found = read_records(self.broker.address, [(TOPIC, 0)], "read_uncommitted")[TOPIC, 0]
        for record in found:
            assert self.written[record.offset] == (record.key, record.value)
        last = {key: offset for offset, (key, _) in sorted(self.written.items())}
        assert set(last.values()) <= {record.offset for record in found}, "the last value of a key is missing"
        return found

    def child(self) -> int | None:
        """Return the process id of a running cleaning."""
        pid = self.broker.pid
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            return int(children[0]) if children else None
        return None

    def wait_clean(self) -> None:
        """Wait until all segments except the active one are clean."""

        def is_clean() -> bool:
            active = max(int(file.stem) for file in self.folder.glob("*.log"))
            checkpoint = self.broker.log_dir / "cleaner-offset-checkpoint"
            return checkpoint.exists() and f"{TOPIC} 0 {active}\n" in checkpoint.read_text()

        wait_until(is_clean, 60, "cleaning of all segments")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("compaction"))
    world.broker.start()
    dataset.create_topics(world.broker.address, {TOPIC: (1, SETTINGS)})
    yield world
    world.broker.stop()


@pytest.mark.timeout(1800)
def test_kills_during_cleaning_neither_lose_values_nor_fail_readers(world: World) -> None:
    kills = campaign.rounds(6, 50)
    for number in range(kills):
        world.write_until_a_cleaning_runs(campaign.rounds(10_000, 20_000))
        world.read()
        child = world.child()
        if number % 2:
            world.broker.restart(kill=True)
            assert child is None or not _runs(child), "the cleaning process outlived its broker"
        elif child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        world.read()
    world.wait_clean()
    found = world.read()
    active = max(int(file.stem) for file in world.folder.glob("*.log"))
    keys = [record.key for record in found if record.offset < active]
    assert len(keys) == len(set(keys)), "a cleaned log contains a key twice"
    assert not [name for name in os.listdir(world.folder) if name.endswith((".cleaned", ".swap"))]


def test_shutdown_aborts_a_cleaning_and_the_next_startup_repeats_it(world: World) -> None:
    world.write_until_a_cleaning_runs(20_000)
    child = world.child()
    assert world.broker.process.stop() == 0
    assert child is None or not _runs(child)
    world.broker.start()
    world.read()
    world.wait_clean()
    world.read()


def test_kafkas_tool_reads_every_cleaned_file(world: World) -> None:
    assert world.broker.process.stop() == 0
    files = sorted(
        str(file) for kind in ("log", "index", "timeindex") for file in world.folder.glob(f"*.{kind}")
    )
    done = java.run("kafka-dump-log", "--deep-iteration", "--files", ",".join(files))
    shown = done.stdout + done.stderr
    assert shown.count("Dumping ") == len(files)
    assert "baseOffset" in shown
    for complaint in ("isvalid: false", "mismatch", "out of order", "Exception"):
        assert complaint not in shown
    world.broker.start()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] != "Z"
    except OSError:
        return False
