"""Helpers for the compaction tests: run a cleaning in this process, and read the contents of a log."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_compat.storage.compaction import cleaner_job
from kafka_compat.storage.compaction.cleaner_job import CleanedGroup, CleaningDone
from kafka_compat.storage.filesystem import Filesystem, RealFilesystem
from kafka_compat.storage.log import cleaning as log_cleaning
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.batch import BatchHeader, read_header
from kafka_compat.storage.records.records import Record, iter_records

DEDUPE_BUFFER_BYTES = 1 << 20


def clean(
    log: Log,
    cleaned_up_to: int | None,
    now_ms: int,
    *,
    filesystem: Filesystem | None = None,
    dedupe_buffer_bytes: int = DEDUPE_BUFFER_BYTES,
) -> int:
    """Clean the dirty part, swap in the cleaned segments, and return the offset up to which the log is
    clean.
    """
    dirty = log_cleaning.find_dirty_part(
        log, cleaned_up_to, log.last_stable_offset(log.log_end_offset), now_ms
    )
    if not dirty.dirty_bytes:
        return dirty.first_dirty_offset
    job = log_cleaning.new_job(
        log,
        dirty,
        now_ms=now_ms,
        dedupe_buffer_bytes=dedupe_buffer_bytes,
        load_factor=0.9,
        io_bytes_per_s=1e12,
    )
    for step in cleaner_job.run(job, filesystem or RealFilesystem(), lambda size_bytes: None):
        if isinstance(step, CleanedGroup):
            assert log_cleaning.swap(log, job, step)
        else:
            assert isinstance(step, CleaningDone)
            return step.end_offset
    raise AssertionError("the job ended without CleaningDone")


def clean_all(log: Log, now_ms: int, *, dedupe_buffer_bytes: int = DEDUPE_BUFFER_BYTES) -> None:
    """Clean from the log start offset until the log is clean."""
    upper_bound = log_cleaning.find_dirty_part(
        log, None, log.last_stable_offset(log.log_end_offset), now_ms
    ).upper_bound
    cleaned_up_to = log.log_start_offset
    while cleaned_up_to < upper_bound:
        reached = clean(log, cleaned_up_to, now_ms, dedupe_buffer_bytes=dedupe_buffer_bytes)
        assert reached > cleaned_up_to, "the cleaning made no progress"
        cleaned_up_to = reached


def batches(log: Log) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yield every batch of the log, as a consumer that starts at the log start offset receives them."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        part = log.read(offset, 3_000)
        if part is None:
            return
        data, position = part.read(), 0
        while position < len(data):
            header = read_header(data, position)
            yield header, data[position : position + header.size_bytes]
            assert header.next_offset > offset
            position += header.size_bytes
            offset = header.next_offset


def records(log: Log) -> list[Record]:
    """Return all data records of the log, in offset order."""
    return [record for header, data in batches(log) if not header.is_control for record in iter_records(data)]
