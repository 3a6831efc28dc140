"""Saved states of all log directories of a broker, stored as directories of hard links to closed segments.

Large files of a state are links, such as `3@00000000000000000000.log` for log 3. Small files and the list of
logs are packed into one file (`Pack`), because creating a file takes as long as twenty links. Restoring a
state replaces the files that differ, and leaves the logs as after a clean shutdown. Later writes do not
change the files of a state (see `log.fork`).

A state exists once its directory in the first log directory has its final name. This directory is renamed
after all others. A marker file contains the name of the state being restored, so that the restoration is
repeated if the process is killed. Nothing is synced, so after a machine crash a state, and logs restored from
it, may be damaged.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from kafka_compat.storage.directories import checkpoints, directory_names
from kafka_compat.storage.directories.directory_names import RETURNING
from kafka_compat.storage.directories.log_summaries import LOG_SUMMARIES
from kafka_compat.storage.directories.machine_crash import BOOT_MARKER
from kafka_compat.storage.filesystem import TEMPORARY_SUFFIX, Buffer, RealFilesystem, copy_file
from kafka_compat.storage.log.fork import write_fork

if TYPE_CHECKING:
    from kafka_compat.storage.directories.log_dirs import LogDirs

SAVED: Final = ".kafka-compat-snapshots"
_PACK: Final = "logs"
_OURS: Final = (
    *checkpoints.OFFSETS,
    checkpoints.META_PROPERTIES,
    checkpoints.CLEAN_SHUTDOWN,
    BOOT_MARKER,
    LOG_SUMMARIES,
)


def names(directories: Sequence[str]) -> list[str]:
    """Return the names of the saved states."""
    try:
        return sorted(name for name in os.listdir(f"{directories[0]}/{SAVED}") if not name.startswith("."))
    except FileNotFoundError:
        return []


def save(
    log_dirs: LogDirs, name: str, high_watermarks: Mapping[tuple[str, int], int], files: Mapping[str, bytes]
) -> None:
    """Save the current content of all logs, replacing an earlier state with this name. `files` are stored in
    the state, for `read_file`. Call this on the thread that appends to the logs. Raises OSError and the same
    errors as `Log.roll`.
    """
    filesystem = RealFilesystem()
    building = f".{uuid4().hex}"
    directories = log_dirs.directories
    for path in directories:
        target = f"{path}/{SAVED}/{building}"
        filesystem.mkdir(target)
        logs = {key: log for key, log in log_dirs.logs.items() if log.disk.path == path}
        pack = Pack(target)
        for key, log in logs.items():
            write_fork(log, directory_names.directory_name(key), pack, is_new_topic=False)
        filesystem.write_file(f"{target}/{_PACK}", pack.encode())
        clean_offsets = log_dirs.clean_offsets
        offsets = {
            checkpoints.RECOVERY_POINTS: {key: log.flushed_end_offset for key, log in logs.items()},
            checkpoints.LOG_START_OFFSETS: {key: log.log_start_offset for key, log in logs.items()},
            checkpoints.HIGH_WATERMARKS: {
                key: high_watermarks[key] for key in logs if key in high_watermarks
            },
            checkpoints.CLEANER_OFFSETS: {key: clean_offsets[key] for key in logs if key in clean_offsets},
        }
        for file, entries in offsets.items():
            filesystem.write_file(f"{target}/{file}", checkpoints.encode_offsets(entries))
        for file in (checkpoints.META_PROPERTIES, BOOT_MARKER):
            filesystem.write_file(f"{target}/{file}", filesystem.read_file(f"{path}/{file}"))
        filesystem.write_file(f"{target}/{checkpoints.CLEAN_SHUTDOWN}", checkpoints.encode_clean_shutdown())
    for file, content in files.items():
        filesystem.write_file(f"{directories[0]}/{SAVED}/{building}/{file}", content)
    for path in reversed(directories):
        if os.path.isdir(f"{path}/{SAVED}/{name}"):
            os.rename(f"{path}/{SAVED}/{name}", f"{path}/{SAVED}/.{uuid4().hex}")
        os.rename(f"{path}/{SAVED}/{building}", f"{path}/{SAVED}/{name}")


def remove(directories: Sequence[str], name: str) -> None:
    """Delete a state. `remove_leftovers` deletes its files. Raises FileNotFoundError if it is missing."""
    for path in directories:
        os.rename(f"{path}/{SAVED}/{name}", f"{path}/{SAVED}/.{uuid4().hex}")


def remove_leftovers(directories: Sequence[str]) -> None:
    """Delete the files of unfinished and removed states. No other code may use the directories meanwhile."""
    import shutil

    for path in directories:
        saved = f"{path}/{SAVED}"
        for name in os.listdir(saved) if os.path.isdir(saved) else ():
            if name.startswith("."):
                shutil.rmtree(f"{saved}/{name}", ignore_errors=True)
        if os.path.isdir(saved) and not os.listdir(saved):
            os.rmdir(saved)


def read_file(directories: Sequence[str], name: str, file: str) -> bytes:
    """Read a file that was passed to `save` in `files`. Raises FileNotFoundError if it does not exist."""
    return RealFilesystem().read_file(f"{directories[0]}/{SAVED}/{name}/{file}")


def return_to(directories: Sequence[str], name: str) -> None:
    """Restore the directories to a saved state. No broker may have them open. Raises OSError."""
    marker = f"{directories[0]}/{RETURNING}"
    RealFilesystem().write_file(f"{marker}{TEMPORARY_SUFFIX}", name.encode())
    os.rename(f"{marker}{TEMPORARY_SUFFIX}", marker)
    for path in directories:
        saved = f"{path}/{SAVED}/{name}"
        logs = decode(RealFilesystem().read_file(f"{saved}/{_PACK}"))
        with os.scandir(saved) as entries:
            inodes = {entry.name: entry.inode() for entry in entries}
        others = [entry for entry in inodes if "@" not in entry and entry != _PACK]
        _clear(path, others, logs)
        links: dict[str, dict[str, int]] = {}
        for entry in inodes:
            number, at, file = entry.partition("@")
            if at:
                links.setdefault(number, {})[file] = inodes[entry]
        for number, (directory, files) in zip(map(str, itertools.count()), logs.items(), strict=False):
            _return_directory(f"{path}/{directory}", files, f"{saved}/{number}@", links.get(number, {}))
        for entry in others:
            copy_file(f"{saved}/{entry}", f"{path}/{entry}")
    os.unlink(marker)


def finish_return(directories: Sequence[str]) -> None:
    """Repeat a restoration that was interrupted because the process was killed. Raises OSError."""
    try:
        name = RealFilesystem().read_file(f"{directories[0]}/{RETURNING}").decode()
    except FileNotFoundError:
        return
    return_to(directories, name)


def return_together(shared: str, file: str, brokers: Sequence[Sequence[str]], name: str) -> None:
    """Restore the directories of several brokers to a saved state. Also restore `file`, saved by the first
    broker, to the directory `shared`. No process may have the directories open. Raises OSError.
    """
    filesystem, marker = RealFilesystem(), f"{shared}/{RETURNING}"
    filesystem.write_file(f"{marker}{TEMPORARY_SUFFIX}", name.encode())
    os.rename(f"{marker}{TEMPORARY_SUFFIX}", marker)
    for directories in brokers:
        return_to(directories, name)
    filesystem.write_file(f"{shared}/{file}{TEMPORARY_SUFFIX}", read_file(brokers[0], name, file))
    os.rename(f"{shared}/{file}{TEMPORARY_SUFFIX}", f"{shared}/{file}")
    os.unlink(marker)


def finish_returning_together(shared: str, file: str, brokers: Sequence[Sequence[str]]) -> None:
    """Repeat an interrupted `return_together`. Raises OSError."""
    return_together(shared, file, brokers, RealFilesystem().read_file(f"{shared}/{RETURNING}").decode())


class Pack(RealFilesystem):
    """A target for `write_fork` that packs the small files and links the large files of all logs."""

    def __init__(self, target: str) -> None:
        super().__init__()
        self._target = target
        self._logs: dict[str, dict[str, bytes]] = {}

    def mkdir(self, path: str) -> None:
        self._logs[path] = {}

    def write_file(self, path: str, content: Buffer) -> None:
        directory, _, name = path.partition("/")
        self._logs[directory][name] = bytes(content)

    def link(self, source: str, target: str) -> None:
        """Add a hard link to a file of the most recently added log."""
        os.link(source, f"{self._target}/{len(self._logs) - 1}@{target.partition('/')[2]}")

    def encode(self) -> bytes:
        """Encode the files of all logs: one JSON line with their names and sizes, then their contents."""
        sizes = {
            directory: {name: len(content) for name, content in files.items()}
            for directory, files in self._logs.items()
        }
        contents = [content for files in self._logs.values() for content in files.values()]
        return json.dumps(sizes).encode() + b"\n" + b"".join(contents)


def decode(packed: bytes) -> dict[str, dict[str, bytes]]:
    """Decode a pack from `Pack.encode`, and return the file contents by log directory and file name."""
    position = packed.index(b"\n") + 1
    logs: dict[str, dict[str, bytes]] = {}
    for directory, sizes in json.loads(packed[:position]).items():
        files = logs[directory] = {}
        for name, size_bytes in sizes.items():
            files[name] = packed[position : position + size_bytes]
            position += size_bytes
    return logs


def _clear(path: str, wanted: Iterable[str], logs: Collection[str]) -> None:
    for entry in os.listdir(path):
        key = directory_names.partition_of(entry)
        if key is not None and entry not in logs and os.path.isdir(f"{path}/{entry}"):
            os.rename(
                f"{path}/{entry}", f"{path}/{directory_names.unique_name(key, directory_names.DELETE_SUFFIX)}"
            )
    for entry in {*wanted, *_OURS}:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{path}/{entry}")


def _return_directory(
    directory: str, files: Mapping[str, bytes], prefix: str, links: Mapping[str, int]
) -> None:
    """Restore the directory of a log, even if it now belongs to a new topic with the same name. Write
    `files`, and link the files whose paths begin with `prefix`; `links` maps their names to inode numbers.
    """
    kept = set()
    try:
        with os.scandir(directory) as entries:
            present = {entry.name: entry.inode() for entry in entries}
    except FileNotFoundError:
        os.mkdir(directory)
        present = {}
    for name, inode in present.items():
        content = files.get(name)
        if links.get(name) == inode or (content is not None and _is_cut_back(f"{directory}/{name}", content)):
            kept.add(name)
        else:
            os.unlink(f"{directory}/{name}")
    for name in links.keys() - kept:
        os.link(prefix + name, f"{directory}/{name}")
    for name in files.keys() - kept:
        RealFilesystem().write_file(f"{directory}/{name}", files[name])


def _is_cut_back(path: str, content: bytes) -> bool:
    """Truncate a file to the saved content. Return False if its content differs or it has other links."""
    file = RealFilesystem().open(path)
    if os.fstat(file.fd).st_nlink > 1 or file.pread(len(content), 0) != content:
        return False
    file.truncate(len(content))
    return True
