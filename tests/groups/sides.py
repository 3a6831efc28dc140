"""The two sides of a random history of a group: Apache Kafka, and our coordinator in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any
from uuid import UUID

from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
from kafka_compat.groups.consumer.heartbeat import HeartbeatResult
from kafka_compat.groups.coordinator import GroupCoordinator, random_member_id
from kafka_compat.groups.records import decode_record
from kafka_compat.groups.settings import GroupSettings
from kafka_compat.groups.share.groups_of_broker import ShareGroups
from kafka_compat.groups.share.heartbeat import ShareHeartbeatResult
from kafka_compat.metadata.cache import MetadataCache, PartitionMetadata, TopicMetadata
from kafka_compat.metadata.topic_names import OFFSETS_TOPIC
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import iter_records
from tests.conformance.record_requests import fetch_request
from tests.conformance.wire import Connection
from tests.groups.memory import WALL_MS, ManualScheduler, MemoryLog
from tests.support.process import wait_until

Plain = dict[str, Any]
Keyed = tuple[bytes | None, bytes | None]


class GroupOnKafka(ABC):
    """A group on Apache Kafka, and its topics."""

    def __init__(self, connection: Connection, group: str, controller: Connection | None = None) -> None:
        """`connection` is to the coordinator of the group. Topics change at the controller: by default, the
        same broker.
        """
        self._connection = connection
        self._controller = controller or connection
        self._group = group

    @abstractmethod
    def describe(self) -> Plain:
        """Return the description of the group."""

    def ask(self, key: ApiKey, version: int, request: Plain) -> Plain:
        """Send a request for the group to its coordinator, and return the response."""
        found: Plain = self._connection.ask(key, version, {"group_id": self._group, **request})
        return found

    def wait_ready(self) -> None:
        """Wait until the broker coordinates the group."""
        key = {"key_type": 0, "coordinator_keys": [self._group]}
        self._connection.ask(ApiKey.FIND_COORDINATOR, 6, key)
        not_found = ErrorCode.GROUP_ID_NOT_FOUND
        wait_until(lambda: self.describe()["error_code"] == not_found, 60, "the coordinator of the group")

    def create(self, topics: dict[str, int]) -> dict[str, UUID]:
        """Create topics with numbers of partitions, and return their IDs."""
        asked = [
            {"name": name, "num_partitions": count, "replication_factor": 1} for name, count in topics.items()
        ]
        done = self._controller.ask(ApiKey.CREATE_TOPICS, 7, {"topics": asked, "timeout_ms": 30_000})
        assert [topic["error_code"] for topic in done["topics"]] == [0] * len(topics)
        ids = {topic["name"]: topic["topic_id"] for topic in done["topics"]}
        sizes = {ids[name]: size for name, size in topics.items()}
        wait_until(lambda: self._known(list(topics)) == sizes, 30, "the new topics")
        return ids

    def grow(self, topic: str, topic_id: UUID, size: int, brokers: Sequence[int] | None = None) -> None:
        """Add partitions. `brokers` are those of the new ones, which have one replica each."""
        assignments = None if brokers is None else [{"broker_ids": [each]} for each in brokers]
        grown = {"name": topic, "count": size, "assignments": assignments}
        done = self._controller.ask(ApiKey.CREATE_PARTITIONS, 3, {"topics": [grown], "timeout_ms": 30_000})
        assert done["results"][0]["error_code"] == 0, done
        wait_until(lambda: self._known([topic]) == {topic_id: size}, 30, "the new partitions")

    def delete(self, topic: str) -> None:
        request = {"topics": [{"name": topic}], "timeout_ms": 30_000}
        done = self._controller.ask(ApiKey.DELETE_TOPICS, 6, request)
        assert done["responses"][0]["error_code"] == 0
        wait_until(lambda: self._known([topic]) == {}, 30, "the deletion of the topic")

    def _known(self, topics: list[str]) -> dict[UUID, int]:
        """Return the numbers of partitions of the topics that the coordinator knows. A group in the same
        partition of `__consumer_offsets` tells.
        """
        probe = next(
            name
            for name in (f"{self._group}-probe-{number}" for number in count())
            if shard_of(name, 50) == shard_of(self._group, 50)
        )
        join = {
            "group_id": probe,
            "member_id": "probe",
            "member_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": topics,
            "topic_partitions": [],
        }
        joined = self._connection.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, join)
        leave = {"group_id": probe, "member_id": "probe", "member_epoch": -1}
        self._connection.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, leave)
        assigned = joined["assignment"]["topic_partitions"]
        return {each["topic_id"]: len(each["partitions"]) for each in assigned}

    def records(self) -> Iterator[Keyed]:
        """Yield the keys and values of the group's records in the log."""
        offset = 0
        while True:
            request = fetch_request(
                OFFSETS_TOPIC, offset, partition=shard_of(self._group, 50), max_bytes=1 << 24
            )
            answer = self._connection.ask(ApiKey.FETCH, 12, request)["responses"][0]["partitions"][0]
            assert not answer["error_code"]
            content, position = memoryview(answer["records"] or b""), 0
            headers = read_headers(content)
            if not headers:
                return
            for header in headers:
                batch = content[position : position + header.size_bytes]
                for record in () if header.is_control else iter_records(batch):
                    decoded = None if record.key is None else decode_record(record.key, record.value)
                    if decoded is not None and decoded.machine_key == self._group:
                        yield record.key, record.value
                position += header.size_bytes
            offset = headers[-1].last_offset + 1


