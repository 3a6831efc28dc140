"""Making a log durable: flushes beside appends, and the close that a clean start trusts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.log import Log


def flush(log: Log) -> None:
    """Make everything appended so far durable, in any one thread. Raises LogDirFailure.

    What is appended meanwhile may or may not be synced; only what was there before counts as flushed.
    """
    with log.flush_lock:
        log.disk.check()
        folder = log.folder
        end_offset = log.log_end_offset
        if log.closed or (end_offset <= log.flushed_end_offset and not folder.names_changed):
            return
        segments = list(log.segments.all)
        names_changed, folder.names_changed = folder.names_changed, False
        try:
            folder.sync_segments(segments, log.flushed_end_offset)
            if names_changed:
                folder.sync_names()
        except OSError as error:
            raise log.disk.fail(error, f"flush of {log.topic}-{log.partition}") from error
        if log.leader_epochs_changed:
            try:
                _store_leader_epochs(log)
            except OSError as error:
                # The file is replaced as a whole or not at all, so that this may be tried again.
                log.leader_epochs_changed = True
                raise log.disk.refuse(error, f"leader epochs of {log.topic}-{log.partition}") from error
        log.flushed_end_offset = max(log.flushed_end_offset, end_offset)
        log.last_flush_ms = log.now_ms()


def close(log: Log) -> None:
    """Flush, and write all that a clean start trusts: indexes, producer snapshot, leader epochs."""
    log.disk.check()
    try:
        active = log.segments.active
        active.seal()
        if active.size_bytes:
            active.sync(sealed=True)
        log.folder.store_snapshot(log.log_end_offset, log.producers)
        flush(log)
        if log.leader_epochs_changed:
            _store_leader_epochs(log)
    except OSError as error:
        raise log.disk.fail(error, f"close of {log.topic}-{log.partition}") from error
    log.let_go()


def _store_leader_epochs(log: Log) -> None:
    # Marked before it is done: an epoch that comes meanwhile must be stored once more.
    log.leader_epochs_changed = False
    log.folder.store_leader_epochs(log.leader_epochs)
