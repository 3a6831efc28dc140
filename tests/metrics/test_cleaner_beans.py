"""Metrics of the log cleaner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.compaction.cleaner_job import CleanedGroup, CleaningJob, SegmentSource
from kafka_compat.storage.compaction.offset_map import SLOT_BYTES
from kafka_compat.storage.log.cleaning import DirtyPart
from kafka_compat.storage.records.records import Record, build_batch
from kafka_compat.upkeep.cleaner_stats import CleanerStats, Cleaning
from tests.conformance.wire import Connection
from tests.metrics.scraping import Scrape
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

CLEANER = "kafka_log_logcleaner_"
MANAGER = "kafka_log_logcleanermanager_"
SEGMENT_BYTES = 16_384
LAZY = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES), "min.cleanable.dirty.ratio": "1.0"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaCompatBroker, str]]:
    url = f"http://127.0.0.1:{free_port()}"
    settings = {"kafka.compat.http.listener": url, "log.cleaner.backoff.ms": "100"}
    broker = KafkaCompatBroker(tmp_path_factory.mktemp("cleaner"), settings)
    broker.start()
    yield broker, url
    broker.stop()


def fill(broker: KafkaCompatBroker, topic: str, keys: int, **settings: str) -> None:
    """Fill ten segments with records of a few repeated keys."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    for future in admin.create_topics([NewTopic(topic, 1, 1, config=LAZY | settings)]).values():
        future.result(30)
    with Connection(broker.address) as connection:
        for number in range(160):
            records = [Record(0, 1_000_000, b"%d" % (number % keys), b"v" * 1_000)]
            data = {"index": 0, "records": build_batch(records)}
            asked = {"acks": 1, "timeout_ms": 1000, "topic_data": [{"name": topic, "partition_data": [data]}]}
            (answer,) = connection.ask(ApiKey.PRODUCE, 9, asked)["responses"]
            assert answer["partition_responses"][0]["error_code"] == 0


def test_the_ratio_of_the_dirtiest_log_is_exported(served: tuple[KafkaCompatBroker, str]) -> None:
    broker, url = served
    # The whole log is dirty, but its min.cleanable.dirty.ratio prevents a cleaning.
    fill(broker, "dirty", 4)

    def dirty_percent() -> float | None:
        return Scrape(url).value(f"{MANAGER}max_dirty_percent")

    wait_until(lambda: dirty_percent() == 100, 20, "a run of the cleaner")
    seen = Scrape(url)
    idle_ms = seen.value(f"{MANAGER}time_since_last_run_ms")
    assert idle_ms is not None and 0 <= idle_ms < 20_000
    directory = {"logDirectory": f'"{broker.log_dir}"'}
    assert seen.value(f"{MANAGER}uncleanable_partitions_count", **directory) == 0
    assert seen.value(f"{MANAGER}uncleanable_bytes", **directory) == 0
    assert seen.value(f"{CLEANER}deadthreadcount") == 0
    assert seen.value(f"{CLEANER}cleaner_recopy_percent") == 0


def test_the_share_of_data_kept_by_cleaning_is_exported(served: tuple[KafkaCompatBroker, str]) -> None:
    broker, url = served
    fill(broker, "cleaned", 2)
    # The ratio is lowered only after filling, because the share of kept data depends on the size of the first
    # cleaning.
    setting = ConfigEntry("min.cleanable.dirty.ratio", "0.01", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ConfigResource.Type.TOPIC, "cleaned", incremental_configs=[setting])
    admin = AdminClient({"bootstrap.servers": broker.address})
    for future in admin.incremental_alter_configs([change]).values():
        future.result(30)

    def recopied() -> float | None:
        return Scrape(url).value(f"{CLEANER}cleaner_recopy_percent")

    wait_until(lambda: (recopied() or 0) > 0, 60, "a cleaning")
    # Compaction keeps two of about 150 records.
    assert 1 <= (recopied() or 0) <= 5
    seen = Scrape(url)
    assert seen.value(f"{CLEANER}max_clean_time_secs") is not None
    assert seen.value(f"{CLEANER}max_buffer_utilization_percent") == 0


def test_a_log_that_cannot_be_cleaned_is_counted(served: tuple[KafkaCompatBroker, str]) -> None:
    broker, url = served
    fill(broker, "broken", 2)
    first = next(Path(broker.log_dir).glob("broken-0/00000000000000000000.log"))
    with first.open("r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 40)
    with Connection(broker.address) as connection:
        config = {"name": "min.cleanable.dirty.ratio", "config_operation": 0, "value": "0.01"}
        resource = {"resource_type": 2, "resource_name": "broken", "configs": [config]}
        connection.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    directory = {"logDirectory": f'"{broker.log_dir}"'}

    def uncleanable() -> float | None:
        return Scrape(url).value(f"{MANAGER}uncleanable_partitions_count", **directory)

    wait_until(lambda: uncleanable() == 1, 60, "the uncleanable partition")
    assert (Scrape(url).value(f"{MANAGER}uncleanable_bytes", **directory) or 0) > 9 * SEGMENT_BYTES


def test_cleaner_metrics_are_missing_without_a_cleaner(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    settings = {"kafka.compat.http.listener": url, "log.cleaner.enable": "false"}
    broker = KafkaCompatBroker(tmp_path, settings)
    broker.start()
    try:
        assert not any(name.startswith("kafka_log_logcleaner") for name in Scrape(url).names())
    finally:
        broker.stop()


def test_cleaned_bytes_and_segments_are_counted() -> None:
    segments = tuple(SegmentSource(base, base + 10, 1_000, 0, 0, 0) for base in (0, 10, 20))
    job = CleaningJob(
        directory="/data/t-0",
        segments=segments,
        transaction_indexes=(),
        first_dirty_offset=0,
        producers={},
        now_ms=0,
        delete_retention_ms=0,
        segment_bytes=10_000,
        segment_index_bytes=1_000,
        index_interval_bytes=4_096,
        dedupe_buffer_bytes=100 * SLOT_BYTES,
        load_factor=0.9,
        io_bytes_per_s=1e9,
    )
    cleaning = Cleaning(job, 5_000)
    cleaning.copied(CleanedGroup((0, 10), 300, False))
    cleaning.copied(CleanedGroup((20,), 100, False))
    cleaning.ended(25, 8_000)
    assert (cleaning.read_bytes, cleaning.written_bytes) == (3_000, 400)
    assert (cleaning.utilization, cleaning.took_ms) == (0.25, 3_000)


def test_each_search_for_dirty_logs_replaces_the_previous_metrics() -> None:
    stats = CleanerStats()
    stats.look_begins(1)
    for dirty_bytes, overdue_ms in ((100, 0), (300, 7_000), (200, 9_000)):
        stats.saw(DirtyPart(0, 10, 100, dirty_bytes, overdue_ms))
    assert (stats.looked_ms, stats.dirtiest_ratio, stats.overdue_ms) == (1, 0.75, 9_000)
    stats.look_begins(2)
    assert (stats.looked_ms, stats.dirtiest_ratio, stats.overdue_ms) == (2, 0, 0)
