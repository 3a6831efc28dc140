"""The folders of log.dirs: one broker's own, several at once, and one that fails."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from tests.conformance.wire import Connection
from tests.conftest import StartBroker
from tests.restart.client import create_topic, fetch, produce, values_of
from tests.support.process import ProcessFailed
from tests.support.servers import KafkaCompatBroker, run_kafka_compat

PARTITIONS = 6


def _snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with the time of its last change and its content."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def _serve(log_dir: Path, *overrides: str) -> tuple[int, str]:
    """Exit code and message of a broker that is not to start on this folder."""
    settings = ["listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={log_dir}", *overrides]
    done = run_kafka_compat("serve", *(f"--override={setting}" for setting in settings))
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_a_second_broker_on_the_folder_is_refused_and_touches_nothing(broker: KafkaCompatBroker) -> None:
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


def test_a_broker_with_another_id_is_refused_and_touches_nothing(broker: KafkaCompatBroker) -> None:
    assert broker.process.stop() == 0
    before = _snapshot(broker.log_dir)
    code, message = _serve(broker.log_dir, "broker.id=2")
    assert code == 2
    assert "broker.id=1" in message and "broker.id=2" in message
    assert _snapshot(broker.log_dir) == before


def test_a_folder_of_kafka_in_kraft_mode_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "kraft"
    (folder / "__cluster_metadata-0").mkdir(parents=True)
    (folder / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n")
    code, message = _serve(folder)
    assert code == 2
    assert "KRaft" in message
    assert {path.name for path in folder.iterdir()} <= {"__cluster_metadata-0", "meta.properties", ".lock"}


def test_a_port_in_use_is_refused_and_touches_nothing(broker: KafkaCompatBroker, tmp_path: Path) -> None:
    code, message = _serve(tmp_path / "other", f"listeners=PLAINTEXT://{broker.address}")
    assert code == 2
    assert broker.address in message
    assert not (tmp_path / "other").exists()


@pytest.fixture
def several(start_broker: StartBroker, tmp_path: Path) -> tuple[KafkaCompatBroker, list[Path]]:
    """A broker with three folders and a topic whose partitions lie in all of them."""
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
def test_partitions_are_spread_over_the_folders_and_found_again(
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


def test_a_folder_that_fails_at_the_start_leaves_the_others_working(
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
        # New topics go to the disks that work.
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


def test_a_folder_that_fails_under_load_leaves_the_others_working(
    several: tuple[KafkaCompatBroker, list[Path]],
) -> None:
    broker, folders = several
    lost = _partitions_in(folders[2])
    shutil.rmtree(folders[2])
    folders[2].write_text("not a folder")
    with Connection(broker.address) as connection:
        # A new segment cannot be made there: that is when the broker notices.
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


def test_no_usable_folder_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    code, message = _serve(tmp_path / "file")
    assert code == 2
    assert str(tmp_path / "file") in message.splitlines()[-1]


def test_a_broker_ends_with_an_error_when_its_last_folder_fails(start_broker: StartBroker) -> None:
    broker = start_broker()
    with Connection(broker.address) as connection:
        create_topic(connection, "t", 1)
        shutil.rmtree(broker.log_dir)
        broker.log_dir.write_text("not a folder")
        with contextlib.suppress(AssertionError, ProcessFailed, OSError):
            create_topic(connection, "u")
    assert broker.process.child.wait(10) == 1
