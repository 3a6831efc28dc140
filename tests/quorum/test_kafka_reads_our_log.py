"""Kafka's log dump reads our metadata log and snapshots, and our code reads a genuine log."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from kafka_compat.coordination.raft.effects import AppendLeaderChange, AppendVoters
from kafka_compat.coordination.raft.values import OffsetAndEpoch, ReplicaKey, Voter
from kafka_compat.coordination.replicated_store.record_frames import frame
from kafka_compat.quorum.checkpoints import Checkpoints
from kafka_compat.quorum.election_file import ElectionFile
from kafka_compat.quorum.metadata_directory import OWN_LOG, check_directories
from kafka_compat.quorum.metadata_log import MetadataLog
from kafka_compat.storage.errors import InconsistentMetaProperties
from tests.storage.log_support import Clock
from tests.support import campaign, java
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.servers import GenuineKafka

pytestmark = [
    pytest.mark.skipif(not campaign.enabled(), reason="starts Apache Kafka: --campaign"),
    pytest.mark.timeout(300),
]

VOTERS = {
    node_id: Voter(ReplicaKey(node_id, UUID(int=node_id << 100)), {"CONTROLLER": ("127.0.0.1", 9093)})
    for node_id in (1, 2)
}
NO_OP = frame(20, 0, b"\0")


def dumped(path: str) -> str:
    return java.run(
        "kafka-dump-log", "--cluster-metadata-decoder", "--files", path, version=NEWEST_VERSION
    ).stdout


def test_kafkas_log_dump_reads_our_log_and_snapshots(tmp_path: Path) -> None:
    log = MetadataLog.open(str(tmp_path), Clock())
    keys = tuple(voter.key for voter in VOTERS.values())
    log.append_leader_change(AppendLeaderChange(0, 3, 1, keys, keys[:1]))
    log.append_voters(AppendVoters(1, 3, VOTERS))
    log.append_records(2, 3, [NO_OP, NO_OP])
    log.append_records(4, 3, [frame(1000, 0, b'["ours"]')])
    snapshot = OffsetAndEpoch(4, 3)
    with log.checkpoints.write(snapshot, voters=VOTERS) as writing:
        writing.add(NO_OP)
        writing.complete()
    log.close()
    text = dumped(f"{log.directory}/00000000000000000000.log")
    assert "LeaderChange" in text and '"leaderId":1' in text
    assert "KRaftVoters" in text and '"host":"127.0.0.1"' in text
    assert text.count('payload: {"type":"NO_OP_RECORD"') == 2
    assert re.search(r"offset: 4 .*(?i:unknown|could not)", text), text
    assert text.count("isvalid: true") == 4
    text = dumped(log.checkpoints.path(snapshot))
    for name in ("SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter", "NO_OP_RECORD"):
        assert name in text, text


def test_our_code_reads_a_log_that_kafka_wrote(tmp_path: Path) -> None:
    kafka = GenuineKafka(tmp_path / "kafka", version=NEWEST_VERSION, mode="kraft")
    kafka.start(120)
    kafka.stop()
    directory = str(kafka.log_dir)
    with pytest.raises(InconsistentMetaProperties, match="belongs to a Kafka in KRaft mode"):
        check_directories([directory], directory, 1, None)
    # Pretend that the log is ours, in a copy.
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    (copy / "__cluster_metadata-0" / OWN_LOG).touch()
    log = MetadataLog.open(str(copy), Clock())
    found = log.found()
    state = ElectionFile(log.directory, None).load()
    assert state.epoch >= found.epochs[-1][0] >= 1
    batches = list(log.committed(0, 100_000, log.end_offset))
    assert batches[-1].end_offset == found.end_offset > 0
    records = [record for batch in batches for record in batch.records]
    # The registration of the broker, and NoOps.
    assert {27, 20} & {record.type for record in records}
    part = log.read(0, log.end_offset, 1 << 30)
    assert part is not None
    data = part.read()
    other = MetadataLog.open(str(tmp_path), Clock())
    assert other.read_fetched(data).data == data
    other.append_fetched(data)
    assert other.found().epochs == found.epochs
    for snapshot in Checkpoints(log.directory, lambda: 0).all:
        log.checkpoints.check(snapshot)
        assert list(log.checkpoints.records(snapshot))
