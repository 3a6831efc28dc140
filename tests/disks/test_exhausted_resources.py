"""Requests that fail for lack of disk space or file descriptors: they return retriable errors, and no
directory goes offline.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.disks.full_disk import FullDisk
from tests.disks.requests import NONE, STORAGE_ERROR, Asking
from tests.disks.strace import failing
from tests.support.servers import KafkaCompatBroker


@pytest.fixture
def disk(tmp_path: Path) -> FullDisk:
    return FullDisk(tmp_path / "full-disk")


@pytest.fixture
def asking(tmp_path: Path, disk: FullDisk) -> Iterator[Asking]:
    settings = {"auto.create.topics.enable": "false"}
    broker = KafkaCompatBroker(tmp_path / "broker", settings, environment=disk.environment)
    broker.start()
    asking = Asking(broker)
    yield asking
    asking.connection.close()
    broker.stop()


def test_new_topics_and_segments_fail_while_descriptors_are_exhausted(asking: Asking) -> None:
    assert asking.create("t", segment_bytes="1000")[0] == NONE
    assert asking.produce("t") == NONE
    # Send this request once before the fault, so that the code that handles it is loaded.
    assert asking.directory_errors() == [NONE]
    with failing(asking.broker.pid, ["openat"], "EMFILE"):
        codes = {asking.produce("t") for _ in range(100)}
        assert STORAGE_ERROR in codes
        assert codes <= {NONE, STORAGE_ERROR}
        code, message = asking.create("u")
        assert code == STORAGE_ERROR
        assert "ulimit -n" in message
        assert asking.directory_errors() == [NONE]
    assert asking.produce("t") == NONE
    assert asking.create("u") == (NONE, "")
    assert asking.produce("u") == NONE
    log = asking.broker.log.read_text()
    assert "offline" not in log
    assert "Traceback" not in log
    assert log.count("ulimit -n") < 10


def test_delete_records_fails_on_a_full_disk(asking: Asking, disk: FullDisk) -> None:
    assert asking.create("t")[0] == NONE
    assert asking.produce("t") == NONE
    with disk.full():
        assert asking.delete_records("t", 7) == STORAGE_ERROR
    assert asking.delete_records("t", 7) == NONE
    asking.restart()
    assert asking.start_offset("t") == 7
