"""Log directories of a quorum's node: ownership, formatting, and directories of Apache Kafka."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.coordination.raft.values import OffsetAndEpoch, ReplicaKey, Voter
from kafka_compat.coordination.replicated_store.record_frames import frame
from kafka_compat.protocol.messages import quorum_records
from kafka_compat.quorum.checkpoints import Checkpoints
from kafka_compat.quorum.control_records import control_batch
from kafka_compat.quorum.metadata_directory import (
    OWN_LOG,
    check_directories,
    new_directory_id,
    prepare,
    read_properties,
    write_bootstrap,
    write_properties,
)
from kafka_compat.quorum.metadata_log import MetadataLog
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.checkpoints import encode_topic_id
from kafka_compat.storage.directories.log_dirs import LogDirs
from kafka_compat.storage.errors import InconsistentMetaProperties
from kafka_compat.storage.records.records import Record, build_batch
from tests.storage.log_support import Clock

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
LOG = "__cluster_metadata-0"
BOOTSTRAP = "00000000000000000000-0000000000.checkpoint"


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [str(tmp_path / name) for name in ("a", "b")]


def check(paths: list[str], node_id: int = 1, cluster_id: str | None = CLUSTER) -> dict[str, UUID]:
    """Check the directories, and format those that are new."""
    found = check_directories(paths, paths[0], node_id, cluster_id)
    assert found.cluster_id is not None
    return prepare(found, node_id, found.cluster_id)


def broker_logs(paths: list[str]) -> LogDirs:
    """Open the logs of a broker in the directories, as a broker with ZooKeeper does."""
    dirs = LogDirs(paths, broker_id=1, cluster_id=CLUSTER, clock=Clock(), config_for=lambda _: LogConfig())
    dirs.load()
    return dirs


def files_in(folder: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_new_directories_are_formatted_and_keep_their_ids(paths: list[str]) -> None:
    ids = check(paths)
    assert len({*ids.values()}) == 2
    properties = read_properties(paths[1])
    assert properties == (1, 1, CLUSTER, ids[paths[1]])
    assert check(paths) == ids
    assert check(paths, cluster_id=None) == ids


def test_the_cluster_id_may_be_unknown_before_the_first_start(paths: list[str]) -> None:
    found = check_directories(paths, paths[0], 1, None)
    assert (found.cluster_id, found.unformatted) == (None, paths)
    assert not Path(paths[0]).exists()


def test_a_directory_of_another_owner_is_refused_before_anything_changes(paths: list[str]) -> None:
    write_properties(paths[1], 1, CLUSTER)
    for node_id, cluster_id, text in [(2, CLUSTER, "node.id=1"), (1, "other", f"the cluster {CLUSTER}")]:
        with pytest.raises(InconsistentMetaProperties, match=text):
            check(paths, node_id, cluster_id)
    assert not Path(paths[0]).exists()


def test_directories_of_a_broker_with_zookeeper_keep_their_version(paths: list[str]) -> None:
    for path in paths:
        Path(path).mkdir()
        (Path(path) / "meta.properties").write_text(f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n")
        (Path(path) / "topic-0").mkdir()
    ids = check(paths)
    assert read_properties(paths[0]) == (0, 1, CLUSTER, ids[paths[0]])
    # The broker can return to ZooKeeper: its own check accepts the file.
    dirs = LogDirs(
        paths[1:], broker_id=1, cluster_id=CLUSTER, clock=Clock(), config_for=lambda _: LogConfig()
    )
    dirs.load()
    dirs.close()


def test_the_metadata_log_is_not_a_partition_of_the_broker(paths: list[str]) -> None:
    check(paths)
    MetadataLog.open(paths[0], Clock()).close()
    dirs = broker_logs(paths)
    assert dirs.logs == {}
    dirs.close()
    assert (Path(paths[0]) / LOG / OWN_LOG).exists()


@pytest.mark.parametrize("version", ["2", "x"])
def test_an_unknown_version_is_refused(paths: list[str], version: str) -> None:
    Path(paths[0]).mkdir()
    (Path(paths[0]) / "meta.properties").write_text(f"version={version}\nnode.id=1\n")
    with pytest.raises(InconsistentMetaProperties, match="version="):
        check(paths)


def test_directory_ids_are_neither_reserved_nor_mistaken_for_flags() -> None:
    for _ in range(500):
        assert not encode_topic_id(new_directory_id()).startswith("-")


# --- directories of Apache Kafka


def kafkas_directory(path: str, *records: bytes, names: tuple[str, ...] = ()) -> None:
    """Create a directory as Kafka's kafka-storage formats it, and then files with these names."""
    write_properties(path, 1, CLUSTER)
    log = Path(path) / LOG
    log.mkdir()
    header, footer = quorum_records.SnapshotHeaderRecord(), quorum_records.SnapshotFooterRecord()
    values = [Record(timestamp=0, value=value) for value in records]
    (log / BOOTSTRAP).write_bytes(
        control_batch([header], base_offset=0, epoch=0, timestamp_ms=0)
        + build_batch(values, base_offset=1, leader_epoch=0)
        + control_batch([footer], base_offset=1 + len(values), epoch=0, timestamp_ms=0)
    )
    for name in names:
        (log / name).write_bytes(b"")


