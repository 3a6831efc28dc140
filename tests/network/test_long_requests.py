"""Long requests must not delay a bystander in a separate process that sends ApiVersions every 10 ms."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_compat.broker import standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol import codec, headers
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.produce import ProduceResponse
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Record, build_batch
from tests.conformance.wire import Connection, Plain, encode
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker
from tests.support.waiting import until

LOOP_MAX_S = 0.1
"""The longest CPU time of the broker's event loop while the bystander waits for a response. Time used by
other processes does not count.
"""
NOW_MS = int(time.time() * 1000)

_BYSTANDER = r"""
import json, os, select, socket, struct, sys
host, port = sys.argv[1].split(":")
loop = open(f"/proc/{sys.argv[2]}/schedstat", "rb", buffering=0)

def loop_s():
    return int(os.pread(loop.fileno(), 100, 0).split()[0]) / 1e9

connection = socket.create_connection((host, int(port)))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
question = struct.pack(">ihhih", 10, 18, 0, 1, -1)
answers = connection.makefile("rb")
worst_s = 0.0
while True:
    before_s = loop_s()
    connection.sendall(question)
    answers.read(struct.unpack(">i", answers.read(4))[0])
    worst_s = max(worst_s, loop_s() - before_s)
    if select.select([sys.stdin], [], [], 0.01)[0]:
        if not sys.stdin.readline():
            break
        print(json.dumps(worst_s), flush=True)
        worst_s = 0.0
