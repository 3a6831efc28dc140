"""The directories in log.dirs: locked by one broker, several directories at once, and failed directories."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from tests.conformance.wire import Connection
from tests.restart.client import create_topic, delete_topic, fetch, produce, values_of
from tests.support.process import ProcessFailed
from tests.support.servers import PROJECT, KafkaCompatBroker, StartBroker, run_kafka_compat

PARTITIONS = 6


def _snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the modification time and content of every file."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def _serve(log_dir: Path, *overrides: str) -> tuple[int, str]:
    """Start a broker on the directory, which must fail, and return its exit code and message."""
    settings = ["listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={log_dir}", *overrides]
    done = run_kafka_compat("serve", *(f"--override={setting}" for setting in settings))
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_a_second_broker_in_the_directory_is_rejected_without_changing_files(
    broker: KafkaCompatBroker,
) -> None:
    with Connection(broker.address) as connection:
        create_topic(connection, "t")
        produce(connection, "t", [b"x"])
        before = _snapshot(broker.log_dir)
        code, message = _serve(broker.log_dir)
        assert code == 2
        assert str(broker.log_dir) in message
        assert len(message.splitlines()) == 1
        assert _snapshot(broker.log_dir) == before
        assert produce(connection, "t", [b"y"]) == (ErrorCode.NONE, 1)


def test_a_broker_with_a_different_id_is_rejected_without_changing_files(broker: KafkaCompatBroker) -> None:
    assert broker.process.stop() == 0
    before = _snapshot(broker.log_dir)
    code, message = _serve(broker.log_dir, "broker.id=2")
    assert code == 2
    assert "broker.id=1" in message and "broker.id=2" in message
    assert _snapshot(broker.log_dir) == before


def test_a_kraft_log_directory_is_rejected(tmp_path: Path) -> None:
    folder = tmp_path / "kraft"
    (folder / "__cluster_metadata-0").mkdir(parents=True)
    (folder / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n")
    code, message = _serve(folder)
    assert code == 2
    assert "KRaft" in message
    assert {path.name for path in folder.iterdir()} <= {"__cluster_metadata-0", "meta.properties", ".lock"}


def test_a_port_in_use_aborts_startup_without_changing_files(
    broker: KafkaCompatBroker, tmp_path: Path
) -> None:
    code, message = _serve(tmp_path / "other", f"listeners=PLAINTEXT://{broker.address}")
    assert code == 2
    assert broker.address in message
    assert not (tmp_path / "other").exists()


@pytest.fixture
def several(start_broker: StartBroker, tmp_path: Path) -> tuple[KafkaCompatBroker, list[Path]]:
    """A broker with three log directories, and a topic with partitions in each of them."""
    folders = [tmp_path / name for name in ("a", "b", "c")]
    broker = start_broker({"log.dirs": ",".join(map(str, folders))})
    with Connection(broker.address) as connection:
        create_topic(connection, "t", PARTITIONS)
        for partition in range(PARTITIONS):
            produce(connection, "t", [b"in %d" % partition], partition=partition)
    return broker, folders


def _partitions_in(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("t-")) for path in folder.glob("t-?"))


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_partitions_are_spread_over_the_directories_and_found_after_a_restart(
    several: tuple[KafkaCompatBroker, list[Path]], kill: bool
) -> None:
    broker, folders = several
    before = [_partitions_in(folder) for folder in folders]
    assert [len(found) for found in before] == [2, 2, 2]
    broker.restart(kill=kill)
    assert [_partitions_in(folder) for folder in folders] == before
    with Connection(broker.address) as connection:
        for partition in range(PARTITIONS):
            assert values_of(connection, "t", partition) == [b"in %d" % partition]


def test_a_directory_that_fails_at_startup_does_not_affect_other_directories(
    several: tuple[KafkaCompatBroker, list[Path]],
) -> None:
    broker, folders = several
    lost = _partitions_in(folders[1])
    assert broker.process.stop() == 0
    shutil.move(folders[1], folders[1].with_name("unplugged"))
    folders[1].write_text("not a folder")
    broker.start()
    with Connection(broker.address) as connection:
        _check_all_but(connection, lost)
        # New topics are created in the working directories.
        create_topic(connection, "new", 2)
        assert produce(connection, "new", [b"x"], partition=1) == (ErrorCode.NONE, 0)
    assert all(_partitions_in(folder).count(partition) == 0 for folder in folders[::2] for partition in lost)
    assert broker.process.stop() == 0

    folders[1].unlink()
    shutil.move(folders[1].with_name("unplugged"), folders[1])
    broker.start()
    with Connection(broker.address) as connection:
        for partition in range(PARTITIONS):
            assert values_of(connection, "t", partition)[0] == b"in %d" % partition


def test_a_directory_that_fails_under_load_does_not_affect_other_directories(
    several: tuple[KafkaCompatBroker, list[Path]],
) -> None:
    broker, folders = several
    lost = _partitions_in(folders[2])
    shutil.rmtree(folders[2])
    folders[2].write_text("not a folder")
    with Connection(broker.address) as connection:
        # The broker notices the failure when it cannot create a new segment.
        create_topic(connection, "noticed", 3, {"segment.bytes": "100"})
        errors = {produce(connection, "noticed", [b"x" * 20], partition=p).error for p in range(3)}
        assert errors <= {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
        for partition in lost:
            fetch(connection, "t", partition=partition)
        _check_all_but(connection, lost)


def _check_all_but(connection: Connection, lost: list[int]) -> None:
    for partition in range(PARTITIONS):
        if partition in lost:
            assert fetch(connection, "t", partition=partition).error == ErrorCode.KAFKA_STORAGE_ERROR
            refused = produce(connection, "t", [b"x"], partition=partition)
            assert refused.error == ErrorCode.KAFKA_STORAGE_ERROR
        else:
            assert values_of(connection, "t", partition)[0] == b"in %d" % partition
            assert produce(connection, "t", [b"more"], partition=partition).error == ErrorCode.NONE


UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
"""Runs the broker as root, but without permission to write where file permissions forbid it."""


def _make_unusable(path: Path, kind: str) -> str:
    """Make `path` unusable, and return the reason that the broker reports."""
    if kind == "a file":
        path.write_text("x")
        return f"{path} is not a directory"
    if kind == "below a file":
        path.parent.write_text("x")
        return f"{path.parent} is not a directory"
    if kind == "a dangling link":
        path.symlink_to(path.with_name("unplugged"))
        return f"{path} is a symbolic link to {path.with_name('unplugged')}, which does not exist"
    if kind == "no permission":
        path.mkdir()
        path.chmod(0o500)
        return f"user {os.geteuid()} cannot read and write in {path}"
    path.parent.mkdir()
    path.parent.chmod(0o500)
    return f"user {os.geteuid()} cannot read and write in {path.parent}"


@pytest.mark.parametrize("first", [False, True], ids=["only directory", "first of two"])
@pytest.mark.parametrize(
    "kind", ["a file", "below a file", "a dangling link", "no permission", "no permission for the parent"]
)
def test_an_unusable_directory_is_reported_with_the_cause(tmp_path: Path, kind: str, first: bool) -> None:
    path = (
        tmp_path / "parent" / "data"
        if kind in ("below a file", "no permission for the parent")
        else tmp_path / "data"
    )
    reason = _make_unusable(path, kind)
    log_dirs = f"{path},{tmp_path / 'other'}" if first else str(path)
    settings = ["listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={log_dirs}"]
    line = [*UNPRIVILEGED, sys.executable, "-m", "kafka_compat", "serve"]
    line += [f"--override={setting}" for setting in settings]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, cwd=PROJECT)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert reason in done.stderr.splitlines()[-1]


def test_an_unusable_second_directory_is_reported_with_the_cause(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    reason = _make_unusable(tmp_path / "data", "a dangling link")
    broker = start_broker({"log.dirs": f"{tmp_path / 'other'},{tmp_path / 'data'}"})
    assert reason in broker.log.read_text()
    with Connection(broker.address) as connection:
        create_topic(connection, "t")
        assert produce(connection, "t", [b"x"]) == (ErrorCode.NONE, 0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB."""
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", path], capture_output=True)
    if mounted.returncode:
        pytest.skip("cannot mount a file system here")
    yield path
    subprocess.run(["umount", path], check=True)


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_a_disk_full_of_deleted_logs_does_not_prevent_startup(
    start_broker: StartBroker, small_disk: Path, kill: bool
) -> None:
    broker = start_broker({"log.dirs": str(small_disk / "logs"), "log.segment.delete.delay.ms": "600000"})
    with Connection(broker.address) as connection:
        create_topic(connection, "small")
        assert produce(connection, "small", [b"x"]).error == ErrorCode.NONE
        create_topic(connection, "large")
        while produce(connection, "large", [b"x" * 100_000]).error == ErrorCode.NONE:
            pass
        assert delete_topic(connection, "large") == ErrorCode.NONE
    with (small_disk / "fill").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))
    broker.restart(kill=kill)
    assert not list((small_disk / "logs").glob("*-delete"))
    with Connection(broker.address) as connection:
        assert values_of(connection, "small") == [b"x"]
        assert produce(connection, "small", [b"y"]) == (ErrorCode.NONE, 1)
    broker.stop()


def test_a_broker_exits_with_an_error_when_its_last_directory_fails(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Connection(broker.address) as connection:
        create_topic(connection, "t", 1)
        shutil.rmtree(broker.log_dir)
        broker.log_dir.write_text("not a folder")
        with contextlib.suppress(AssertionError, ProcessFailed, OSError):
            create_topic(connection, "u")
    assert broker.process.child.wait(10) == 1
