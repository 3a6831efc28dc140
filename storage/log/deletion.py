"""Taking records out of a log: retention at its start, truncation at its end.

Rules
1. Segments leave the log before their files change, in the order that leaves no hole when a crash comes
   between: retention takes the oldest first, truncation the newest.
2. A truncation changes the log in memory; its files follow: see `cuts`.
3. Batches are cut off whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka_compat.storage.directories.truncations import Cut
from kafka_compat.storage.errors import DiskFull
from kafka_compat.storage.log.producers import ProducerState
from kafka_compat.storage.log.retention import deletable
from kafka_compat.storage.log.state import LogState

logger = logging.getLogger(__name__)


def apply_retention(
    log: LogState, now_ms: int, high_watermark: int, roll: Callable[[int], object]
) -> list[int]:
    """Delete the segments that may go; their base offsets. `roll` is the log's, for when all of them may."""
    if log.is_settling:
        return []
    with log.disk.reading(f"{log.name}"):
        going = deletable(
            log.segments.all,
            log.config,
            now_ms=now_ms,
            size_bytes=log.size_bytes,
            log_start_offset=log.log_start_offset,
            high_watermark=high_watermark,
            log_end_offset=log.log_end_offset,
        )
    if not going:
        return []
    for segment, reason in going:
        logger.info("%s: delete the segment at %d, %s", log.name, segment.base_offset, reason.value)
    if len(going) == len(log.segments.all):
        try:
            roll(now_ms)
        except DiskFull:
            # The other segments give the space for the next try.
            going = going[:-1]
            if not going:
                raise
    try:
        log.folder.retire(log.segments.remove(0, len(going)), _due_ms(log))
    except OSError as error:
        raise log.disk.fail(error, f"deletion in {log.name}") from error
    log.advance_log_start_offset(log.first_base_offset)
    return [segment.base_offset for segment, _ in going]


def truncate_to(log: LogState, offset: int) -> None:
    """Drop every batch that holds `offset` or more."""
    if offset >= log.log_end_offset:
        # An epoch in which this replica led and appended nothing: its next leader does not know it.
        if log.leader_epochs.truncate_from_end(log.log_end_offset):
            log.epochs_changed()
        return
    offset = log.segments.batch_start(offset)
    if offset <= log.first_base_offset:
        truncate_fully_and_start_at(log, offset)
        return
    log.disk.check()
    segments = log.segments
    number = segments.number_of(offset - 1)
    segment = segments.all[number]
    # All that reads comes before the first change, since it may be refused.
    with log.disk.reading(f"{log.name}"):
        # Its file is open from here on, so that what follows wants no descriptor.
        segment.file.size()
        position = segment.position_of(offset)
        producers = log.folder.load_producers(
            segments.all[: number + 1], offset, log.config.producer_id_expiration_ms
        )
    with log.disk.reading(f"{log.name}"), log.position_lock:
        _go_back(log, offset)
        removed = segments.remove(number + 1, len(segments.all))
        for later in removed:
            later.let_go()
        segment.truncate_to_position(position, offset)
        log.log_end_offset = end_offset = segment.last_batch_end()[0]
    log.leader_epochs.truncate_from_end(end_offset)
    log.epochs_changed()
    log.producers = producers
    log.cuts.add(log, Cut(log.folder, log.disk, removed, _due_ms(log), kept=segment, end_offset=end_offset))


def truncate_fully_and_start_at(log: LogState, offset: int) -> None:
    """Drop everything; the next record gets `offset`."""
    log.disk.check()
    segment = log.folder.new_segment(offset, log.config, log.now_ms())
    with log.position_lock:
        _go_back(log, offset)
        removed = log.segments.remove(0, len(log.segments.all))
        for earlier in removed:
            earlier.let_go()
        log.segments.add(segment)
        log.log_start_offset = log.log_end_offset = offset
        log.disk.log_starts_moved = True
    log.producers = ProducerState(expiration_ms=log.config.producer_id_expiration_ms)
    log.leader_epochs.clear()
    log.epochs_changed()
    log.cuts.add(log, Cut(log.folder, log.disk, removed, _due_ms(log), created=segment))


def _go_back(log: LogState, offset: int) -> None:
    """From here on, a checkpoint has the recovery start no later than `offset`."""
    log.truncations += 1
    log.flushed_end_offset = min(log.flushed_end_offset, offset)
    log.log_start_offset = min(log.log_start_offset, offset)
    log.disk.recovery_points_moved = log.disk.log_starts_moved = True


def _due_ms(log: LogState) -> int:
    return log.monotonic_ms() + log.config.file_delete_delay_ms
