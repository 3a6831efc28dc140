"""kafka-compat migrate check: log directories, which belong to a stopped or a running broker."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.migration.directories_check import check_directories
from kafka_compat.migration.findings import Finding, Level
from kafka_compat.storage.directories import checkpoints
from kafka_compat.storage.filesystem import RealFilesystem

TOPIC_ID = UUID(int=5)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A log directory as Kafka leaves it after a clean shutdown."""
    path = tmp_path / "logs"
    (path / "orders-0").mkdir(parents=True)
    (path / "orders-0" / checkpoints.PARTITION_METADATA).write_bytes(
        checkpoints.encode_partition_metadata(TOPIC_ID)
    )
    properties = {"version": "0", "broker.id": "1", "cluster.id": "abc"}
    (path / checkpoints.META_PROPERTIES).write_bytes(checkpoints.encode_properties(properties))
    for name in checkpoints.OFFSETS:
        (path / name).write_bytes(checkpoints.encode_offsets({("orders", 0): 7}))
    (path / checkpoints.CLEAN_SHUTDOWN).write_bytes(checkpoints.encode_clean_shutdown())
    return path


def _of(level: Level, *paths: Path, broker: int | None = 1) -> list[Finding]:
    found = check_directories([str(path) for path in paths], broker).findings
    return [each for each in found if each.level is level]


def test_nothing_stands_in_the_way_of_a_cleanly_stopped_broker(directory: Path) -> None:
    checked = check_directories([str(directory)], None)
    assert [(each.broker, each.text) for each in checked.findings] == [(1, f"{directory}: 1 partitions")]
    assert (checked.broker_id, checked.cluster_id, checked.topic_ids) == (1, "abc", {"orders": TOPIC_ID})


def _kraft(path: Path) -> None:
    (path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abc\n")


def _migrated(path: Path) -> None:
    (path / "__cluster_metadata-0").mkdir()


def _torn_properties(path: Path) -> None:
    (path / "meta.properties").write_text("broker.id\n")


def _torn_checkpoint(path: Path) -> None:
    (path / "replication-offset-checkpoint").write_text("0\n2\norders 0 7\n")


def _torn_metadata(path: Path) -> None:
    (path / "orders-0" / "partition.metadata").write_text("version: 0\n")


def _of_another_broker(path: Path) -> None:
    (path / "meta.properties").write_text("version=0\nbroker.id=2\ncluster.id=abc\n")


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (_kraft, "meta.properties has version=1: a node in KRaft mode"),
        (_migrated, "__cluster_metadata-0: the metadata log of a node in KRaft mode"),
        (_torn_properties, "meta.properties, line 1 is not name=value"),
        (_torn_checkpoint, "replication-offset-checkpoint: offset checkpoint announces 2 entries but has 1"),
        (_torn_metadata, "partition.metadata: malformed partition.metadata"),
        (_of_another_broker, "meta.properties has broker.id=2, but the settings have broker.id=1"),
    ],
)
def test_a_directory_that_cannot_be_taken_over_is_reported(
    directory: Path, damage: Callable[[Path], None], text: str
) -> None:
    damage(directory)
    (finding,) = _of(Level.CHANGE, directory)
    assert text in finding.text
    assert finding.remedy


def test_directories_of_different_clusters_are_reported(directory: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(directory, other)
    (other / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=xyz\n")
    (finding,) = _of(Level.CHANGE, directory, other)
    assert finding.text == f"cluster.id differs: abc in {directory}, xyz in {other}"


def test_a_failed_disk_is_told_from_directories_of_another_machine(directory: Path, tmp_path: Path) -> None:
    absent = tmp_path / "disk2"
    (finding,) = _of(Level.CHANGE, directory, absent)
    assert finding.text == f"{absent}: the directory is missing, the other log.dirs exist"
    (finding,) = _of(Level.UNCHECKED, absent)
    assert "not on this machine" in finding.text


def test_a_killed_broker_and_a_running_one_are_told_apart(directory: Path) -> None:
    (directory / checkpoints.CLEAN_SHUTDOWN).unlink()
    (finding,) = _of(Level.DIFFERS, directory)
    assert "the broker was killed" in finding.text
    lock = RealFilesystem().lock(str(directory / checkpoints.LOCK))
    assert lock is not None
    try:
        assert not _of(Level.DIFFERS, directory)
        assert f"{directory} is in use" in _of(Level.INFO, directory)[-1].text
    finally:
        lock.release()


def test_moves_and_leftovers_are_reported(directory: Path) -> None:
    for name in ("orders-1.0123-future", "old-0.0123-delete", "old-1.0123-stray", "backup"):
        (directory / name).mkdir()
    moving, leftover, other = _of(Level.DIFFERS, directory)
    assert moving.text.endswith("orders-1.0123-future")
    assert leftover.text.endswith("old-0.0123-delete, old-1.0123-stray")
    assert other.text.endswith("backup")
