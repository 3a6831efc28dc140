"""Random histories of a share group, played on Apache Kafka and on our coordinator in memory.

Our coordinator gets the topic IDs of Apache Kafka, because the assignor breaks ties by ID. Both use an
assignment interval of 0, so that a history does not depend on time. After each step, the history waits until
the share-partitions have the same states on Apache Kafka as on ours, which initializes them at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.coordinator import GroupCoordinator
from kafka_compat.groups.records import decode_record
from kafka_compat.groups.share.heartbeat import ShareHeartbeat, ShareHeartbeatResult
from kafka_compat.groups.share.offset_changes import AlteredTopic, DeletedTopic, NewOffsets, OffsetsResult
from kafka_compat.groups.share.partition_states import PartitionStates
from kafka_compat.groups.share.records import (
    PartitionStatesRecord,
    ShareCurrentRecord,
    ShareTargetMetadataRecord,
    ShareTargetRecord,
)
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import CLIENT_ID
from tests.groups.consumer.topics import groups_of
from tests.groups.share.memory import MemoryPersister, share_groups_of
from tests.groups.sides import (
    GroupInMemory,
    GroupOnKafka,
    Keyed,
    Plain,
    plain_heartbeat,
    sorted_topics,
)
from tests.support.process import wait_until

MAX_SIZE = 4
SETTINGS = {
    "group.share.assignment.interval.ms": "0",
    "group.share.max.size": str(MAX_SIZE),
    "group.consumer.assignment.interval.ms": "0",
    "group.coordinator.append.linger.ms": "0",
    "share.coordinator.append.linger.ms": "0",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class Theirs(GroupOnKafka):
    """A share group on Apache Kafka."""

    def heartbeat(self, request: Plain) -> Plain:
        return self.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)

    def describe(self) -> Plain:
        request = {"group_ids": [self._group]}
        found: Plain = self._connection.ask(ApiKey.SHARE_GROUP_DESCRIBE, 1, request)["groups"][0]
        return found

    def alter(self, offsets: Mapping[str, Mapping[int, int]]) -> object:
        topics = [
            {
                "topic_name": name,
                "partitions": [
                    {"partition_index": each, "start_offset": start} for each, start in some.items()
                ],
            }
            for name, some in offsets.items()
        ]
        done = self.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, {"topics": topics})
        return done["error_code"], sorted(
            (each["topic_name"], [(one["partition_index"], one["error_code"]) for one in each["partitions"]])
            for each in done["responses"]
        )

    def delete_offsets(self, names: list[str]) -> object:
        request = {"topics": [{"topic_name": name} for name in names]}
        done = self.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, request)
        return done["error_code"], sorted(
            (each["topic_name"], each["error_code"]) for each in done["responses"]
        )

    def delete_group(self) -> int:
        done = self._connection.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": [self._group]})
        return int(done["results"][0]["error_code"])

    def settle(self, expected: PartitionStates) -> None:
        """Wait until the share-partitions have these states."""
        wait_until(lambda: self._states() == expected, 60, f"the states {expected}")

    def _states(self) -> PartitionStates:
        last = None
        for key, value in self.records():
            decoded = decode_record(key or b"", value)
            if isinstance(decoded, PartitionStatesRecord):
                last = decoded.value
        return last or PartitionStates()


class Ours(GroupInMemory):
    """The same group on our coordinator."""

    def __init__(self, group: str, topics: dict[str, int], ids: dict[str, UUID]) -> None:
        super().__init__(group, topics, ids)
        self.persister = MemoryPersister()
        self.coordinator = self.successor()

    def successor(self) -> GroupCoordinator:
        """Return another coordinator, which has loaded the log."""
        return self.new_coordinator(
            consumer_groups=groups_of(self.metadata, 0, MAX_SIZE),
            share_groups=share_groups_of(self.metadata, self.persister, size_max=MAX_SIZE),
        )

    def put(self, name: str, topic_id: UUID, size: int) -> None:
        """Create a topic, or add partitions."""
        super().put(name, topic_id, size)
        self.coordinator.topics_changed([name])
        self.scheduler.advance()

    def delete(self, name: str) -> TopicMetadata:
        """Delete a topic."""
        topic = super().delete(name)
        self.coordinator.share.topics_deleted([topic.topic_id])
        self.coordinator.topics_changed([name])
        self.scheduler.advance()
        return topic

    def heartbeat(self, request: Plain) -> Plain:
        answers: list[ShareHeartbeatResult] = []
        names = request.get("subscribed_topic_names")
        heartbeat = ShareHeartbeat(
            member_id=request["member_id"],
            member_epoch=request["member_epoch"],
            client_id=CLIENT_ID,
            client_host="/127.0.0.1",
            rack_id=request.get("rack_id"),
            topic_names=None if names is None else tuple(names),
        )
        self.coordinator.share.heartbeat(self._group, heartbeat, answers.append)
        self.scheduler.advance()
        (answer,) = answers
        return plain_heartbeat(answer)

    def describe(self) -> Plain:
        error, view = self.coordinator.share.describe(self._group)
        if view is None:
            return {"error_code": error}
        existing = {topic.topic_id for topic in self.metadata.topics.values()}
        members = [
            {
                "member_id": member.member_id,
                "member_epoch": member.epoch,
                "subscribed_topic_names": list(member.topic_names),
                "assignment": {
                    "topic_partitions": [
                        {"topic_id": key, "partitions": list(numbers)}
                        for key, numbers in member.assigned.items()
                        if key in existing
                    ]
                },
            }
            for member in view.members.values()
        ]
        return {
            "error_code": error,
            "group_state": str(view.state),
            "group_epoch": view.epoch,
            "assignment_epoch": view.target_epoch,
            "members": members,
        }

    def alter(self, offsets: Mapping[str, Mapping[int, int]]) -> object:
        answers: list[OffsetsResult] = []
        topics = [NewOffsets(name, list(some.items())) for name, some in offsets.items()]
        self.coordinator.share.alter_offsets(self._group, topics, answers.append)
        self.scheduler.advance()
        (answer,) = answers
        return answer.error, sorted(
            (each.name, [(partition, int(error)) for partition, error in each.partitions])
            for each in answer.topics
            if isinstance(each, AlteredTopic)
        )

    def delete_offsets(self, names: list[str]) -> object:
        answers: list[OffsetsResult] = []
        self.coordinator.share.delete_offsets(self._group, names, answers.append)
        self.scheduler.advance()
        (answer,) = answers
        found = [(each.name, int(each.error)) for each in answer.topics if isinstance(each, DeletedTopic)]
        return answer.error, sorted(found)

    def delete_group(self) -> int:
        answers: list[dict[str, ErrorCode]] = []
        self.coordinator.delete_groups([self._group], answers.append)
        self.scheduler.advance()
        (answer,) = answers
        return answer[self._group]

    def states(self) -> PartitionStates:
        """Return the states of the share-partitions."""
        _, view = self.coordinator.share.describe(self._group)
        return PartitionStates() if view is None else view.partition_states


def comparable_description(group: Plain) -> Plain:
    """Return a description without messages, clients and order."""
    if group["error_code"]:
        return {"error_code": group["error_code"]}
    names = ("error_code", "group_state", "group_epoch", "assignment_epoch")
    members = [
        (
            member["member_id"],
            member["member_epoch"],
            sorted(member["subscribed_topic_names"]),
            sorted_topics(member["assignment"]["topic_partitions"]),
        )
        for member in group["members"]
    ]
    return {**{name: group[name] for name in names}, "members": sorted(members)}


def comparable_records(records: Iterable[Keyed]) -> list[tuple[bytes, object]]:
    """Return the records in their order."""
    return [_comparable_record(record) for record in records]


def _comparable_record(record: Keyed) -> tuple[bytes, object]:
    """Return a record as its key and the version of its value, the size of its value, and the decoded record
    without times.
    """
    key, value = record
    assert key is not None
    decoded = decode_record(key, value)
    found: object = decoded
    if isinstance(decoded, ShareTargetMetadataRecord) and decoded.value is not None:
        found = decoded.value._replace(timestamp_ms=bool(decoded.value.timestamp_ms))
    elif isinstance(decoded, ShareTargetRecord) and decoded.value is not None:
        found = list(decoded.value.items())
    elif isinstance(decoded, ShareCurrentRecord) and decoded.value is not None:
        value_of = decoded.value
        found = (value_of[:2], {key: sorted(each) for key, each in value_of.assigned.items()})
    return key + (value or b"")[:2], (len(value or b""), found)


class Member:
    """What a client knows of its membership."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.last_epoch = 0