"""


class Bystander:
    """Reports how long the broker's event loop ran before it responded."""

    def __init__(self, broker: KafkaCompatBroker) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BYSTANDER, broker.address, str(broker.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def worst_s(self) -> float:
        """Return the longest time since the last call."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        worst_s: float = json.loads(self._process.stdout.readline())
        return worst_s

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


@pytest.fixture
def bystander(broker: KafkaCompatBroker) -> Iterator[Bystander]:
    watching = Bystander(broker)
    yield watching
    watching.close()


@pytest.fixture
def connection(broker: KafkaCompatBroker) -> Iterator[Connection]:
    with Connection(broker.address, timeout_s=120) as connected:
        yield connected


def create(connection: Connection, name: str, partitions: int, **configs: str) -> None:
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
    }
    answer = connection.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 60_000})
    assert answer["topics"][0]["error_code"] == 0


def produce(connection: Connection, topic: str, *batches: tuple[int, bytes], acks: int = 1) -> list[int]:
    parts = [{"index": index, "records": records} for index, records in batches]
    request = {"acks": acks, "timeout_ms": 30_000, "topic_data": [{"name": topic, "partition_data": parts}]}
    answer = connection.ask(ApiKey.PRODUCE, 9, request)
    return [part["error_code"] for part in answer["responses"][0]["partition_responses"]]


def bomb(size_bytes: int = 15 << 20) -> bytes:
    """Return a batch that decompresses to `size_bytes`."""
    return build_batch([Record(timestamp=NOW_MS, value=bytes(size_bytes))], compression=CompressionType.GZIP)


@pytest.mark.parametrize("timestamp", ["late", "greatest"])
def test_timestamp_lookups_in_large_batches_do_not_delay_other_clients(
    connection: Connection, bystander: Bystander, timestamp: str
) -> None:
    partitions, count = 8, 100_000
    create(connection, "times", partitions)
    records = [
        Record(timestamp=NOW_MS - count + number, value=b"x%d" % (number % 7)) for number in range(count)
    ]
    data = build_batch(records, compression=CompressionType.GZIP)
    for index in range(partitions):
        assert produce(connection, "times", (index, data)) == [0]
    asked = NOW_MS - 1 if timestamp == "late" else -3
    wanted = [{"partition_index": index, "timestamp": asked} for index in range(partitions)]
    bystander.worst_s()
    began_s = time.perf_counter()
    answer = connection.ask(
        ApiKey.LIST_OFFSETS, 7, {"replica_id": -1, "topics": [{"name": "times", "partitions": wanted}]}
    )
    took_s = time.perf_counter() - began_s
    found = {(part["offset"], part["timestamp"]) for part in answer["topics"][0]["partitions"]}
    assert found == {(count - 1, NOW_MS - 1)}
    assert bystander.worst_s() < LOOP_MAX_S
    assert took_s < 10


def test_creating_and_deleting_many_partitions_does_not_delay_other_clients(
    connection: Connection, bystander: Bystander
) -> None:
    partitions = 3000
    bystander.worst_s()
    create(connection, "wide", partitions)
    assert bystander.worst_s() < LOOP_MAX_S
    described = connection.ask(ApiKey.METADATA, 9, {"topics": [{"name": "wide"}]})
    assert len(described["topics"][0]["partitions"]) == partitions
    assert {part["leader_id"] for part in described["topics"][0]["partitions"]} == {1}
    bystander.worst_s()
    gone = connection.ask(ApiKey.DELETE_TOPICS, 5, {"topic_names": ["wide"], "timeout_ms": 60_000})
    assert gone["responses"][0]["error_code"] == 0
    assert bystander.worst_s() < LOOP_MAX_S
    described = connection.ask(
        ApiKey.METADATA, 9, {"topics": [{"name": "wide"}], "allow_auto_topic_creation": False}
    )
    assert described["topics"][0]["error_code"] == 3


def test_an_interrupted_topic_creation_is_completed_at_the_next_startup(
    broker: KafkaCompatBroker,
) -> None:
    connection = Connection(broker.address)
    topic = {"name": "cut", "num_partitions": 3000, "replication_factor": 1}
    connection.begin(ApiKey.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 60_000})
    folder = broker.log_dir / "cut-5"
    wait_until(folder.exists, 60, "creation of the first logs", 0.001)
    broker.restart(kill=True)
    with Connection(broker.address, timeout_s=60) as after:
        described = after.ask(ApiKey.METADATA, 9, {"topics": [{"name": "cut"}]})["topics"][0]
        assert len(described["partitions"]) == 3000
        assert {part["leader_id"] for part in described["partitions"]} == {1}
        assert produce(after, "cut", (2999, build_batch([Record(timestamp=NOW_MS, value=b"x")]))) == [0]


def test_decompression_bombs_in_one_produce_request_do_not_delay_other_clients(
    connection: Connection, bystander: Bystander
) -> None:
    partitions = 60
    create(connection, "bombs", partitions)
    data = bomb()
    bystander.worst_s()
    codes = produce(connection, "bombs", *((index, data) for index in range(partitions)))
    assert codes == [0] * partitions
    assert bystander.worst_s() < LOOP_MAX_S


def test_a_large_batch_of_irregular_records_does_not_delay_other_clients(
    connection: Connection, bystander: Bystander
) -> None:
    create(connection, "irregular", 1)
    records = [Record(timestamp=NOW_MS - number % 977, value=b"x" * (number % 7)) for number in range(80_000)]
    data = build_batch(records)
    bystander.worst_s()
    assert produce(connection, "irregular", *[(0, data)] * 8) == [0] * 8
    assert bystander.worst_s() < LOOP_MAX_S


def test_requests_with_slow_batches_keep_their_order(connection: Connection) -> None:
    create(connection, "order", 1)
    small = build_batch([Record(timestamp=NOW_MS, value=b"small")])
    for number in range(6):
        parts = [{"index": 0, "records": small if number % 2 else bomb(4 << 20)}]
        topics = [{"name": "order", "partition_data": parts}]
        request = {"acks": 1, "timeout_ms": 5000, "topic_data": topics}
        connection.send(encode(ApiKey.PRODUCE, 9, request, number))
    for number in range(6):
        answer = connection.receive()
        correlation_id, position = headers.decode_response_header(ApiKey.PRODUCE, 9, answer)
        response = codec.decode(ProduceResponse, 9, answer, position)
        assert correlation_id == number
        assert response.responses[0].partition_responses[0].base_offset == number


def test_old_clients_that_do_not_read_their_responses_do_not_delay_other_clients(
    broker: KafkaCompatBroker, connection: Connection, bystander: Bystander
) -> None:
    create(connection, "old", 1)
    data = build_batch([Record(timestamp=NOW_MS, value=bytes(100))] * 8000)
    for _ in range(8):
        assert produce(connection, "old", (0, data)) == [0]
    bystander.worst_s()
    others = [Connection(broker.address) for _ in range(30)]
    for other in others:
        other.begin(ApiKey.FETCH, 3, fetch_request("old", [0], max_bytes=20 << 20))
    (found,) = fetch(connection, "old", [0], version=3, max_bytes=20 << 20)
    assert found["error_code"] == 0 and found["records"]
    assert bystander.worst_s() < LOOP_MAX_S
    for other in others:
        other.close()


def test_metadata_requests_that_would_create_too_many_topics_are_rejected(
    connection: Connection, bystander: Bystander
) -> None:
    names = [{"name": f"guessed-{number}"} for number in range(10_001)]
    answer = connection.ask(ApiKey.METADATA, 9, {"topics": names, "allow_auto_topic_creation": True})
    assert {topic["error_code"] for topic in answer["topics"]} == {ErrorCode.POLICY_VIOLATION}
    everything = connection.ask(ApiKey.METADATA, 9, {"topics": None})
    assert everything["topics"] == []


def test_creating_many_topics_does_not_delay_other_clients(
    connection: Connection, bystander: Bystander
) -> None:
    names = [{"name": f"wanted-{number}"} for number in range(500)]
    bystander.worst_s()
    answer = connection.ask(ApiKey.METADATA, 9, {"topics": names, "allow_auto_topic_creation": True})
    assert {topic["error_code"] for topic in answer["topics"]} == {0}
    assert bystander.worst_s() < LOOP_MAX_S


async def test_a_parked_fetch_is_canceled_when_its_connection_closes(tmp_path: Path) -> None:
    config = BrokerConfig.from_properties(
        {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path), "broker.id": "1"}
    )
    broker = standalone_broker(config)
    await broker.start()
    try:
        await broker.services.topics.create("quiet", partitions=1, replication_factor=1)
        partition = broker.services.replicas.get("quiet", 0)
        assert partition is not None
        host, port = broker.addresses["PLAINTEXT"]
        connection = await asyncio.to_thread(Connection, f"{host}:{port}")
        request = fetch_request("quiet", [0], max_bytes=1000, wait_ms=600_000)
        await asyncio.to_thread(connection.begin, ApiKey.FETCH, 11, request)
        await until(lambda: partition.listeners)
        connection.close()
        await until(lambda: not partition.listeners)
    finally:
        await broker.stop()


def fetch_request(topic: str, offsets: list[int], *, max_bytes: int, wait_ms: int = 0) -> Plain:
    wanted = [
        {"partition": 0, "fetch_offset": offset, "partition_max_bytes": max_bytes} for offset in offsets
    ]
    return {
        "replica_id": -1,
        "max_wait_ms": wait_ms,
        "min_bytes": 1,
        "max_bytes": max_bytes,
        "session_epoch": -1,
        "topics": [{"topic": topic, "partitions": wanted}],
    }


def fetch(
    connection: Connection, topic: str, offsets: list[int], *, version: int, max_bytes: int
) -> list[Plain]:
    answer = connection.ask(ApiKey.FETCH, version, fetch_request(topic, offsets, max_bytes=max_bytes))
    return [part for response in answer["responses"] for part in response["partitions"]]
