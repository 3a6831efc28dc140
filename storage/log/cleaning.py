"""Compaction of one log: when it is due (`min.cleanable.dirty.ratio`, `max.compaction.lag.ms`), its dirty
part, and the swap of the segments.

Rules, as in Apache Kafka
1. The clean part ends at the first dirty offset. The cleanable part ends with the last sealed segment that
   lies wholly below the last stable offset and is older than min.compaction.lag.ms.
2. A cleaning is due when the dirty part exceeds min.cleanable.dirty.ratio, or when its oldest record has
   waited for max.compaction.lag.ms.
3. The cleaner writes `.cleaned` files, which become valid when they are renamed to `.swap`. Then the old
   files are removed, and finally the `.swap` suffix. After a crash, the loader undoes or completes the swap.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from kafka_compat.storage.compaction.batch_cleaner import LastOfProducer
from kafka_compat.storage.compaction.cleaner_job import CleanedGroup, CleaningJob, SegmentSource
from kafka_compat.storage.config import LONG_MAX
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.segments import segment_files
from kafka_compat.storage.segments.segment import Segment
from kafka_compat.storage.segments.segment_files import OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX


@dataclass(frozen=True, slots=True)
class DirtyPart:
    """The dirty part of a log, [first_dirty_offset, upper_bound), and the size of the clean part."""

    first_dirty_offset: int
    upper_bound: int
    clean_bytes: int
    dirty_bytes: int
    overdue_ms: int
    """Time in ms by which the oldest dirty record exceeds max.compaction.lag.ms, or 0 if it does not."""

    @property
    def ratio(self) -> float:
        """The dirty bytes as a fraction of the clean and dirty bytes together."""
        return self.dirty_bytes / max(self.clean_bytes + self.dirty_bytes, 1)


def find_dirty_part(log: Log, cleaned_up_to: int | None, last_stable_offset: int, now_ms: int) -> DirtyPart:
    """Return the dirty part of `log`. `cleaned_up_to` is the log's clean offset, or None if it has none."""
    segments = log.segments.all
    first_dirty = log.log_start_offset if cleaned_up_to is None else cleaned_up_to
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    first = log.segments.number_of(first_dirty)
    end = log.segments.number_of(min(last_stable_offset, log.segments.active.base_offset))
    config = log.config
    if config.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - config.min_compaction_lag_ms
        end = next(
            (number for number in range(first, end) if segments[number].largest_timestamp > youngest_ms), end
        )
    overdue_ms = 0
    if config.max_compaction_lag_ms < LONG_MAX and first < end:
        timestamps = [segment.first_timestamp for segment in segments[first : len(segments) - 1]]
        oldest_ms = min((each for each in timestamps if each and each > 0), default=now_ms)
        overdue_ms = max(now_ms - config.max_compaction_lag_ms - oldest_ms, 0)
    return DirtyPart(
        first_dirty_offset=first_dirty,
        upper_bound=segments[end].base_offset,
        clean_bytes=sum(segment.size_bytes for segment in segments if segment.base_offset < first_dirty),
        dirty_bytes=sum(segment.size_bytes for segment in segments[first:end]),
        overdue_ms=overdue_ms,
    )


def is_due(log: Log, dirty: DirtyPart) -> bool:
    """Whether a cleaning of `log` is due."""
    if not log.config.compact or not dirty.dirty_bytes or log.closed or log.is_settling:
        return False
    return dirty.overdue_ms > 0 or dirty.ratio > log.config.min_cleanable_dirty_ratio


def new_job(
    log: Log,
    dirty: DirtyPart,
    *,
    now_ms: int,
    dedupe_buffer_bytes: int,
    load_factor: float,
    io_bytes_per_s: float,
) -> CleaningJob:
    """Create the job that cleans the dirty part of `log`."""
    bases = log.segments.base_offsets
    for number in range(len(bases)):
        # Repair the transaction indexes, which the job reads. If that fails, the job fails, too.
        with contextlib.suppress(OSError, StorageError):
            log.transaction_index(number)
    end = log.segments.number_of(dirty.upper_bound)
    config = log.config
    return CleaningJob(
        directory=log.directory,
        segments=tuple(
            SegmentSource(
                base_offset=segment.base_offset,
                end_offset=bases[number + 1],
                size_bytes=segment.size_bytes,
                offset_index_bytes=log.files.file_size(segment.path(OFFSET_INDEX_SUFFIX)),
                time_index_bytes=log.files.file_size(segment.path(TIME_INDEX_SUFFIX)),
                modified_ms=segment.modified_ms,
            )
            for number, segment in enumerate(log.segments.all[:end])
        ),
        transaction_indexes=tuple(bases),
        first_dirty_offset=dirty.first_dirty_offset,
        producers={
            producer_id: LastOfProducer(
                entry.producer_epoch, entry.batches[-1].last_offset if entry.batches else -1
            )
            for producer_id, entry in log.producers.entries.items()
        },
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        dedupe_buffer_bytes=dedupe_buffer_bytes,
        load_factor=load_factor,
        io_bytes_per_s=io_bytes_per_s,
    )


def swap(log: Log, job: CleaningJob, group: CleanedGroup) -> bool:
    """Replace the source segments with a cleaned segment. Readers of the old files keep them open.

    Returns False, with nothing changed, if retention, DeleteRecords or a truncation has changed the source
    segments since the job was created. Raises LogDirFailure.
    """
    old = _sources(log, job, group)
    if old is None:
        return False
    suffixes = [OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_files.LOG_SUFFIX]
    if group.has_transaction_index:
        suffixes.insert(0, segment_files.TXN_INDEX_SUFFIX)
    try:
        segment = log.files.replace(old, suffixes, group.size_bytes, log.config, log.file_deletion_ms())
    except OSError as error:
        raise log.disk.fail(error, f"cleaning of {log.name}") from error
    first = log.segments.number_of(old[0].base_offset)
    log.segments.replace(first, first + len(old), segment)
    return True


def discard(log: Log) -> None:
    """Remove the files of an aborted cleaning. Raises LogDirFailure."""
    try:
        log.files.remove_cleaned()
    except OSError as error:
        raise log.disk.fail(error, f"cleaning of {log.name}") from error


def _sources(log: Log, job: CleaningJob, group: CleanedGroup) -> Sequence[Segment] | None:
    """Return the source segments of `group`, or None if they have changed or must not be replaced."""
    if log.closed or log.is_settling or log.disk.failure is not None or log.directory != job.directory:
        return None
    first = log.segments.number_of(group.sources[0])
    found = log.segments.all[first : first + len(group.sources)]
    known = {segment.base_offset: segment.size_bytes for segment in job.segments}
    if [segment.base_offset for segment in found] != list(group.sources) or found[-1] is log.segments.active:
        return None
    return None if any(segment.size_bytes != known[segment.base_offset] for segment in found) else found
