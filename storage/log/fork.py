"""Forks of a log: directories with the same records on the same disk, stored as hard links, not copies.

A closed segment is never written to again: compaction and retention replace or unlink its files, and the
content remains available through other links. Therefore a fork contains links to closed segments and a copy
of the active segment, which is closed first if it is large.

Code that changes a file in place first calls `Filesystem.unshare`, which copies a file that has a second
link. This is necessary for a segment that becomes active again after a truncation or at startup, and for a
segment whose torn end is removed at startup. `Filesystem.write_file` replaces index files and snapshots and
leaves other links unchanged. Therefore changes in one directory never affect the other directory.

The directory of a fork is in the same state as after a clean shutdown at the moment of the fork.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from kafka_compat.storage.directories import checkpoints
from kafka_compat.storage.directories.checkpoints import PARTITION_METADATA
from kafka_compat.storage.directories.directory_names import partition_of
from kafka_compat.storage.errors import DirectoryExists, LogDirInUse
from kafka_compat.storage.filesystem import RealFilesystem, copy_file
from kafka_compat.storage.log.leader_epochs import LeaderEpochs
from kafka_compat.storage.log.log_files import FORKED_AT, LEADER_EPOCH_CHECKPOINT
from kafka_compat.storage.segments import segment_files
from kafka_compat.storage.segments.segment_files import LOG_SUFFIX, SNAPSHOT_SUFFIX, file_name
from kafka_compat.storage.segments.segment_indexes import SMALL_BYTES

if TYPE_CHECKING:
    from kafka_compat.storage.filesystem import Filesystem
    from kafka_compat.storage.log.log import Log


COPIED_BYTES_MAX: Final = SMALL_BYTES
"""Maximum size in bytes of an active segment that is copied. The copy takes as long as a few links."""


def write_fork(log: Log, directory: str, filesystem: Filesystem, *, is_new_topic: bool) -> None:
    """Create `directory` as a copy of `log`, without syncing it. With `is_new_topic`, the copy is for a
    different topic, and the caller must call `become_new_topic` after opening it.

    Call this on the thread that appends to the log, while no truncation is pending. Raises OSError and the
    same errors as `Log.roll`.
    """
    if log.segments.active.size_bytes > COPIED_BYTES_MAX:
        log.roll(log.now_ms())
    filesystem.mkdir(directory)
    source = log.directory
    present = set(filesystem.listdir(source))

    def link(name: str) -> None:
        if name in present:
            filesystem.link(f"{source}/{name}", f"{directory}/{name}")

    for segment in log.segments.all[:-1]:
        for suffix in segment_files.SEGMENT_SUFFIXES:
            link(file_name(segment.base_offset, suffix))
        link(file_name(segment.base_offset, SNAPSHOT_SUFFIX))
    active = log.segments.active
    base_offset = active.base_offset
    content = active.file.pread(active.size_bytes, 0) if active.size_bytes else b""
    filesystem.write_file(f"{directory}/{file_name(base_offset, LOG_SUFFIX)}", content)
    transactions = file_name(base_offset, segment_files.TXN_INDEX_SUFFIX)
    if content:
        # Copy only the transaction index: the other indexes are created when the segment is opened.
        active.txn_index.store()
        if transactions in present:
            content = filesystem.read_file(f"{source}/{transactions}")
            filesystem.write_file(f"{directory}/{transactions}", content)
    if base_offset < log.log_end_offset:
        link(file_name(base_offset, SNAPSHOT_SUFFIX))
    # Skip the snapshot for a single-segment log that starts at offset 0: its batches are replayed quickly.
    if base_offset or log.log_start_offset:
        path = f"{directory}/{file_name(log.log_end_offset, SNAPSHOT_SUFFIX)}"
        filesystem.write_file(path, log.producers.encode_snapshot())
    epochs = LeaderEpochs(log.leader_epochs.entries)
    epochs.truncate_from_end(log.log_end_offset)
    if LEADER_EPOCH_CHECKPOINT in present and (
        filesystem.read_file(f"{source}/{LEADER_EPOCH_CHECKPOINT}") == epochs.encode()
    ):
        link(LEADER_EPOCH_CHECKPOINT)
    elif epochs.entries:
        filesystem.write_file(f"{directory}/{LEADER_EPOCH_CHECKPOINT}", epochs.encode())
    if is_new_topic:
        filesystem.write_file(f"{directory}/{FORKED_AT}", b"%d" % log.log_end_offset)
        return
    link(FORKED_AT)
    link(PARTITION_METADATA)


def become_new_topic(log: Log, topic_id: UUID) -> None:
    """Assign a log created by `write_fork` to a new topic. Raises the same errors as `Log.roll`.

    Producers keep their epochs and restart their sequences, because clients have sent nothing to the new
    topic. A new segment begins where the sequences restart, so that recovery finds this offset.
    """
    log.assign_topic_id(topic_id)
    log.producers.forget_sequences()
    if log.segments.active.size_bytes:
        log.roll(log.now_ms())
    else:
        log.files.write_snapshot(log.log_end_offset, log.producers)
    log.flushing.end_offset = 0


def link_directory(source: str, target: str) -> None:
    """Create `target` as a second directory of the log in `source`. No broker may have the log open. Files
    of closed segments are linked, and all others are copied, because they may be written in place. Raises
    OSError.
    """
    names = [
        name
        for name in os.listdir(source)
        if not name.endswith((segment_files.DELETED_SUFFIX, segment_files.CLEANED_SUFFIX))
    ]
    newest = max((name for name in names if name.endswith(LOG_SUFFIX)), default="").removesuffix(LOG_SUFFIX)
    os.mkdir(target)
    for name in names:
        stem = os.path.splitext(name)[0]
        is_copied = stem == newest or not stem.isdigit()
        (copy_file if is_copied else os.link)(f"{source}/{name}", f"{target}/{name}")


def fork_data(source: str, target: str) -> int:
    """Create `target` atomically with the content of the log directory `source`, and return the number of
    logs. Raises LogDirInUse if a broker is using `source`, DirectoryExists if `target` exists, or OSError.
    """
    filesystem = RealFilesystem()
    if not os.path.exists(f"{source}/{checkpoints.META_PROPERTIES}"):
        raise FileNotFoundError(
            f"{source} is not a broker's data directory: it has no {checkpoints.META_PROPERTIES}. Use one "
            "of its log.dirs"
        )
    if os.path.exists(target):
        raise DirectoryExists(f"{target} already exists: choose another directory, or remove it")
    lock = filesystem.lock(f"{source}/{checkpoints.LOCK}")
    if lock is None:
        raise LogDirInUse(f"a broker uses {source}: stop it, or fork its topics (--http)")
    building = f"{target}.{uuid4().hex}"
    try:
        os.makedirs(building)
        logs = _link_all(source, building)
        os.rename(building, target)
    except OSError as error:
        import shutil

        shutil.rmtree(building, ignore_errors=True)
        if error.errno == errno.EXDEV:
            reason = (
                f"{target} is on another disk than {source}: closed segments cannot be shared between disks"
            )
            raise OSError(errno.EXDEV, reason) from error
        raise
    finally:
        lock.release()
    return logs


def _link_all(source: str, target: str) -> int:
    logs = 0
    for entry in sorted(os.listdir(source)):
        path = f"{source}/{entry}"
        if partition_of(entry) is not None and os.path.isdir(path):
            link_directory(path, f"{target}/{entry}")
            logs += 1
        elif os.path.isfile(path) and entry != checkpoints.LOCK:
            copy_file(path, f"{target}/{entry}")
    return logs
