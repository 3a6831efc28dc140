"""The real file system layer: appends, preallocation, atomic replacement, and locks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kafka_compat.storage.filesystem import RealFilesystem

MIB = 1024 * 1024


def test_appends_are_written_at_the_end_and_readable_at_any_position(tmp_path: Path) -> None:
    filesystem = RealFilesystem()
    file = filesystem.create(f"{tmp_path}/a")
    assert file.write(b"hello ") == 6
    assert file.write(memoryview(b"world")) == 5
    assert file.pread(5, 6) == b"world"
    assert file.pread(100, 9) == b"ld"
    file.truncate(6)
    file.write(b"there")
    file.sync()
    assert filesystem.read_file(f"{tmp_path}/a") == b"hello there"


def test_opening_a_missing_file_does_not_create_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        RealFilesystem().open(f"{tmp_path}/a")
    assert os.listdir(tmp_path) == []


def test_a_deleted_file_is_readable_while_it_is_open(tmp_path: Path) -> None:
    filesystem = RealFilesystem()
    file = filesystem.create(f"{tmp_path}/a")
    file.write(b"kept")
    filesystem.unlink(f"{tmp_path}/a")
    assert file.pread(4, 0) == b"kept"


def test_a_descriptor_is_closed_when_its_last_user_releases_it(tmp_path: Path) -> None:
    file = RealFilesystem().create(f"{tmp_path}/a")
    fd = file.fileno()
    os.fstat(fd)
    del file
    with pytest.raises(OSError):
        os.fstat(fd)


@pytest.mark.skipif(sys.platform != "linux", reason="needs fallocate, which only Linux has")
def test_reserving_space_keeps_the_file_size_and_truncation_frees_the_space(tmp_path: Path) -> None:
    file = RealFilesystem().create(f"{tmp_path}/a")
    file.write(b"x" * 1000)
    file.reserve(1000, 32 * MIB)
    status = os.stat(f"{tmp_path}/a")
    assert status.st_size == file.size() == 1000
    if status.st_blocks * 512 < 32 * MIB:
        pytest.skip("this file system does not preallocate")
    file.write(b"y" * 1000)
    file.truncate(2000)
    status = os.stat(f"{tmp_path}/a")
    assert status.st_size == 2000
    assert status.st_blocks * 512 < MIB


def test_atomic_replacement_writes_the_new_content_and_removes_the_temporary_file(tmp_path: Path) -> None:
    filesystem = RealFilesystem()
    path = f"{tmp_path}/checkpoint"
    filesystem.write_file_atomically(path, b"one")
    filesystem.write_file_atomically(path, b"two")
    assert filesystem.read_file(path) == b"two"
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_a_lock_excludes_other_users_in_and_outside_the_process(tmp_path: Path) -> None:
    filesystem = RealFilesystem()
    path = f"{tmp_path}/.lock"
    held = filesystem.lock(path)
    assert held is not None
    assert filesystem.lock(path) is None
    # Apache Kafka locks files with java.nio, which uses POSIX locks.
    script = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+')\n"
        "try: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except OSError: print('held')\n"
        "else: print('free')\n"
    )
    command = [sys.executable, "-c", script, path]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "held\n"
    held.release()
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "free\n"
    again = filesystem.lock(path)
    assert again is not None
    again.release()


def test_two_threads_can_replace_the_same_file_concurrently(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    failures: list[OSError] = []

    def replace(content: bytes) -> None:
        try:
            for _ in range(200):
                RealFilesystem().write_file_atomically(path, content)
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=replace, args=(bytes([number]) * 1000,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert RealFilesystem().read_file(path) in (bytes(1000), b"\x01" * 1000)
    assert [found.name for found in tmp_path.iterdir()] == ["checkpoint"]
