"""The archive's commit protocol, without Spark: interrupted at every step, and read by pyarrow in between."""

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as dataset
import pyarrow.parquet as pq
import pytest

from kafka_compat.pipelines import archive_store
from kafka_compat.pipelines.archive_store import ArchiveStore
from kafka_compat.pipelines.archive_writer import day_name, write_range
from kafka_compat.pipelines.errors import NotStarted, RecordsLost
from kafka_compat.pipelines.offset_runs import gaps_in, merged, runs_of
from tests.pipelines.archive_batches import (
    EXPECTED,
    Killed,
    archive_two_batches,
    kill_at,
    offsets_of,
    records,
    staged,
)


def visible(directory: Path) -> Counter[tuple[str, int, int]]:
    """Count how often a plain reader sees each (topic, partition, offset)."""
    if not any(directory.glob("topic_dir=*/*/*")):
        return Counter()
    table = dataset.dataset(directory, format="parquet", partitioning="hive").to_table()
    return offsets_of(table)


def test_each_record_is_archived_once_after_a_kill_at_any_step(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        steps = kill_at(patch, 1_000_000)
        archive_two_batches(tmp_path / "whole")
    assert visible(tmp_path / "whole") == EXPECTED
    assert steps[0] > 40
    for step in range(steps[0]):
        directory = tmp_path / str(step)
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
            kill_at(patch, step)
            archive_two_batches(directory)
        assert all(times == 1 for times in visible(directory).values()), f"killed at step {step}"
        archive_two_batches(directory)
        assert visible(directory) == EXPECTED, f"killed at step {step}, then run again"


def test_each_record_is_archived_once_after_two_kills(tmp_path: Path) -> None:
    for first in range(10, 40, 3):
        for second in range(2, 20, 3):
            directory = tmp_path / f"{first}-{second}"
            for step in (first, second):
                with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
                    kill_at(patch, step)
                    archive_two_batches(directory)
                assert all(times == 1 for times in visible(directory).values())
            archive_two_batches(directory)
            assert visible(directory) == EXPECTED


def test_file_names_and_totals_are_derived_from_offsets(tmp_path: Path) -> None:
    archive_two_batches(tmp_path)
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("topic_dir=*/*/*"))
    assert names == [
        "topic_dir=t/day_utc=1970-01-02/0-0-2.parquet",
        "topic_dir=t/day_utc=1970-01-02/1-0-1.parquet",
        "topic_dir=t/day_utc=1970-01-03/0-1-3.parquet",
        "topic_dir=t/day_utc=1970-01-03/0-4-4.parquet",
        "topic_dir=t/day_utc=1970-01-04/0-6-6.parquet",
    ]
    totals = ArchiveStore(tmp_path).state().topics["t"]
    assert (totals[0].first, totals[0].last, totals[0].rows, totals[0].gaps) == (0, 6, 6, 2)
    assert totals[0].gap_ranges == [[5, 5], [7, 7]]
    assert (totals[1].first, totals[1].last, totals[1].rows, totals[1].gaps) == (0, 1, 2, 0)


def test_a_batch_that_would_repeat_or_skip_records_is_rejected(tmp_path: Path) -> None:
    archive_two_batches(tmp_path)
    before = visible(tmp_path)
    store = ArchiveStore(tmp_path)
    store.open()
    again = staged(store, 2, [[records(0, [6, 7], [1, 1])]])
    with pytest.raises(RecordsLost, match="begins at 6, but the archive ends at 8"):
        store.commit(2, again, {"t": {0: 6}}, {"t": {0: 8}}, {})
    skipped = staged(store, 2, [[records(0, [9], [1])]])
    with pytest.raises(RecordsLost, match="begins at 9"):
        store.commit(2, skipped, {"t": {0: 9}}, {"t": {0: 10}}, {})
    doubled = staged(store, 2, [[records(0, [8, 9], [1, 1])], [records(0, [9], [1])]])
    with pytest.raises(RecordsLost, match="Offset 9 was read twice"):
        store.commit(2, doubled, {"t": {0: 8}}, {"t": {0: 10}}, {})
    foreign = staged(store, 2, [[records(5, [0], [1])]])
    with pytest.raises(RecordsLost, match="outside of the batch"):
        store.commit(2, foreign, {"t": {0: 8}}, {"t": {0: 8}}, {})
    assert visible(tmp_path) == before


