"""Random histories of a consumer group, played on Apache Kafka and on our coordinator in memory.

Our coordinator gets the topic IDs of Apache Kafka, because assignors break ties by ID. Both use an assignment
interval of 0, so that a history does not depend on time.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from uuid import UUID

from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult
from kafka_compat.groups.consumer.records import TargetAssignmentRecord, TargetMetadataRecord
from kafka_compat.groups.records import OffsetRecord, decode_record
from kafka_compat.groups.requests import Commit, OffsetAndMetadata, PartitionErrors
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import CLIENT_ID
from tests.groups.consumer.topics import groups_of
from tests.groups.share.memory import no_share_groups
from tests.groups.sides import (
    GroupInMemory,
    GroupOnKafka,
    Keyed,
    Plain,
    plain_heartbeat,
    sorted_topics,
)
from tests.support.steps import result_of

MAX_SIZE = 4
SETTINGS = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.max.size": str(MAX_SIZE),
    "group.coordinator.append.linger.ms": "0",
}


class Theirs(GroupOnKafka):
    """A consumer group on Apache Kafka."""

    def heartbeat(self, request: Plain) -> Plain:
        return self.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)

    def describe(self) -> Plain:
        request = {"group_ids": [self._group]}
        found: Plain = self._connection.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request)["groups"][0]
        return found

    def commit(self, member_id: str, epoch: int, partitions: list[tuple[str, int]]) -> list[int]:
        topics: dict[str, list[Plain]] = {}
        for topic, partition in partitions:
            topics.setdefault(topic, []).append({"partition_index": partition, "committed_offset": 5})
        request = {
            "generation_id_or_member_epoch": epoch,
            "member_id": member_id,
            "topics": [{"name": name, "partitions": wanted} for name, wanted in topics.items()],
        }
        done = self.ask(ApiKey.OFFSET_COMMIT, 9, request)
        return [partition["error_code"] for topic in done["topics"] for partition in topic["partitions"]]


class Ours(GroupInMemory):
    """The same group on our coordinator."""

    def __init__(self, group: str, topics: dict[str, int], ids: dict[str, UUID]) -> None:
        super().__init__(group, topics, ids)
        self.next_member_id = ""
        self._coordinator = self.new_coordinator(
            consumer_groups=groups_of(self.metadata, 0, MAX_SIZE),
            share_groups=no_share_groups(),
            new_member_id=lambda _: self.next_member_id,
        )

    def put(self, name: str, topic_id: UUID, size: int) -> None:
        """Create a topic, or add partitions."""
        super().put(name, topic_id, size)
        self._coordinator.topics_changed([name])

    def delete(self, name: str) -> TopicMetadata:
        """Delete a topic."""
        topic = super().delete(name)
        self._coordinator.offsets.forget_topic(topic)
        self._coordinator.topics_changed([name])
        return topic

    def heartbeat(self, request: Plain) -> Plain:
        answers: list[HeartbeatResult] = []
        names, owned = request.get("subscribed_topic_names"), request.get("topic_partitions")
        heartbeat = Heartbeat(
            member_id=request["member_id"],
            member_epoch=request["member_epoch"],
            client_id=CLIENT_ID,
            client_host="/127.0.0.1",
            instance_id=request.get("instance_id"),
            rebalance_timeout_ms=request.get("rebalance_timeout_ms", -1),
            topic_names=None if names is None else tuple(names),
            server_assignor=request.get("server_assignor"),
            owned=None if owned is None else {each["topic_id"]: each["partitions"] for each in owned},
        )
        self._coordinator.consumer.heartbeat(self._group, heartbeat, answers.append)
        (answer,) = answers
        return plain_heartbeat(answer)

    def describe(self) -> Plain:
        error, view = self._coordinator.consumer.describe(self._group)
        if view is None:
            return {"error_code": error}
        members = []
        for member in view.members.values():
            held: dict[UUID, list[int]] = {}
            for partitions in (member.assigned, member.pending_revocation):
                for topic_id, numbers in partitions.items():
                    held.setdefault(topic_id, []).extend(numbers)
            targets = view.targets.get(member.member_id, {})
            members.append(
                {
                    "member_id": member.member_id,
                    "member_epoch": member.epoch,
                    "subscribed_topic_names": list(member.topic_names),
                    "member_type": 1 if member.classic is None else 0,
                    "assignment": self._existing(held),
                    "target_assignment": self._existing(targets),
                }
            )
        return {
            "error_code": error,
            "group_state": str(view.state),
            "group_epoch": view.epoch,
            "assignment_epoch": view.target_epoch,
            "assignor_name": view.preferred_assignor or self._coordinator.consumer.default_assignor,
            "members": members,
        }

    def _existing(self, partitions: Mapping[UUID, Sequence[int]]) -> dict[UUID, list[int]]:
        """Return the partitions of topics that are not deleted."""
        topics = {topic.topic_id for topic in self.metadata.topics.values()}
        return {topic_id: list(numbers) for topic_id, numbers in partitions.items() if topic_id in topics}

    def commit(self, member_id: str, epoch: int, partitions: list[tuple[str, int]]) -> list[int]:
        answers: list[PartitionErrors] = []
        offsets = {
            (topic, partition): OffsetAndMetadata(5, -1, "", 1, -1, self.metadata.topics[topic].topic_id)
            for topic, partition in partitions
        }
        commit = Commit(epoch, member_id, None, offsets)
        result_of(self._coordinator.offsets.commit(self._group, commit, answers.append))
        (errors,) = answers
        return [errors[partition] for partition in partitions]


def comparable_description(group: Plain) -> Plain:
    """Return a description without messages, clients and order."""
    if group["error_code"]:
        return {"error_code": group["error_code"]}
    names = ("error_code", "group_state", "group_epoch", "assignment_epoch", "assignor_name")
    shown: Plain = {name: group[name] for name in names}
    members = []
    for member in group["members"]:
        kept: Plain = {name: member[name] for name in ("member_id", "member_epoch", "member_type")}
        kept["topics"] = sorted(member["subscribed_topic_names"])
        for name in ("assignment", "target_assignment"):
            found = member[name]
            if "topic_partitions" in found:
                kept[name] = sorted_topics(found["topic_partitions"])
            else:
                kept[name] = sorted_topics({"topic_id": key, "partitions": found[key]} for key in found)
        members.append(kept)
    shown["members"] = sorted(members, key=lambda member: str(member["member_id"]))
    return shown


def comparable_records(records: Iterable[Keyed]) -> list[tuple[bytes, object]]:
    """Return the records in their order, except for deletions of offsets: Kafka deletes the offsets of a
    topic in the order of a hash table.
    """
    found: list[tuple[bytes, object]] = []
    for is_deletion, some in groupby(records, _deletes_offset):
        comparable_ones = map(_comparable_record, some)
        found += sorted(comparable_ones, key=str) if is_deletion else comparable_ones
    return found


def _deletes_offset(record: Keyed) -> bool:
    key, value = record
    return value is None and key is not None and key.startswith(b"\0\1")


def _comparable_record(record: Keyed) -> tuple[bytes, object]:
    """Return a record as its type and the version of its value, its key, the size of its value, and the
    decoded record without times and the order of partitions.
    """
    key, value = record
    assert key is not None
    decoded = decode_record(key, value)
    found: object = decoded
    if isinstance(decoded, TargetMetadataRecord) and decoded.value is not None:
        found = decoded.value._replace(timestamp_ms=bool(decoded.value.timestamp_ms))
    elif isinstance(decoded, TargetAssignmentRecord) and decoded.value is not None:
        found = {topic_id: sorted(parts) for topic_id, parts in decoded.value.items()}
    elif isinstance(decoded, OffsetRecord) and decoded.value is not None:
        found = decoded.value._replace(commit_timestamp_ms=0)
    return key[:2] + (value or b"")[:2], (key, len(value or b""), found)


class Member:
    """What a client knows of its membership."""

    def __init__(self, member_id: str, instance_id: str | None) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = 0
        self.last_epoch = 0
        self.assigned: list[Plain] = []


def steps(seed: int, topics: list[str]) -> Iterator[tuple[str, Member, Plain]]:
    """Yield the requests of a history: what the member does, the member, and the fields of the heartbeat.
    The caller updates the member with the response.
    """
    choose = random.Random(seed)
    members = [
        Member(
            f"member-{seed}-{number}-{choose.randrange(1000)}", f"instance-{number}" if number < 2 else None
        )
        for number in range(6)
    ]
    returns = 0
    for _ in range(choose.randint(10, 60)):
        member = choose.choice(members)
        common: Plain = {"member_id": member.member_id, "instance_id": member.instance_id}
        names = choose.sample(topics, choose.randint(1, len(topics)))
        join = {
            **common,
            "member_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": names,
            "topic_partitions": [],
        }
        stay = {**common, "member_epoch": member.epoch}
        what = choose.choice(
            ("stay",) * 6
            + ("acknowledge",) * 10
            + ("join", "resubscribe", "leave", "old", "future", "assignor")
        )
        if not member.epoch or what == "join":
            if choose.random() < 0.2:
                join["server_assignor"] = choose.choice(("range", "uniform"))
            if member.instance_id is not None and not member.epoch and choose.random() < 0.3:
                returns += 1
                member.member_id = join["member_id"] = f"returned-{seed}-{returns}"
            yield "join", member, join
        elif what == "stay":
            yield what, member, stay
        elif what == "acknowledge":
            yield what, member, {**stay, "topic_partitions": member.assigned}
        elif what == "resubscribe":
            yield what, member, {**stay, "subscribed_topic_names": names}
        elif what == "assignor":
            yield what, member, {**stay, "server_assignor": choose.choice(("range", "uniform", "none"))}
        elif what == "leave":
            epoch = -2 if member.instance_id is not None and choose.random() < 0.6 else -1
            yield what, member, {**common, "member_epoch": epoch}
        elif what == "old":
            yield (
                what,
                member,
                {**stay, "member_epoch": member.last_epoch, "topic_partitions": member.assigned},
            )
        else:
            yield what, member, {**stay, "member_epoch": member.epoch + choose.randint(1, 3)}


def learn(member: Member, what: str, answer: Plain) -> None:
    """Update the member with a response."""
    if answer["error_code"]:
        if what not in ("future", "old", "assignor"):
            member.epoch = 0
        return
    if answer["member_epoch"] <= 0:
        member.epoch = 0
        return
    if answer["member_epoch"] != member.epoch:
        member.last_epoch, member.epoch = member.epoch, answer["member_epoch"]
    if answer["assignment"] is not None:
        member.assigned = answer["assignment"]["topic_partitions"]
