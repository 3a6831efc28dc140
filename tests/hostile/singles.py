"""Attacks that consist of one request each."""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Callable
from typing import Any

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Record, build_batch
from tests.conformance.wire import Plain
from tests.hostile.attacks import (
    MANY,
    MIB,
    Attack,
    Strike,
    fetch_frame,
    filled_topic,
    framed,
    fresh,
    header,
    make_topic,
    names,
    produce_frame,
    single,
    small_records,
)
from tests.hostile.client import ask, request


def _by_topic(
    items: str, partitions: str, one: Callable[[int], Any], count: int = MANY
) -> Callable[[], Plain]:
    """Return `count` partitions of one topic, in fields with the given names."""
    return lambda: {items: [{"name": "absent", partitions: [one(number) for number in range(count)]}]}


def bomb(size_bytes: int) -> bytes:
    """Return a batch with one record of zeros, which gzip compresses about a thousandfold."""
    return build_batch(
        [Record(timestamp=1_790_000_000_000, value=bytes(size_bytes))], compression=CompressionType.GZIP
    )


def _one_frame(name: str, frame: Callable[[], bytes]) -> Attack:
    def prepare(port: int) -> Strike:
        data = frame()
        return lambda: ask(port, data)

    return Attack(name, prepare)


def _by_timestamp(partitions: int, repeats: int) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        topic = filled_topic(port, partitions, small_records(150_000))
        wanted = [
            {"partition_index": index, "timestamp": 1_790_000_149_000 - number}
            for index in range(partitions)
            for number in range(repeats)
        ]
        frame = request(ApiKey.LIST_OFFSETS, 5, {"topics": [{"name": topic, "partitions": wanted}]})
        return lambda: ask(port, frame)

    return prepare


def _same_partition_often(port: int) -> Strike:
    topic = filled_topic(
        port, 1, build_batch([Record(timestamp=1_790_000_000_000, value=os.urandom(900_000))])
    )
    frame = fetch_frame(11, [(topic, 0)] * MANY, MIB)
    return lambda: ask(port, frame)


def _created_and_deleted(port: int) -> Strike:
    topics = names(900, fresh("bulk"))
    wanted = [{"name": name, "num_partitions": 10, "replication_factor": 1} for name in topics]
    create = request(ApiKey.CREATE_TOPICS, 5, {"topics": wanted, "timeout_ms": 60_000})
    delete = request(ApiKey.DELETE_TOPICS, 3, {"topic_names": topics, "timeout_ms": 60_000})

    def strike() -> None:
        ask(port, create)
        ask(port, delete)

    return strike


def _grown(port: int) -> Strike:
    topic = fresh("grown")
    make_topic(port, topic)
    wanted = {"name": topic, "count": 5000, "assignments": None}
    frame = request(ApiKey.CREATE_PARTITIONS, 1, {"topics": [wanted], "timeout_ms": 60_000})
    return lambda: ask(port, frame)


def _bombs(count: int, size_bytes: int) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        topic = fresh("bombs")
        make_topic(port, topic, count)
        frame = produce_frame(topic, [(index, bomb(size_bytes)) for index in range(count)])
        return lambda: ask(port, frame)

    return prepare


def _produced(name: str, batch: Callable[[], bytes], everyday: bool = False) -> Attack:
    def prepare(port: int) -> Strike:
        topic = fresh("produced")
        make_topic(port, topic, 1, max_message_bytes="100000000")
        frame = produce_frame(topic, [(0, batch())])
        return lambda: ask(port, frame)

    return Attack(name, prepare, everyday=everyday)


def _wrong_count() -> bytes:
    batch = bytearray(small_records(10, CompressionType.NONE))
    struct.pack_into(">i", batch, 57, 2**31 - 1)
    return bytes(batch)


def _nested_gzip() -> bytes:
    """Return a batch whose records are compressed with gzip many times over."""
    batch = bytearray(small_records(10))
    data = bytes(MIB)
    for _ in range(20):
        data = gzip.compress(data)
    whole = bytes(batch[:61]) + data
    return struct.pack(">qi", 0, len(whole) - 12) + whole[12:]


def _large_assignment(port: int) -> Strike:
    group = fresh("large")
    joined = {
        "group_id": group,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": memoryview(bytes(60 * MIB))}],
    }
    frame = request(ApiKey.JOIN_GROUP, 3, joined)
    return lambda: ask(port, frame)


def _resource(number: int) -> Plain:
    return {"resource_type": 2, "resource_name": f"absent-{number}", "configuration_keys": None}


