"""Attacks on a controller listener without security, with the requests of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from uuid import UUID

from kafka_compat.coordination.replicated_store.record_frames import frame
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.quorum.metadata_directory import OWN_LOG
from kafka_compat.quorum.metadata_partition import TOPIC, TOPIC_ID
from kafka_compat.storage.directories.directory_names import METADATA_LOG
from tests.conformance.wire import Plain
from tests.hostile.attacks import MANY, Attack, Strike, names, single
from tests.hostile.client import open_and_send, pour, request
from tests.support.ports import free_port
from tests.support.servers import KafkaCompatBroker


def quorum_of_one(directory: Path) -> tuple[KafkaCompatBroker, int]:
    """Return a broker that is the only voter of a quorum, and the port of its controller listener."""
    port = free_port()
    node = KafkaCompatBroker(directory)
    node.overrides |= {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{node.address},CONTROLLER://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{port}",
    }
    # With a metadata log, the only voter does not run as a standalone broker.
    own_log = node.log_dir / METADATA_LOG / OWN_LOG
    own_log.parent.mkdir(parents=True)
    own_log.touch()
    return node, port


def _partitions(count: int) -> list[Plain]:
    return [{"partition_index": index} for index in range(count)]


def _appending(records: Iterable[bytes]) -> Callable[[], Plain]:
    return lambda: {"leader_epoch": -1, "records": [memoryview(record) for record in records]}


def _fetch(replica_id: int, **partition: object) -> bytes:
    """Return a fetch of the metadata log that waits for a minute."""
    asked: Plain = {"partition": 0, "current_leader_epoch": 1, "last_fetched_epoch": 1, **partition}
    fields: Plain = {
        "replica_state": {"replica_id": replica_id},
        "max_wait_ms": 60_000,
        "max_bytes": 2**31 - 1,
        "topics": [{"topic_id": TOPIC_ID, "partitions": [asked]}],
    }
    return request(ApiKey.FETCH, 17, fields)


def _begin(leader_id: int) -> bytes:
    partition: Plain = {"partition_index": 0, "leader_id": leader_id, "leader_epoch": 0}
    fields: Plain = {
        "topics": [{"topic_name": TOPIC, "partitions": [partition]}],
        "leader_endpoints": [{"name": "CONTROLLER", "host": f"host-{leader_id}", "port": 9093}],
    }
    return request(ApiKey.BEGIN_QUORUM_EPOCH, 1, fields)


def _strangers_fetch(port: int) -> Strike:
    frame = _fetch(-1)
    return lambda: open_and_send(port, 1_000, frame)


def _replicas_fetch(port: int) -> Strike:
    frames = [_fetch(replica_id, fetch_offset=2**62) for replica_id in range(1_000, 11_000)]
    return lambda: pour(port, frames)


def _leaders_begin(port: int) -> Strike:
    frames = [_begin(leader_id) for leader_id in range(1_000, 21_000)]
    return lambda: pour(port, frames)


def _single(name: str, key: ApiKey, version: int, fields: Callable[[], Plain]) -> Attack:
    return single(name, key, version, fields, everyday=True)


QUORUM = (
    _single(
        "Vote for 100,000 partitions",
        ApiKey.VOTE,
        2,
        lambda: {"topics": [{"topic_name": TOPIC, "partitions": _partitions(MANY)}]},
    ),
    _single(
        "DescribeQuorum for 100,000 partitions",
        ApiKey.DESCRIBE_QUORUM,
        2,
        lambda: {"topics": [{"topic_name": TOPIC, "partitions": _partitions(MANY)}]},
    ),
    _single(
        "BeginQuorumEpoch with 100,000 addresses",
        ApiKey.BEGIN_QUORUM_EPOCH,
        1,
        lambda: {
            "topics": [{"topic_name": TOPIC, "partitions": _partitions(1)}],
            "leader_endpoints": [{"name": name, "host": "h", "port": 1} for name in names(MANY)],
        },
    ),
    _single(
        "EndQuorumEpoch with 100,000 candidates",
        ApiKey.END_QUORUM_EPOCH,
        1,
        lambda: {
            "topics": [
                {
                    "topic_name": TOPIC,
                    "partitions": [
                        {
                            "partition_index": 0,
                            "preferred_candidates": [
                                {"candidate_id": number, "candidate_directory_id": UUID(int=number)}
                                for number in range(MANY)
                            ],
                        }
                    ],
                }
            ]
        },
    ),
    _single(
        "FetchSnapshot for 100,000 topics",
        ApiKey.FETCH_SNAPSHOT,
        1,
        lambda: {"topics": [{"name": name, "partitions": [{"partition": 0}]} for name in names(MANY)]},
    ),
    _single(
        "AddRaftVoter with 100,000 listeners",
        ApiKey.ADD_RAFT_VOTER,
        0,
        lambda: {"listeners": [{"name": name, "host": "h", "port": 1} for name in names(MANY)]},
    ),
    _single(
        "AppendMetadataRecords with 100,000 malformed records",
        ApiKey.APPEND_METADATA_RECORDS,
        0,
        _appending([frame(1001, 0, b"[")] * MANY),
    ),
    _single(
        "AppendMetadataRecords with 60 MiB",
        ApiKey.APPEND_METADATA_RECORDS,
        0,
        _appending([bytes(60 * 1024 * 1024)]),
    ),
    _single(
        "AppendMetadataRecords with deeply nested JSON",
        ApiKey.APPEND_METADATA_RECORDS,
        0,
        _appending([frame(1001, 0, b"[" * 1_000_000)]),
    ),
    Attack("1,000 connections that fetch the metadata log", _strangers_fetch, is_flood=True, everyday=True),
    Attack("fetches of 10,000 replicas", _replicas_fetch, is_flood=True, everyday=True),
    Attack("20,000 leaders announce themselves", _leaders_begin, is_flood=True, everyday=True),
)
"""All attacks of this module. `prepare` receives the port of the controller listener."""
