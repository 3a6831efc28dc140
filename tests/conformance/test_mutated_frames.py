"""Mutated requests: the broker does not crash or leak memory, and other connections are not affected.

Normal runs send 6,000 frames, and --campaign sends 100,000. The seed is printed, and can be set with
KAFKA_COMPAT_SEED.
"""

from __future__ import annotations

import asyncio
import os
import random
import struct
from collections.abc import Callable, Iterator

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch, old_message
from tests.conformance.bystander import Bystander
from tests.conformance.group_requests import join
from tests.conformance.record_requests import fetch_request, offsets_request, produce_request
from tests.conformance.wire import Connection, Plain, encode
from tests.support import campaign
from tests.support.servers import KafkaCompatBroker

FRAMES = campaign.rounds(6_000, 100_000)
GROWTH_MAX_BYTES = 64 * 1024 * 1024
WARM_UP_FRAMES = 2_000
CONNECTIONS = 16
ANSWER_WAIT_S = 0.1

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def seeds(topic: str) -> list[bytes]:
    """Return well-formed requests of every kind, none of which may affect the bystander's topic."""
    group = {"group_id": "mutants", "generation_id": 1, "member_id": "mutant"}
    leave = {"group_id": "mutants", "member_id": "mutant", "members": [{"member_id": "mutant"}]}
    commit_part = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "note"}
    commit_topics = [{"name": topic, "partitions": [commit_part]}]
    wanted = {"name": "mutant", "num_partitions": 1, "replication_factor": 1}
    resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": None}
    change = {"resource_type": 2, "resource_name": topic, "configs": [{"name": "retention.ms", "value": "1"}]}
    epochs = [{"topic": topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}]
    requests: list[tuple[ApiKey, tuple[int, ...], Plain]] = [
        (ApiKey.API_VERSIONS, (0, 3, 4), {"client_software_name": "x", "client_software_version": "1"}),
        (ApiKey.METADATA, (0, 4, 9, 12), {"topics": [{"name": topic}], "allow_auto_topic_creation": False}),
        (ApiKey.PRODUCE, (3, 7, 9, 11), produce_request(topic, batch(3))),
        (ApiKey.PRODUCE, (0, 2), produce_request(topic, old_message(1, b"v", b"k"))),
        (ApiKey.FETCH, (0, 4, 11, 12), fetch_request(topic, 0)),
        (ApiKey.FETCH, (7, 11, 13), fetch_request(topic, 0) | {"session_epoch": 0}),
        (ApiKey.LIST_OFFSETS, (0, 1, 5, 9), offsets_request(topic, -1)),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, (0, 3, 4), {"topics": epochs}),
        (ApiKey.FIND_COORDINATOR, (0, 3, 4), {"key": "mutants", "coordinator_keys": ["mutants"]}),
        (ApiKey.JOIN_GROUP, (0, 4, 5, 9), join("mutants")),
        (ApiKey.SYNC_GROUP, (0, 3, 5), group),
        (ApiKey.HEARTBEAT, (0, 3, 4), group),
        (ApiKey.LEAVE_GROUP, (0, 3, 5), leave),
        (ApiKey.OFFSET_COMMIT, (0, 2, 7, 9), {"group_id": "mutants", "topics": commit_topics}),
        (ApiKey.OFFSET_FETCH, (0, 5, 8, 9), {"group_id": "mutants", "groups": [{"group_id": "mutants"}]}),
        (ApiKey.DESCRIBE_GROUPS, (0, 5), {"groups": ["mutants"]}),
        (ApiKey.LIST_GROUPS, (0, 4, 5), {}),
        (ApiKey.DELETE_GROUPS, (0, 2), {"groups_names": ["mutants"]}),
        (ApiKey.CREATE_TOPICS, (1, 4, 7), {"topics": [wanted], "validate_only": True, "timeout_ms": 100}),
        (ApiKey.DELETE_TOPICS, (1, 5), {"topic_names": ["mutant"], "timeout_ms": 100}),
        (ApiKey.DELETE_RECORDS, (0, 2), {"topics": [{"name": topic, "partitions": [{"offset": 0}]}]}),
        (ApiKey.DESCRIBE_CONFIGS, (0, 4), {"resources": [resource]}),
        (ApiKey.INCREMENTAL_ALTER_CONFIGS, (0, 1), {"resources": [change], "validate_only": True}),
        (ApiKey.ALTER_CONFIGS, (0, 2), {"resources": [change], "validate_only": True}),
        (ApiKey.DESCRIBE_LOG_DIRS, (0, 4), {"topics": [{"topic": topic, "partitions": [0]}]}),
        (ApiKey.DESCRIBE_CLUSTER, (0, 1), {}),
        (ApiKey.DESCRIBE_TOPIC_PARTITIONS, (0,), {"topics": [{"name": topic}]}),
        (ApiKey.INIT_PRODUCER_ID, (0, 4), {"transactional_id": None, "transaction_timeout_ms": 1000}),
    ]
    return [encode(key, version, request) for key, versions, request in requests for version in versions]