class GroupInMemory:
    """The same group on our coordinator, with its topics, its log and its clock."""

    def __init__(self, group: str, topics: dict[str, int], ids: dict[str, UUID]) -> None:
        self._group = group
        self.metadata = MetadataCache("cluster", 1)
        for name, size in topics.items():
            self._put(name, ids[name], size)
        self.log = MemoryLog(shard_count=1)
        self.scheduler = ManualScheduler()

    def new_coordinator(
        self,
        consumer_groups: ConsumerGroups,
        share_groups: ShareGroups,
        new_member_id: Callable[[str | None], str] = random_member_id,
    ) -> GroupCoordinator:
        """Return a coordinator that has loaded the log."""
        coordinator = GroupCoordinator(
            coordinator_log=self.log,
            scheduler=self.scheduler,
            settings=GroupSettings(group_initial_rebalance_delay_ms=0),
            now_ms=lambda: WALL_MS + self.scheduler.now_ms,
            partition_exists=lambda topic, partition: self.metadata.partition(topic, partition) is not None,
            consumer_groups=consumer_groups,
            share_groups=share_groups,
            new_member_id=new_member_id,
        )
        coordinator.load(0)
        return coordinator

    def _put(self, name: str, topic_id: UUID, size: int) -> None:
        partitions = tuple(PartitionMetadata(each, 1, 0, (1,), (1,)) for each in range(size))
        self.metadata.put_topic(TopicMetadata(name, topic_id, partitions))

    def put(self, name: str, topic_id: UUID, size: int) -> None:
        """Create a topic, or add partitions."""
        self._put(name, topic_id, size)

    def delete(self, name: str) -> TopicMetadata:
        """Delete a topic, and return it."""
        topic = self.metadata.topics[name]
        change = self.metadata.change()
        change.remove_topic(name)
        change.publish()
        return topic

    def records(self) -> Iterator[Keyed]:
        """Yield the keys and values of the records in the log."""
        for batch in self.log.batches.get(0, []):
            yield from batch.records


def plain_heartbeat(answer: HeartbeatResult | ShareHeartbeatResult) -> Plain:
    """Return the result of a heartbeat as a response."""
    assignment = answer.assignment
    return {
        "error_code": answer.error,
        "member_id": answer.member_id,
        "member_epoch": answer.member_epoch,
        "heartbeat_interval_ms": answer.heartbeat_interval_ms,
        "assignment": None
        if assignment is None
        else {
            "topic_partitions": [
                {"topic_id": topic_id, "partitions": list(partitions)}
                for topic_id, partitions in assignment.items()
            ]
        },
    }


def comparable(answer: Plain) -> Plain:
    """Return a heartbeat's response without the message and the order of partitions."""
    assignment = answer["assignment"]
    shown: Plain = {
        name: answer[name] for name in ("error_code", "member_id", "member_epoch", "heartbeat_interval_ms")
    }
    shown["assignment"] = None if assignment is None else sorted_topics(assignment["topic_partitions"])
    return shown


def sorted_topics(topics: Any) -> list[tuple[str, list[int]]]:
    """Return assigned partitions without their order."""
    return sorted((str(each["topic_id"]), sorted(each["partitions"])) for each in topics)