FEATURE_LEVEL = frame(12, 0, b"\x11metadata.version\x00\x21\x00")


def test_a_directory_that_kafka_only_formatted_is_accepted(paths: list[str]) -> None:
    kafkas_directory(paths[0], FEATURE_LEVEL)
    ids = check(paths)
    log = MetadataLog.open(paths[0], Clock())
    assert log.found().snapshot == OffsetAndEpoch(0, 0)
    log.append_records(0, 1, [frame(1000, 0, b"")])
    log.close()
    assert check(paths) == ids
    assert MetadataLog.open(paths[0], Clock()).end_offset == 1


@pytest.mark.parametrize(
    "names",
    [
        ("00000000000000000000.log",),
        ("quorum-state",),
        ("00000000000000000050-0000000003.checkpoint",),
    ],
)
def test_a_directory_that_kafka_has_used_is_refused_and_left_untouched(
    paths: list[str], names: tuple[str, ...]
) -> None:
    kafkas_directory(paths[0], FEATURE_LEVEL, names=names)
    before = files_in(paths[0])
    with pytest.raises(InconsistentMetaProperties, match=f"a Kafka in KRaft mode.*{names[0]}"):
        check(paths)
    with pytest.raises(InconsistentMetaProperties, match=r"choose another metadata\.log\.dir"):
        MetadataLog.open(paths[0], Clock())
    assert files_in(paths[0]) == before
    assert not Path(paths[1]).exists()


def test_users_that_kafka_formatted_are_not_ignored(paths: list[str]) -> None:
    kafkas_directory(paths[0], FEATURE_LEVEL, frame(11, 0, b"user"))
    with pytest.raises(InconsistentMetaProperties, match=r"types \[11, 12\]"):
        check(paths)


def test_partitions_without_a_metadata_log_are_refused_until_the_operator_says_that_they_are_ours(
    paths: list[str],
) -> None:
    write_properties(paths[1], 1, CLUSTER)
    (Path(paths[1]) / "orders-0").mkdir()
    with pytest.raises(InconsistentMetaProperties, match="contains no metadata log: it was") as refused:
        check(paths)
    mark = Path(paths[0]) / LOG / OWN_LOG
    assert f"create the empty file {mark}" in str(refused.value)
    mark.parent.mkdir(parents=True)
    mark.touch()
    assert check(paths).keys() == {*paths}


def test_our_log_with_kafkas_records_is_ours(paths: list[str]) -> None:
    """A voter of ours may have followed a leader of Apache Kafka."""
    ids = check(paths)
    log = MetadataLog.open(paths[0], Clock())
    log.append_records(0, 1, [frame(20, 0, b"\0")])
    log.close()
    (Path(paths[0]) / "orders-0").mkdir()
    assert check(paths) == ids


def test_the_first_voters_are_written_to_the_bootstrap_snapshot(paths: list[str]) -> None:
    Path(paths[0]).mkdir()
    voters = {1: Voter(ReplicaKey(1, new_directory_id()), {"CONTROLLER": ("127.0.0.1", 9093)})}
    write_bootstrap(paths[0], voters, 0)
    checkpoints = Checkpoints(f"{paths[0]}/{LOG}", lambda: 0)
    assert checkpoints.voters(OffsetAndEpoch(0, 0)) == voters
    assert MetadataLog.open(paths[0], Clock()).found().voter_sets == ((-1, voters),)
