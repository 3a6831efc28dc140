"""A client that sends the requests of brokers to the share coordinator, and random sequences of requests."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.headers import decode_response_header
from kafka_compat.protocol.messages import response_class
from kafka_compat.share_coordinator.records import ShareRecord, Snapshot, coordinator_key, decode_record
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import iter_records
from tests.conformance.wire import Connection, Plain, encode, plain
from tests.support.process import wait_until
from tests.support.servers import Server

SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "4",
}
STATE_TOPIC = "__share_group_state"
UNKNOWN_TOPIC = UUID(int=0x3333 << 64 | 3)
NOT_READY = {14, 15, 16}

INITIALIZE = ApiKey.INITIALIZE_SHARE_GROUP_STATE
READ = ApiKey.READ_SHARE_GROUP_STATE
WRITE = ApiKey.WRITE_SHARE_GROUP_STATE
DELETE = ApiKey.DELETE_SHARE_GROUP_STATE
SUMMARY = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY

Request = tuple[ApiKey, int, Plain]
"""An API, its version, and the request, with names in place of topic IDs."""


class StateClient:
    """A connection to one broker, which translates topic IDs to names."""

    def __init__(self, server: Server, topics: Mapping[str, int], source: str | None = None) -> None:
        """`topics` maps the topics to create to their numbers of partitions. `source` is a local address."""
        self._connection = Connection(server.address, timeout_s=60, source=source)
        created = [
            {"name": name, "num_partitions": count, "replication_factor": 1} for name, count in topics.items()
        ]
        self.ask(ApiKey.CREATE_TOPICS, 7, topics=created, timeout_ms=30_000)
        self._ids: dict[str, UUID] = {"unknown": UNKNOWN_TOPIC}
        wait_until(lambda: self._has_ids(list(topics)), 60, "topic IDs")

    def _has_ids(self, topics: list[str]) -> bool:
        response = self.ask(ApiKey.METADATA, 12, topics=[{"name": name} for name in topics])
        if any(topic["error_code"] for topic in response["topics"]):
            return False
        self._ids |= {topic["name"]: topic["topic_id"] for topic in response["topics"]}
        return True

    def close(self) -> None:
        self._connection.close()

    def ask(self, api_key: ApiKey, version: int, **request: Any) -> Plain:
        self._connection.send(encode(api_key, version, request))
        frame = self._connection.receive()
        _, position = decode_response_header(api_key, version, frame)
        answer: Plain = plain(codec.decode(response_class(api_key), version, frame, position, exact=True))
        return answer

    def wait_for_coordinator(self, group: str, topic: str) -> None:
        """Create `__share_group_state`, and wait until the broker coordinates a share-partition."""
        key = coordinator_key(group, self._ids[topic], 0)
        wait_until(
            lambda: (
                not self.find(key)["error_code"]
                and self.state(SUMMARY, 0, part(group, topic, {"partition": 0, "leader_epoch": 0}))[
                    "results"
                ][0]["partitions"][0]["error_code"]
                not in NOT_READY
            ),
            60,
            "the share coordinator",
        )

    def find(self, key: str, version: int = 6) -> Plain:
        if version < 4:
            return self.ask(ApiKey.FIND_COORDINATOR, version, key_type=2, key=key)
        response = self.ask(ApiKey.FIND_COORDINATOR, version, key_type=2, coordinator_keys=[key])
        found: Plain = response["coordinators"][0]
        return found

    def key(self, group: str, topic: str, partition: int) -> str:
        return coordinator_key(group, self._ids[topic], partition)

    def state(self, api_key: ApiKey, version: int, request: Plain) -> Plain:
        """Send a request with names of topics, and return the response with names, sorted by topic."""
        topics = [topic | {"topic_id": self._ids[topic["topic_id"]]} for topic in request["topics"]]
        response = self.ask(api_key, version, **(request | {"topics": topics}))
        names = self._names
        results = [topic | {"topic_id": names[topic["topic_id"]]} for topic in response["results"]]
        return {"results": sorted(results, key=lambda topic: str(topic["topic_id"]))}

    @property
    def _names(self) -> dict[UUID, str]:
        return {topic_id: name for name, topic_id in self._ids.items()}

    def records(self) -> list[Any]:
        """Return the records in `__share_group_state` without times, and with names of topics."""
        offset = self.start_offset()
        found: list[ShareRecord] = []
        while True:
            response = self.ask(
                ApiKey.FETCH,
                11,
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=2**30,
                topics=[
                    {
                        "topic": STATE_TOPIC,
                        "partitions": [
                            {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 2**30}
                        ],
                    }
                ],
            )
            partition = response["responses"][0]["partitions"][0]
            assert not partition["error_code"]
            data = memoryview(partition["records"] or b"")
            if not data:
                return [self._neutral(record) for record in found]
            position = 0
            for header in read_headers(data):
                for record in iter_records(data[position : position + header.size_bytes]):
                    decoded = decode_record(bytes(record.key or b""), record.value)
                    assert decoded is not None
                    found.append(decoded)
                position += header.size_bytes
                offset = header.next_offset

    def start_offset(self) -> int:
        """Return the start offset of `__share_group_state-0`."""
        asked = {"name": STATE_TOPIC, "partitions": [{"partition_index": 0, "timestamp": -2}]}
        response = self.ask(ApiKey.LIST_OFFSETS, 1, topics=[asked])
        offset: int = response["topics"][0]["partitions"][0]["offset"]
        return offset

    def _neutral(self, record: ShareRecord) -> Any:
        key = (record.key.group_id, self._names[record.key.topic_id], record.key.partition)
        value = record.value
        if isinstance(value, Snapshot):
            assert value.created_ms > 0
            value = value._replace(created_ms=0, written_ms=value.written_ms - value.created_ms)
        return key, value


def part(group: str, topic: str, *partitions: Plain) -> Plain:
    return {"group_id": group, "topics": [{"topic_id": topic, "partitions": list(partitions)}]}


def random_requests(seed: int, count: int) -> Iterator[Request]:
    """Yield requests that interact, some of them invalid. Topics `one` and `two` have three partitions."""
    choice = random.Random(seed)
    for _ in range(count):
        api_key, version = choice.choice(
            [
                (INITIALIZE, 0),
                (READ, 0),
                *[(WRITE, 1)] * 6,
                (WRITE, 0),
                (DELETE, 0),
                (SUMMARY, 0),
                (SUMMARY, 1),
            ]
        )
        if api_key is DELETE and choice.random() < 0.6:
            continue
        topics = choice.sample(["one", "two", "unknown"], choice.choice([1, 1, 1, 2]))
        yield (
            api_key,
            version,
            {
                "group_id": choice.choice(["g", "g", "h:i"] if choice.random() < 0.98 else [""]),
                "topics": [
                    {"topic_id": topic, "partitions": list(_partitions(choice, api_key))} for topic in topics
                ],
            },
        )


def _partitions(choice: random.Random, api_key: ApiKey) -> Iterator[Plain]:
    indexes = [0, 1, 2] if choice.random() < 0.9 else [0, 3, -1]
    for index in choice.sample(indexes, 0 if choice.random() < 0.01 else choice.choice([1, 1, 2, 3])):
        epoch = choice.choice([0, 1, 1, 1, 2, 3] if choice.random() < 0.97 else [-1, 100])
        leader_epoch = choice.choice([5, 5, 5, 6, 7, 4, 20] if choice.random() < 0.97 else [-1])
        if api_key is INITIALIZE:
            yield {"partition": index, "state_epoch": epoch, "start_offset": choice.choice([-1, 0, 0, 10])}
        elif api_key is DELETE:
            yield {"partition": index}
        elif api_key is WRITE:
            yield {
                "partition": index,
                "state_epoch": 3 if choice.random() < 0.7 else epoch,
                "leader_epoch": 20 if choice.random() < 0.7 else leader_epoch,
                "start_offset": choice.choice([-1, -1, 0, choice.randrange(60)]),
                "delivery_complete_count": choice.choice([-1, 0, choice.randrange(20)]),
                "state_batches": list(_batches(choice)),
            }
        else:
            yield {"partition": index, "leader_epoch": leader_epoch}


def _batches(choice: random.Random) -> Iterator[Plain]:
    for _ in range(choice.randrange(5)):
        first = choice.randrange(60)
        yield {
            "first_offset": first,
            "last_offset": first + choice.randrange(10),
            "delivery_state": choice.choice([0, 2, 3, 4]),
            "delivery_count": choice.choice([1, 1, 2, 3]),
        }