SINGLES = (
    single(
        "Metadata for 100,000 unknown names",
        ApiKey.METADATA,
        5,
        lambda: {"topics": [{"name": name} for name in names(MANY)], "allow_auto_topic_creation": False},
        everyday=True,
    ),
    single(
        "Metadata that would create 1,000 topics",
        ApiKey.METADATA,
        5,
        lambda: {"topics": [{"name": name} for name in names(1000, fresh("auto"))]},
        everyday=True,
        leaves_work=True,
    ),
    single(
        "Metadata that would create 30,000 topics",
        ApiKey.METADATA,
        5,
        lambda: {"topics": [{"name": name} for name in names(30_000, fresh("auto"))]},
        leaves_work=True,
    ),
    single(
        "ListOffsets for 100,000 unknown partitions",
        ApiKey.LIST_OFFSETS,
        5,
        _by_topic("topics", "partitions", lambda n: {"partition_index": n, "timestamp": -1}),
    ),
    single(
        "Fetch of 100,000 unknown partitions",
        ApiKey.FETCH,
        11,
        lambda: {
            "max_bytes": MIB,
            "topics": [{"topic": "absent", "partitions": [{"partition": n} for n in range(MANY)]}],
        },
        everyday=True,
    ),
    single(
        "Fetch with 100,000 forgotten topics",
        ApiKey.FETCH,
        11,
        lambda: {
            "max_bytes": MIB,
            "forgotten_topics_data": [{"topic": name, "partitions": [0]} for name in names(MANY)],
        },
    ),
    Attack("Fetch that lists one partition 100,000 times", _same_partition_often, everyday=True),
    Attack("ListOffsets by timestamp, 5 partitions of 150,000 records", _by_timestamp(5, 1), everyday=True),
    Attack("ListOffsets by timestamp, 200 partitions of 150,000 records", _by_timestamp(200, 1)),
    Attack("ListOffsets by timestamp that lists one partition 1,000 times", _by_timestamp(1, 1000)),
    Attack("CreateTopics of 9,000 partitions, then DeleteTopics", _created_and_deleted, leaves_work=True),
    Attack("CreatePartitions to 5,000", _grown, leaves_work=True),
    single(
        "CreateTopics of a partition with 100,000 replicas",
        ApiKey.CREATE_TOPICS,
        5,
        lambda: {
            "timeout_ms": 1000,
            "topics": [
                {
                    "name": fresh("replicas"),
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "assignments": [{"partition_index": 0, "broker_ids": list(range(MANY))}],
                }
            ],
        },
        leaves_work=True,
    ),
    single(
        "CreateTopics with 100,000 settings",
        ApiKey.CREATE_TOPICS,
        5,
        lambda: {
            "timeout_ms": 1000,
            "topics": [
                {
                    "name": fresh("settings"),
                    "num_partitions": 1,
                    "replication_factor": 1,
                    "configs": [{"name": f"setting.{n}", "value": "1"} for n in range(MANY)],
                }
            ],
        },
        leaves_work=True,
    ),
    single(
        "CreateTopics that lists one name 100,000 times",
        ApiKey.CREATE_TOPICS,
        5,
        lambda: {
            "timeout_ms": 1000,
            "topics": [{"name": "twice", "num_partitions": 1, "replication_factor": 1} for _ in range(MANY)],
        },
        leaves_work=True,
    ),
    single(
        "DeleteTopics for 100,000 unknown names",
        ApiKey.DELETE_TOPICS,
        3,
        lambda: {"topic_names": names(MANY), "timeout_ms": 1000},
    ),
    Attack("Produce of 300 gzip bombs of 900 KB", _bombs(300, 900_000), everyday=True),
    Attack("Produce of a gzip bomb of 200 MB", _bombs(1, 200_000_000)),
    _produced("Produce of 150,000 records in a gzip batch", lambda: small_records(150_000), everyday=True),
    _produced("Produce of 1,000,000 records in a gzip batch", lambda: small_records(1_000_000)),
    _produced(
        "Produce of 500,000 records without compression", lambda: small_records(500_000, CompressionType.NONE)
    ),
    _produced("Produce of a batch that declares 2,147,483,647 records", _wrong_count),
    _produced("Produce of triply nested gzip", _nested_gzip),
    _produced("Produce of 50 MB of random bytes", lambda: os.urandom(50 * MIB)),
    _one_frame(
        "Produce to 100,000 unknown partitions",
        lambda: produce_frame("absent", [(n, b"") for n in range(MANY)]),
    ),
    single(
        "OffsetFetch for 100,000 partitions",
        ApiKey.OFFSET_FETCH,
        5,
        lambda: {"group_id": "g", "topics": [{"name": "absent", "partition_indexes": list(range(MANY))}]},
    ),
    single(
        "OffsetCommit for 100,000 partitions",
        ApiKey.OFFSET_COMMIT,
        5,
        lambda: {
            "group_id": "g",
            "topics": [
                {
                    "name": "absent",
                    "partitions": [{"partition_index": n, "committed_offset": 1} for n in range(MANY)],
                }
            ],
        },
    ),
    single(
        "OffsetForLeaderEpoch for 100,000 partitions",
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        3,
        lambda: {
            "topics": [
                {"topic": "absent", "partitions": [{"partition": n, "leader_epoch": 0} for n in range(MANY)]}
            ]
        },
    ),
    single(
        "DeleteRecords for 100,000 partitions",
        ApiKey.DELETE_RECORDS,
        1,
        lambda: {
            "timeout_ms": 1000,
            "topics": [
                {"name": "absent", "partitions": [{"partition_index": n, "offset": 1} for n in range(MANY)]}
            ],
        },
    ),
    single("DescribeGroups for 100,000 groups", ApiKey.DESCRIBE_GROUPS, 4, lambda: {"groups": names(MANY)}),
    single("DeleteGroups for 100,000 groups", ApiKey.DELETE_GROUPS, 1, lambda: {"groups_names": names(MANY)}),
    single(
        "FindCoordinator for 100,000 groups",
        ApiKey.FIND_COORDINATOR,
        4,
        lambda: {"key_type": 0, "coordinator_keys": names(MANY)},
    ),
    single(
        "DescribeConfigs for 100,000 topics",
        ApiKey.DESCRIBE_CONFIGS,
        3,
        lambda: {"resources": [_resource(n) for n in range(MANY)]},
        everyday=True,
    ),
    single(
        "DescribeConfigs that lists this broker 2,000 times",
        ApiKey.DESCRIBE_CONFIGS,
        3,
        lambda: {
            "resources": [{"resource_type": 4, "resource_name": "1", "configuration_keys": None}] * 2000
        },
    ),
    single(
        "IncrementalAlterConfigs for 100,000 topics",
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        lambda: {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": f"absent-{n}",
                    "configs": [{"name": "retention.ms", "config_operation": 0, "value": "1"}],
                }
                for n in range(MANY)
            ]
        },
        leaves_work=True,
    ),
    single(
        "DescribeLogDirs for 100,000 partitions",
        ApiKey.DESCRIBE_LOG_DIRS,
        1,
        lambda: {"topics": [{"topic": "absent", "partitions": list(range(MANY))}]},
    ),
    single(
        "AlterReplicaLogDirs for 100,000 partitions",
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        1,
        lambda: {
            "dirs": [{"path": "/nowhere", "topics": [{"name": "absent", "partitions": list(range(MANY))}]}]
        },
    ),
    single(
        "ElectLeaders for 100,000 partitions",
        ApiKey.ELECT_LEADERS,
        1,
        lambda: {
            "timeout_ms": 1000,
            "topic_partitions": [{"topic": "absent", "partitions": list(range(MANY))}],
        },
    ),
    single(
        "AddPartitionsToTxn for 100,000 partitions",
        ApiKey.ADD_PARTITIONS_TO_TXN,
        2,
        lambda: {
            "v3_and_below_transactional_id": "t",
            "v3_and_below_topics": [{"name": "absent", "partitions": list(range(MANY))}],
        },
    ),
    single(
        "DescribeTransactions for 100,000 transactional IDs",
        ApiKey.DESCRIBE_TRANSACTIONS,
        0,
        lambda: {"transactional_ids": names(MANY)},
    ),
    single(
        "DescribeProducers for 100,000 partitions",
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        lambda: {"topics": [{"name": "absent", "partition_indexes": list(range(MANY))}]},
    ),
    single(
        "WriteTxnMarkers for 100,000 partitions",
        ApiKey.WRITE_TXN_MARKERS,
        1,
        lambda: {
            "markers": [
                {
                    "producer_id": 1,
                    "producer_epoch": 0,
                    "topics": [{"name": "absent", "partition_indexes": list(range(MANY))}],
                }
            ]
        },
    ),
    single(
        "AlterClientQuotas for 20,000 users",
        ApiKey.ALTER_CLIENT_QUOTAS,
        0,
        lambda: {
            "validate_only": True,
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": f"u{n}"}],
                    "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}],
                }
                for n in range(20_000)
            ],
        },
        leaves_work=True,
    ),
    single(
        "ListPartitionReassignments for 100,000 partitions",
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        0,
        lambda: {
            "timeout_ms": 1000,
            "topics": [{"name": "absent", "partition_indexes": list(range(MANY))}],
        },
    ),
    Attack("JoinGroup with 60 MiB of metadata", _large_assignment),
    _one_frame(
        "ApiVersions with 100 MB of trailing bytes", lambda: framed(header(18, 0) + bytes(100_000_000))
    ),
    _one_frame(
        "an array length of 2,147,483,647", lambda: framed(header(3, 1) + struct.pack(">i", 2**31 - 1))
    ),
    _one_frame(
        "a string length of 32,767 without the string",
        lambda: framed(header(3, 1) + struct.pack(">ih", 1, 32767)),
    ),
    _one_frame(
        "an endless list of tagged fields",
        lambda: framed(header(18, 3) + b"\x00" + b"\xff" * 5_000_000),
    ),
)
"""All attacks of this module."""
