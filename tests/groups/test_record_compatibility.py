"""Compatibility of group records: Apache Kafka 3.9.1 reads ours, and we read Kafka's."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from kafka_compat.coordinator_runtime.partitioning import shard_of
from tests.groups.peer import TOPIC, Peer, prepare
from tests.support import java
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

GROUP = "exchange"
PARTITION = f"__consumer_offsets-{shard_of(GROUP, 50)}"
STATIC: Any = {"group_instance_id": "one", "session_timeout_ms": 300_000}


def write_group(server: Server) -> tuple[Any, Any]:
    """Create a stable group with a static member and offsets, and return the responses of DescribeGroups and
    OffsetFetch.
    """
    peer = Peer(server)
    prepare(peer)
    joined = peer.member(GROUP, **STATIC)
    membership = {"member_id": joined["member_id"], "generation_id_or_member_epoch": joined["generation_id"]}
    offsets = {
        (TOPIC, 0): {"committed_offset": 1 << 40, "committed_metadata": "näher", "committed_leader_epoch": 3},
        (TOPIC, 1): 17,
        (TOPIC, 2): 18,
    }
    peer.commit(8, GROUP, offsets, **membership, group_instance_id="one")
    # One offset has an explicit expiry, which uses a different version of the record.
    peer.commit(4, GROUP, {(TOPIC, 2): 19}, **membership, retention_time_ms=10_000_000)
    told = read_group(peer)
    peer.close()
    return told


def read_group(peer: Peer) -> tuple[Any, Any]:
    return peer.describe(5, GROUP)["groups"], peer.fetch(7, GROUP, [0, 1, 2])["topics"]


def move_log(source: Path, target: Path) -> None:
    """Move the log of the group's partition to the other broker's directory."""
    for file in (target / PARTITION).glob("0*"):
        file.unlink()
    for file in (source / PARTITION).glob("0*.log"):
        shutil.copy(file, target / PARTITION)


def test_group_records_are_interchangeable_with_apache_kafka(tmp_path: Path) -> None:
    ours = KafkaCompatBroker(tmp_path / "ours")
    genuine = GenuineKafka(tmp_path / "genuine")
    ours.start()
    genuine.start()
    ours_told, genuine_told = write_group(ours), write_group(genuine)
    ours.process.stop()
    genuine.process.stop()

    segment = next((ours.log_dir / PARTITION).glob("*.log"))
    dump = java.run("kafka-dump-log", "--offsets-decoder", "--files", str(segment)).stdout
    assert "isvalid: true" in dump and "isvalid: false" not in dump
    assert '"groupInstanceId":"one"' in dump
    assert "näher" in dump

    kept = tmp_path / "kept"
    shutil.copytree(ours.log_dir / PARTITION, kept / PARTITION)
    move_log(genuine.log_dir, ours.log_dir)
    move_log(kept, genuine.log_dir)
    for server, told in ((ours, genuine_told), (genuine, ours_told)):
        server.start()
        peer = Peer(server)
        prepare(peer)
        assert read_group(peer) == told, server.name
        peer.close()
        server.stop()