def steps(seed: int, topics: list[str]) -> Iterator[tuple[str, Member, Plain]]:
    """Yield the requests of a history: what the member does, the member, and the fields of the heartbeat.
    The caller updates the member with the response.
    """
    choose = random.Random(seed)
    members = [Member(f"member-{seed}-{number}-{choose.randrange(1000)}") for number in range(6)]
    for _ in range(choose.randint(10, 50)):
        member = choose.choice(members)
        names = choose.sample(topics, choose.randint(1, len(topics)))
        common: Plain = {"member_id": member.member_id}
        stay = {**common, "member_epoch": member.epoch}
        what = choose.choice(
            ("stay",) * 12 + ("join", "resubscribe", "resubscribe", "leave", "old", "future")
        )
        if not member.epoch or what == "join":
            if choose.random() < 0.05:
                yield "join", member, {**common, "member_epoch": 0, "subscribed_topic_names": None}
            else:
                yield "join", member, {**common, "member_epoch": 0, "subscribed_topic_names": names}
        elif what == "stay":
            yield what, member, stay
        elif what == "resubscribe":
            yield what, member, {**stay, "subscribed_topic_names": names}
        elif what == "leave":
            yield what, member, {**common, "member_epoch": -1}
        elif what == "old":
            yield what, member, {**stay, "member_epoch": max(member.last_epoch, 1)}
        else:
            yield what, member, {**stay, "member_epoch": member.epoch + choose.randint(1, 3)}


def learn(member: Member, what: str, answer: Plain) -> None:
    """Update the member with a response."""
    if answer["error_code"]:
        if what not in ("future", "old"):
            member.epoch = 0
    elif answer["member_epoch"] <= 0:
        member.epoch = 0
    elif answer["member_epoch"] != member.epoch:
        member.last_epoch, member.epoch = member.epoch, answer["member_epoch"]
