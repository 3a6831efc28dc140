"""Logs that are truncated or moved while a child process cleans them."""

from __future__ import annotations

import os
from pathlib import Path

from kafka_compat.errors import ErrorCode
from kafka_compat.replication.partition import Partition
from kafka_compat.storage.records.records import Record, build_batch
from kafka_compat.upkeep.log_cleaner import LogCleaner
from tests.cluster.embedded import EmbeddedBroker, EmbeddedCluster, until
from tests.storage.cleaning_support import records

CONFIGS = {"cleanup.policy": "compact", "segment.bytes": "1000", "min.cleanable.dirty.ratio": "0.01"}


def append(held: Partition, word: bytes, count: int) -> None:
    """Append batches of the same size for any word."""
    now_ms = held.log.now_ms()
    for _ in range(count):
        batch = build_batch([Record(timestamp=now_ms, key=b"k", value=word * 100)])
        held.append(memoryview(bytearray(batch)), now_ms)


def values(held: Partition) -> list[bytes]:
    return [record.value or b"" for record in records(held.log)]


async def begin_cleaning(cluster: EmbeddedCluster) -> tuple[EmbeddedBroker, Partition, LogCleaner]:
    """Append records to the log of a new topic, and start a child process that cleans it."""
    broker = cluster.brokers[1]
    assert await cluster.create_topic("t", replicas=1, configs=CONFIGS) == ErrorCode.NONE
    held = broker.replicas.get("t", 0)
    assert held is not None
    append(held, b"old", 20)
    services = broker.services
    feed = services.metadata.feed
    cleaner = LogCleaner(broker.config, services.clock, lambda: broker.replicas, broker.log_dirs, feed)
    cleaner.look(services.clock.now_ms())
    assert cleaner._running
    return broker, held, cleaner


async def test_a_cleaning_of_truncated_records_is_discarded(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, count=1)
    await cluster.start()
    try:
        broker, held, cleaner = await begin_cleaning(cluster)
        held.log.truncate_to(2)
        await until(lambda: not held.log.is_settling)
        append(held, b"new", 18)
        await until(lambda: not cleaner._running)
        cleaner.stop()
        assert broker.log_dirs.clean_offsets.get(("t", 0), 0) <= 2
        assert [value for value in values(held) if value == b"old" * 100] == [b"old" * 100] * 2
        assert not [name for name in os.listdir(held.log.directory) if name.endswith(".cleaned")]
    finally:
        await cluster.stop()


async def test_a_log_that_is_being_moved_is_not_cleaned(tmp_path: Path) -> None:
    directories = [str(tmp_path / "first"), str(tmp_path / "second")]
    cluster = EmbeddedCluster(tmp_path, count=1, settings={"log.dirs": ",".join(directories)})
    await cluster.start()
    try:
        broker, held, cleaner = await begin_cleaning(cluster)
        services = broker.services
        directories.remove(held.log.disk.path)
        broker.log_dirs.moves.begin(("t", 0), directories[0])
        await until(lambda: not cleaner._running)
        cleaner.look(services.clock.now_ms())
        assert not cleaner._running
        assert len(values(held)) == 20
        broker.log_dirs.moves.cancel(("t", 0))
        cleaner.look(services.clock.now_ms())
        assert cleaner._running
        await until(lambda: not cleaner._running)
        assert len(values(held)) < 20
        cleaner.stop()
    finally:
        await cluster.stop()
