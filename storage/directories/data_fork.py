"""A second data folder of a broker that does not run: closed segments are shared, the rest is copied."""

from __future__ import annotations

import errno
import os
from uuid import uuid4

from kafka_compat.storage.directories import checkpoints
from kafka_compat.storage.directories.folder_names import partition_of
from kafka_compat.storage.errors import FolderInTheWay, LogDirInUse
from kafka_compat.storage.filesystem import RealFilesystem, copy_file
from kafka_compat.storage.log.fork import link_folder


def fork_data(source: str, target: str) -> int:
    """Make `target`, which is not there yet, hold what the log directory `source` holds; how many logs. It is
    there as a whole or not at all. Raises LogDirInUse when a broker has `source`, FolderInTheWay, OSError.
    """
    filesystem = RealFilesystem()
    if not os.path.exists(f"{source}/{checkpoints.META_PROPERTIES}"):
        raise FileNotFoundError(
            f"{source} is no folder of a broker: it has no {checkpoints.META_PROPERTIES}. "
            "Name one of its log.dirs"
        )
    if os.path.exists(target):
        raise FolderInTheWay(f"{target} is there already: name a folder that is not, or remove it")
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
            reason = f"{target} is on another disk than {source}: closed segments can be shared on one alone"
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
            link_folder(path, f"{target}/{entry}")
            logs += 1
        elif os.path.isfile(path) and entry != checkpoints.LOCK:
            copy_file(path, f"{target}/{entry}")
    return logs
