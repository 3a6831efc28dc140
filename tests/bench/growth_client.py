"""Requests of the growth benchmark over plain sockets, so that no library's threads and queues affect the
times.

python -m tests.bench.growth_client PORT CONNECTIONS

opens this many connections, sends ApiVersions once on each, and holds the connections until standard input is
closed.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from kafka.record.default_records import DefaultRecordBatchBuilder

from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.headers import RequestHeader, encode_request_header
from kafka_compat.protocol.messages.api_versions import ApiVersionsRequest
from kafka_compat.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_compat.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_compat.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka_compat.protocol.messages.heartbeat import HeartbeatRequest
from kafka_compat.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafka_compat.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafka_compat.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafka_compat.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafka_compat.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafka_compat.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

TIMEOUT_S = 300.0
SESSION_MS = 1_800_000
"""The longest session timeout that both brokers allow by default: the idle groups send no heartbeats."""
SENT_AT_ONCE = 200
T = TypeVar("T")


class Refused(RuntimeError):
    """A group of error responses. `code` is the error code of the first one."""

    def __init__(self, count: int, code: int) -> None:
        super().__init__(f"{count} requests failed, the first one with error {code}")
        self.code = code


class Wire:
    """A connection."""

    def __init__(self, port: int, timeout_s: float = TIMEOUT_S) -> None:
        """`timeout_s` is the longest wait for a response."""
        self._socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, frame: bytes) -> bytearray:
        """Send a request, and return the response including its size prefix."""
        self._socket.sendall(frame)
        return self._answer(bytearray())

    def ask_all(self, frames: Sequence[bytes]) -> Iterator[bytearray]:
        """Send many requests, several at once, and yield the responses."""
        for first in range(0, len(frames), SENT_AT_ONCE):
            some = frames[first : first + SENT_AT_ONCE]
            self._socket.sendall(b"".join(some))
            left = bytearray()
            for _ in some:
                answer = self._answer(left)
                size_bytes = 4 + int.from_bytes(answer[:4], "big")
                left = answer[size_bytes:]
                yield answer[:size_bytes]

    def _answer(self, answer: bytearray) -> bytearray:
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            part = self._socket.recv(1 << 20)
            if not part:
                raise ConnectionError("the broker closed the connection")
            answer += part
        return answer

    def close(self) -> None:
        self._socket.close()


def frame(key: ApiKey, version: int, request: Any) -> bytes:
    """Encode a request with its header and size."""
    payload = encode_request_header(RequestHeader(key, version, 1, "growth")) + codec.encode(request, version)
    return len(payload).to_bytes(4, "big") + payload


def decoded(response: type[T], version: int, answer: bytearray, header_bytes: int = 4) -> T:
    """Decode the body of a response. Flexible versions have a response header of 5 bytes."""
    return codec.decode(response, version, bytes(answer), 4 + header_bytes)


def api_versions() -> bytes:
    return frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())


def metadata(topic: str | None) -> bytes:
    """Metadata for a topic, or for all topics."""
    topics = None if topic is None else [MetadataRequestTopic(name=topic)]
    return frame(ApiKey.METADATA, 8, MetadataRequest(topics=topics, allow_auto_topic_creation=False))


def produce(topic: str, partition: int = 0) -> bytes:
    """Produce of one record of 100 bytes with acks=all."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 4096)
    builder.append(0, int(time.time() * 1000), None, b"v" * 100, [])
    data = PartitionProduceData(index=partition, records=bytes(builder.build()))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=10_000, topic_data=topics)
    return frame(ApiKey.PRODUCE, 8, request)


