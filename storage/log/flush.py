"""Making a log durable: flushes beside appends, and the close that a clean start trusts."""

from __future__ import annotations

import time

from kafka_compat.storage.log.state import LogState


def flush(log: LogState) -> None:
    """Make everything appended so far durable, in the worker of its directory. Raises LogDirFailure,
    RefusedForNow.

    What is appended meanwhile may or may not be synced; only what was there before counts as flushed. Nothing
    is done for a log with a truncation under way, of which files and memory do not agree yet.
    """
    log.disk.check()
    folder = log.folder
    with log.position_lock:
        if log.closed or log.is_settling:
            return
        end_offset, truncations = log.log_end_offset, log.truncations
        segments = list(log.segments.all)
    if end_offset <= log.flushed_end_offset and not folder.names_changed:
        return
    names_changed, folder.names_changed = folder.names_changed, False
    began_s = time.monotonic()
    try:
        folder.sync_segments(segments, log.flushed_end_offset)
        if names_changed:
            folder.sync_names()
        log.disk.flushes += 1
        log.disk.flush_times_ms.append((time.monotonic() - began_s) * 1000)
    except OSError as error:
        folder.names_changed = folder.names_changed or names_changed
        raise log.disk.fail(error, f"flush of {log.name}") from error
    if log.leader_epochs_changed:
        try:
            _store_leader_epochs(log)
        except OSError as error:
            # The file is replaced as a whole or not at all, so that this may be tried again.
            log.leader_epochs_changed = True
            folder.names_changed = folder.names_changed or names_changed
            raise log.disk.refuse(error, f"leader epochs of {log.name}") from error
    with log.position_lock:
        if log.truncations == truncations:
            log.flushed_end_offset = max(log.flushed_end_offset, end_offset)
            log.disk.recovery_points_moved = True
    log.last_flush_ms = log.monotonic_ms()


def close(log: LogState) -> None:
    """Flush, and write all that a clean start trusts: indexes, producer snapshot, leader epochs."""
    log.disk.check()
    if log.is_as_closed:
        log.let_go()
        return
    try:
        active = log.segments.active
        active.complete()
        if active.size_bytes:
            active.sync(sealed=True)
        # Very many logs never had a record: these need neither of the two files, as with Kafka. Epochs with
        # no record are forgotten by the next start anyway.
        if log.log_end_offset or log.producers.entries:
            log.folder.store_snapshot(log.log_end_offset, log.producers)
        log.leader_epochs.truncate_from_end(log.log_end_offset)
        log.leader_epochs_changed = log.leader_epochs_changed and bool(log.leader_epochs.entries)
        flush(log)
        if log.leader_epochs_changed:
            _store_leader_epochs(log)
    except OSError as error:
        raise log.disk.fail(error, f"close of {log.name}") from error
    log.let_go()


def _store_leader_epochs(log: LogState) -> None:
    # Marked before it is done: an epoch that comes meanwhile must be stored once more.
    log.leader_epochs_changed = False
    log.folder.store_leader_epochs(log.leader_epochs)
