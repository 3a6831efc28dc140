"""Taking records out of a log: retention at its start, truncation at its end.

Rules
1. Segments leave the log before their files change, in the order that leaves no hole when a crash comes
   between: retention takes the oldest first, truncation the newest.
2. A truncation excludes flushes, and moves `flushed_end_offset` back before any file changes: a recovery
   after a crash must not take for durable what lies behind the cut.
3. Batches are cut off whole.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from storage.errors import DiskFull
from storage.producers import ProducerState
from storage.retention import deletable

if TYPE_CHECKING:
    from storage.log import Log

logger = logging.getLogger(__name__)


def apply_retention(log: Log, now_ms: int, high_watermark: int) -> list[int]:
    """Delete the segments that may go; their base offsets."""
    found = deletable(
        log.segments.facts(log.log_end_offset),
        log.config,
        now_ms=now_ms,
        high_watermark=high_watermark,
        log_start_offset=log.log_start_offset,
    )
    if not found:
        return []
    for facts, reason in found:
        logger.info(
            "%s-%d: delete the segment at %d, %s", log.topic, log.partition, facts.base_offset, reason.value
        )
    if len(found) == len(log.segments.all):
        try:
            log.roll(now_ms)
        except DiskFull:
            # The other segments give the space for the next try.
            found = found[:-1]
            if not found:
                raise
    try:
        log.folder.retire(log.segments.remove(0, len(found)), _due_ms(log))
    except OSError as error:
        raise log.disk.fail(error, f"deletion in {log.topic}-{log.partition}") from error
    log.advance_log_start_offset(log.first_base_offset)
    return [facts.base_offset for facts, _ in found]


def truncate_to(log: Log, offset: int) -> None:
    """Drop every batch that holds `offset` or more."""
    if offset >= log.log_end_offset:
        # An epoch in which this replica led and appended nothing: its next leader does not know it.
        if log.leader_epochs.truncate_from_end(log.log_end_offset):
            log.latest_leader_epoch = log.leader_epochs.latest_epoch
            log.leader_epochs_changed = True
        return
    offset = log.segments.batch_start(offset)
    if offset <= log.first_base_offset:
        truncate_fully_and_start_at(log, offset)
        return
    segments = log.segments
    with log.flush_lock:
        _go_back(log, offset)
        try:
            _remove_newest(log, segments.number_of(offset - 1) + 1)
            log.folder.sync_directory()
            segment = segments.active
            segment.truncate_to_position(segment.position_of(offset), offset)
            # Synced at once: else a crash could bring back old batches behind new ones written in their
            # place.
            segment.file.sync()
            log.log_end_offset = end_offset = segment.last_batch_end()[0]
            log.leader_epochs.truncate_from_end(end_offset)
            log.latest_leader_epoch = log.leader_epochs.latest_epoch
            log.leader_epochs_changed = True
            log.folder.remove_snapshots_behind(end_offset)
            log.producers = log.folder.load_producers(
                segments.all, end_offset, log.config.producer_id_expiration_ms
            )
        except OSError as error:
            raise log.disk.fail(error, f"truncation of {log.topic}-{log.partition}") from error


def truncate_fully_and_start_at(log: Log, offset: int) -> None:
    """Drop everything; the next record gets `offset`."""
    with log.flush_lock:
        _go_back(log, offset)
        try:
            _remove_newest(log, 0)
            log.folder.remove_snapshots_behind(-1)
            segment = log.folder.create_segment(offset, log.config, log.now_ms())
            log.folder.sync_directory()
        except OSError as error:
            raise log.disk.fail(error, f"truncation of {log.topic}-{log.partition}") from error
        log.segments.add(segment)
        log.log_start_offset = log.log_end_offset = offset
        log.producers = ProducerState(expiration_ms=log.config.producer_id_expiration_ms)
        log.leader_epochs.clear()
        log.latest_leader_epoch = log.leader_epochs.latest_epoch
        log.leader_epochs_changed = True


def _go_back(log: Log, offset: int) -> None:
    """The first step of a truncation: from here on, a recovery starts no later than `offset`."""
    log.disk.check()
    log.truncations += 1
    log.flushed_end_offset = min(log.flushed_end_offset, offset)
    log.log_start_offset = min(log.log_start_offset, offset)
    if log.before_truncation is not None:
        log.before_truncation(offset)


def _remove_newest(log: Log, first: int) -> None:
    """Take the segments from number `first` on out of the log, and their files out of use."""
    removed = log.segments.remove(first, len(log.segments.all))
    log.folder.retire(removed[::-1], _due_ms(log))


def _due_ms(log: Log) -> int:
    return log.now_ms() + log.config.file_delete_delay_ms