def fetch(topic: str) -> bytes:
    """Fetch of a partition's first record, without a session and without waiting."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=100, topics=[FetchTopic(topic=topic, partitions=[partition])]
    )
    return frame(ApiKey.FETCH, 11, request)


def list_offsets(topic: str, partition: int) -> bytes:
    """ListOffsets for the end offset of a partition."""
    asked = ListOffsetsPartition(partition_index=partition, timestamp=-1)
    topics = [ListOffsetsTopic(name=topic, partitions=[asked])]
    return frame(ApiKey.LIST_OFFSETS, 5, ListOffsetsRequest(replica_id=-1, topics=topics))


def offset_commit(group: str, topic: str, member_id: str = "", generation: int = -1) -> bytes:
    committed = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[committed])],
    )
    return frame(ApiKey.OFFSET_COMMIT, 7, request)


def heartbeat(group: str, member_id: str, generation: int) -> bytes:
    request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
    return frame(ApiKey.HEARTBEAT, 3, request)


def await_coordinators(wire: Wire) -> None:
    """Trigger the creation of __consumer_offsets, and wait until it has a leader."""
    asking = frame(ApiKey.FIND_COORDINATOR, 1, FindCoordinatorRequest(key="growth", key_type=0))
    deadline_s = time.monotonic() + TIMEOUT_S
    while decoded(FindCoordinatorResponse, 1, wire.ask(asking)).error_code:
        if time.monotonic() > deadline_s:
            raise RuntimeError("no coordinator is available")
        time.sleep(0.05)  # interval of polling


def join(wire: Wire, groups: Sequence[str]) -> list[tuple[str, int]]:
    """Add a member with an assignment to each group. Return the member ids and generations."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")
    joins = [
        frame(
            ApiKey.JOIN_GROUP,
            3,
            JoinGroupRequest(
                group_id=group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=SESSION_MS,
                protocol_type="consumer",
                protocols=[protocol],
            ),
        )
        for group in groups
    ]
    joined = [decoded(JoinGroupResponse, 3, answer) for answer in wire.ask_all(joins)]
    _check(answer.error_code for answer in joined)
    syncs = [
        frame(
            ApiKey.SYNC_GROUP,
            2,
            SyncGroupRequest(
                group_id=group,
                generation_id=answer.generation_id,
                member_id=answer.member_id,
                assignments=[SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"\0" * 16)],
            ),
        )
        for group, answer in zip(groups, joined, strict=True)
    ]
    _check(decoded(SyncGroupResponse, 2, answer).error_code for answer in wire.ask_all(syncs))
    return [(answer.member_id, answer.generation_id) for answer in joined]


def commit_all(
    wire: Wire, groups: Sequence[str], members: Sequence[tuple[str, int]], topics: Sequence[str]
) -> None:
    """Commit an offset for each group."""
    commits = [
        offset_commit(group, topics[number % len(topics)], *member)
        for number, (group, member) in enumerate(zip(groups, members, strict=True))
    ]
    for answer in wire.ask_all(commits):
        found = decoded(OffsetCommitResponse, 7, answer)
        _check(partition.error_code for topic in found.topics for partition in topic.partitions)


def create_topics(wire: Wire, names: Sequence[str], partitions: int, replicas: int = 1) -> None:
    """Create topics with one request."""
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
            for name in names
        ],
        timeout_ms=int(TIMEOUT_S * 1000),
    )
    answer = decoded(CreateTopicsResponse, 4, wire.ask(frame(ApiKey.CREATE_TOPICS, 4, request)))
    _check(topic.error_code for topic in answer.topics)


def write_all(wire: Wire, partitions: Sequence[tuple[str, int]]) -> None:
    """Append a record to each partition."""
    for answer in wire.ask_all([produce(*partition) for partition in partitions]):
        found = decoded(ProduceResponse, 8, answer)
        _check(item.error_code for topic in found.responses for item in topic.partition_responses)


def ends(wire: Wire, partitions: Sequence[tuple[str, int]]) -> list[int]:
    """Return the end offsets of partitions."""
    found = []
    for answer in wire.ask_all([list_offsets(*partition) for partition in partitions]):
        response = decoded(ListOffsetsResponse, 5, answer)
        _check(item.error_code for topic in response.topics for item in topic.partitions)
        found += [item.offset for topic in response.topics for item in topic.partitions]
    return found


def leaderless(wire: Wire) -> tuple[int, int, int]:
    """Request Metadata for all topics. Return the number of partitions, of partitions without a leader, and
    of response bytes.
    """
    answer = wire.ask(metadata(None))
    found = decoded(MetadataResponse, 8, answer)
    leaders = [partition.leader_id for topic in found.topics for partition in topic.partitions]
    return len(leaders), sum(leader < 0 for leader in leaders), len(answer)


def _check(codes: Iterator[int]) -> None:
    bad = [code for code in codes if code]
    if bad:
        raise Refused(len(bad), bad[0])


def hold_connections(port: int, count: int) -> None:
    """Open the connections, and hold them until standard input is closed."""
    question = struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 1, -1)
    held = []
    for _ in range(count):
        wire = Wire(port)
        wire.ask(question)
        held.append(wire)
    print("held", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    hold_connections(int(sys.argv[1]), int(sys.argv[2]))