def mutated(frames: list[bytes], rng: random.Random) -> bytes:
    """Return one of the frames with a few faults. Nine out of ten have a correct length."""
    body = bytearray(rng.choice(frames)[4:])
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(body)) if body else 0
        kind = rng.randrange(7)
        if kind == 0 and body:
            body[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and body:
            body[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            value, size = rng.choice(INTERESTING), rng.choice((1, 2, 4, 8))
            body[at : at + size] = (value & (256**size - 1)).to_bytes(size, "big")
        elif kind == 3:
            del body[at:]
        elif kind == 4:
            del body[at : at + rng.randint(1, 8)]
        elif kind == 5:
            body[at:at] = rng.randbytes(rng.randint(1, 16))
        else:
            other = rng.choice(frames)
            body[at:] = other[rng.randrange(4, len(other)) :]
    size = len(body) if rng.random() < 0.9 else rng.choice((len(body) + 1, len(body) // 2, -1, 0, 2**31 - 1))
    return struct.pack(">i", size) + bytes(body)


async def _throw(address: str, frames: Iterator[bytes]) -> None:
    """Send each frame on a separate connection, and wait briefly for a response or for the connection to
    close.
    """
    host, port = address.split(":")
    for frame in frames:
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(frame)
            async with asyncio.timeout(ANSWER_WAIT_S):
                await reader.read(65_536)
        except (TimeoutError, ConnectionError):
            pass
        finally:
            writer.transport.abort()


def throw(address: str, frames: list[bytes]) -> None:
    async def everything() -> None:
        shared = iter(frames)
        await asyncio.gather(*(_throw(address, shared) for _ in range(CONNECTIONS)))

    asyncio.run(everything())


def make_topic(address: str, name: str) -> None:
    wanted = {"name": name, "num_partitions": 1, "replication_factor": 1}
    with Connection(address) as connection:
        answer = connection.ask(ApiKey.CREATE_TOPICS, 4, {"topics": [wanted], "timeout_ms": 9000})
        assert answer["topics"][0]["error_code"] == 0


@pytest.mark.timeout(3600)
def test_mutated_frames_affect_neither_broker_memory_nor_other_clients(
    start_broker: Callable[..., KafkaCompatBroker],
) -> None:
    seed = int(os.environ.get("KAFKA_COMPAT_SEED") or random.SystemRandom().randrange(2**32))
    rng = random.Random(seed)
    print(f"KAFKA_COMPAT_SEED={seed}")
    broker = start_broker({"auto.create.topics.enable": "false"})
    for name in ("bystander", "target"):
        make_topic(broker.address, name)
    frames = seeds("target")
    bystander = Bystander(broker.address, "bystander")
    try:
        throw(broker.address, frames + [mutated(frames, rng) for _ in range(WARM_UP_FRAMES)])
        bystander.await_rounds()
        before_bytes = broker.resident_bytes()
        for _ in range(0, FRAMES, 1000):
            throw(broker.address, [mutated(frames, rng) for _ in range(1000)])
            bystander.await_rounds()
        grown_bytes = broker.resident_bytes() - before_bytes
    finally:
        bystander.close()
    assert broker.running
    assert grown_bytes < GROWTH_MAX_BYTES, f"memory grew by {grown_bytes / 2**20:.1f} MiB"
    assert "Traceback" not in broker.log.read_text(), broker.process.tail(80)