def test_a_directory_that_is_not_an_archive_stays_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(NotStarted, match="not empty and not an archive"):
        ArchiveStore(tmp_path).open()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_archive_without_its_checkpoint_is_not_overwritten(tmp_path: Path) -> None:
    archive_two_batches(tmp_path)
    shutil.rmtree(tmp_path / "_checkpoint")
    with pytest.raises(NotStarted, match="checkpoint is missing"):
        ArchiveStore(tmp_path).open()


def test_the_commit_log_of_an_archive_stays_short(tmp_path: Path) -> None:
    store = ArchiveStore(tmp_path)
    store.open()
    for batch_id in range(archive_store.LOG_ENTRIES_KEPT + 5):
        store.commit(batch_id, [], {"t": {0: batch_id}}, {"t": {0: batch_id + 1}}, {})
    assert len(list((tmp_path / "_log").iterdir())) == archive_store.LOG_ENTRIES_KEPT
    assert store.state().topics["t"][0].gaps == archive_store.LOG_ENTRIES_KEPT + 5
    assert store.is_committed(0)


def test_offset_ranges_are_merged_across_days_and_files() -> None:
    even, odd = runs_of([pa.array([0, 2, 4])]), runs_of([pa.array([1]), pa.array([3, 7], pa.int64())])
    both = merged([odd, even])
    assert both.rows == 6
    gaps = gaps_in(both, 0, 10)
    assert (gaps.count, gaps.ranges) == (4, [[5, 6], [8, 9]])
    assert gaps_in(merged([]), 3, 3).count == 0
    with pytest.raises(RecordsLost, match="outside"):
        gaps_in(both, 1, 10)
    with pytest.raises(RecordsLost, match="backwards"):
        gaps_in(both, 10, 3)


@pytest.mark.parametrize("chunks", [[[3, 2]], [[3, 3]], [[1, 2], [2, 3]], [[5], [4]]])
def test_offsets_out_of_order_are_rejected(chunks: list[list[int]]) -> None:
    with pytest.raises(RecordsLost):
        runs_of([pa.array(chunk, pa.int64()) for chunk in chunks])


def test_extreme_timestamps_are_clamped_to_valid_days() -> None:
    assert day_name(0) == "1970-01-01"
    assert day_name(-1) == "1969-12-31"
    assert day_name(20_000_000) == "9999-12-31"
    assert day_name(-20_000_000) == "0001-01-01"


def test_a_batch_with_records_of_many_days_is_archived_completely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more days than open files allowed, and more data than the buffers hold, a day gets several files
    and no record is split.
    """
    monkeypatch.setattr("kafka_compat.pipelines.archive_writer.OPEN_FILES_MAX", 3)
    monkeypatch.setattr("kafka_compat.pipelines.archive_writer.BUFFER_BYTES", 200)
    batches = [records(0, list(range(i, i + 7)), [1, 2, 3, 4, 5, 1, 2]) for i in range(0, 70, 7)]
    files = pa.Table.from_batches(write_range(iter(batches), str(tmp_path))).to_pylist()
    found = []
    for file in files:
        table = pq.ParquetFile(tmp_path / file["name"]).read()
        offsets = table.column("offset").to_pylist()
        assert offsets == sorted(offsets)
        assert (offsets[0], offsets[-1]) == (file["first"], file["last"])
        assert {str(t.date()) for t in table.column("timestamp").to_pylist()} == {file["day"]}
        found += offsets
    assert sorted(found) == list(range(70))
    assert len({(file["day"], file["first"], file["last"]) for file in files}) == len(files)


def test_a_task_with_two_partitions_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(RecordsLost, match="several partitions"):
        list(write_range(iter([records(0, [0], [1]), records(1, [0], [1])]), str(tmp_path)))
