"""Random histories of a group whose clients use the classic and the consumer protocol, played on Apache Kafka
and on our coordinator in memory.

Our coordinator gets the member IDs that Apache Kafka creates. No timer expires in a history.
"""

from __future__ import annotations

import random
import select
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.classic.records import GroupRecord
from kafka_compat.groups.consumer.embedded_protocol import read_assignment
from kafka_compat.groups.consumer.records import MemberMetadataRecord, RegexRecord, ResolvedRegex
from kafka_compat.groups.records import OffsetRecord, Record, decode_record
from kafka_compat.groups.requests import Join, JoinResult, LeaveResult, Leaving, Sync, SyncResult
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import encode_versioned
from kafka_compat.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import iter_records
from tests.conformance.record_requests import fetch_request
from tests.conformance.wire import CLIENT_ID, Connection
from tests.groups.consumer.histories import (
    SETTINGS,
    Ours,
    Theirs,
    comparable_description,
)
from tests.groups.sides import Plain, comparable
from tests.support.steps import result_of

MIXED_SETTINGS = {**SETTINGS, "group.initial.rebalance.delay.ms": "0"}
TIMEOUT_MS = 300_000
_OFFSETS_TOPIC = "__consumer_offsets"
_VERSIONS = {
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
}

Partitions = dict[str, list[int]]
_LEADER: Plain = {"leader": "", "members": []}


def subscription(version: int, topics: Iterable[str], owned: Partitions) -> bytes:
    """Return the metadata of a protocol in JoinGroup."""
    value = ConsumerProtocolSubscription(topics=sorted(topics))
    if version:
        value.owned_partitions = [
            TopicPartition(topic=topic, partitions=sorted(owned[topic])) for topic in sorted(owned)
        ]
    return encode_versioned(value, version)


def assignment(version: int, partitions: Partitions, user_data: bytes | None) -> bytes:
    """Return the assignment of a member in SyncGroup."""
    value = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in partitions.items()
        ],
        user_data=user_data,
    )
    return encode_versioned(value, version)


class MixedTheirs(Theirs):
    """A group on Apache Kafka."""

    def __init__(self, connection: Connection, group: str, controller: Connection | None = None) -> None:
        super().__init__(connection, group, controller)
        self._read: list[list[Record]] = []
        self._next_offset = 0

    def describe_classic(self) -> Plain:
        request = {"groups": [self._group]}
        found: Plain = self._connection.ask(ApiKey.DESCRIBE_GROUPS, 6, request)["groups"][0]
        return found

    def batches(self) -> list[list[Record]]:
        """Return the records of the group in `__consumer_offsets`, by batch."""
        partition = shard_of(self._group, 50)
        while True:
            request = fetch_request(_OFFSETS_TOPIC, self._next_offset, partition=partition, max_bytes=1 << 24)
            found = self._connection.ask(ApiKey.FETCH, 12, request)["responses"][0]["partitions"][0]
            data = memoryview(found["records"] or b"")
            headers, position = read_headers(data), 0
            for header in headers:
                batch = data[position : position + header.size_bytes]
                position += header.size_bytes
                self._next_offset = header.next_offset
                decoded = (decode_record(each.key or b"", each.value) for each in iter_records(batch))
                records = [each for each in decoded if each and each.group_id == self._group]
                if records:
                    self._read.append(records)
            if not headers:
                return self._read


class MixedOurs(Ours):
    """The same group on our coordinator."""

    def join(self, request: Plain, respond: Callable[[Plain], None]) -> None:
        join = Join(
            member_id=request["member_id"],
            group_instance_id=request["group_instance_id"],
            client_id=CLIENT_ID,
            client_host="/127.0.0.1",
            session_timeout_ms=request["session_timeout_ms"],
            rebalance_timeout_ms=request["rebalance_timeout_ms"],
            protocol_type=request["protocol_type"],
            protocols=tuple((each["name"], each["metadata"]) for each in request["protocols"]),
            reason="",
            requires_known_member_id=request["group_instance_id"] is None,
            supports_skipping_assignment=True,
        )

        def joined(result: JoinResult) -> None:
            fields = result._asdict()
            fields["error_code"] = fields.pop("error")
            fields["leader"] = fields.pop("leader_id")
            fields["members"] = [each._asdict() for each in result.members]
            respond(fields)

        self._coordinator.classic.join(self._group, join, joined)

    def sync(self, request: Plain, respond: Callable[[Plain], None]) -> None:
        sync = Sync(
            request["generation_id"],
            request["member_id"],
            request["group_instance_id"],
            request["protocol_type"],
            request["protocol_name"],
            {each["member_id"]: each["assignment"] for each in request["assignments"]},
        )

        def synced(result: SyncResult) -> None:
            fields = result._asdict()
            fields["error_code"] = fields.pop("error")
            respond(fields)

        self._coordinator.classic.sync(self._group, sync, synced)

    def classic_heartbeat(self, request: Plain, respond: Callable[[Plain], None]) -> None:
        error = self._coordinator.classic.heartbeat(
            self._group, request["generation_id"], request["member_id"], request["group_instance_id"]
        )
        respond({"error_code": error})

    def leave(self, request: Plain, respond: Callable[[Plain], None]) -> None:
        leaving = [Leaving(each["member_id"], each["group_instance_id"], "") for each in request["members"]]

        def left(result: LeaveResult) -> None:
            members = [
                {"member_id": one.member_id, "group_instance_id": one.group_instance_id, "error_code": error}
                for one, error in result.members
            ]
            respond({"error_code": result.error, "members": members})

        result_of(self._coordinator.classic.leave(self._group, leaving, left))

    def describe_classic(self) -> Plain:
        _, group = self._coordinator.classic.describe(self._group)
        if group is None:
            return {"group_state": "Dead", "protocol_type": "", "protocol_data": "", "members": []}
        return {
            "group_state": str(group.state),
            "protocol_type": group.protocol_type,
            "protocol_data": group.protocol_name,
            "members": [
                {
                    "member_id": member.member_id,
                    "group_instance_id": member.group_instance_id,
                    "member_metadata": member.metadata,
                    "member_assignment": member.assignment,
                }
                for member in group.members
            ],
        }

    def batches(self) -> list[list[Record]]:
        batches: list[list[Record]] = []
        for batch in self.log.batches.get(0, []):
            decoded = (decode_record(key, value) for key, value in batch.records)
            batches.append([each for each in decoded if each])
        return batches

    @property
    def is_empty_consumer_group(self) -> bool:
        _, view = self._coordinator.consumer.describe(self._group)
        return view is not None and not view.members


def _decoded(data: bytes) -> object:
    if not data:
        return None
    found = read_assignment(bytes(data))
    return sorted((topic, sorted(numbers)) for topic, numbers in found.partitions.items()), found.user_data


def comparable_classic(api: ApiKey, answer: Plain) -> Plain:
    """Return a response of the classic protocol without the order of members and partitions."""
    shown: Plain = {"error_code": int(answer["error_code"])}
    if api is ApiKey.JOIN_GROUP:
        shown["member_id"] = answer["member_id"]
        if not answer["error_code"]:
            for name in ("generation_id", "protocol_type", "protocol_name", "leader", "skip_assignment"):
                shown[name] = answer[name]
            shown["members"] = sorted(
                (each["member_id"], each["group_instance_id"], bytes(each["metadata"]))
                for each in answer["members"]
            )
    elif api is ApiKey.SYNC_GROUP and not answer["error_code"]:
        shown |= {name: answer[name] for name in ("protocol_type", "protocol_name")}
        shown["assignment"] = _decoded(answer["assignment"])
    elif api is ApiKey.LEAVE_GROUP:
        shown["members"] = [
            (each["member_id"], each["group_instance_id"], int(each["error_code"]))
            for each in answer["members"]
        ]
    return shown


def comparable_classic_description(group: Plain) -> Plain:
    """Return a description of a classic group without clients and order. Apache Kafka 4 describes assignments
    also during a rebalance.
    """
    is_stable = group["group_state"] == "Stable"
    members = sorted(
        (
            each["member_id"],
            each["group_instance_id"],
            bytes(each["member_metadata"]),
            _decoded(each["member_assignment"]) if is_stable else None,
        )
        for each in group["members"]
    )
    names = ("group_state", "protocol_type", "protocol_data")
    return {**{name: group[name] for name in names}, "members": members}


def comparable_batches(batches: list[list[Record]]) -> list[list[str]]:
    """Return records as text without times, and without the order of members, topics and partitions.

    Apache Kafka 4 also stores a classic group before its first generation.
    """
    shown = []
    is_stored = False
    for batch in batches:
        lines = []
        removed = 0
        for record in batch:
            if isinstance(record, GroupRecord):
                is_new = record.value is not None and not record.value.protocol_type
                was_stored, is_stored = is_stored, record.value is not None and not is_new
                if is_new or (record.value is None and not was_stored):
                    continue
            lines.append(_line(record))
            removed += isinstance(record, MemberMetadataRecord) and record.value is None
        if removed > 1 and not any(isinstance(record, GroupRecord) for record in batch):
            # Apache Kafka removes the members of one LeaveGroup request in an order that it does not define.
            lines.sort()
        if all(isinstance(record, OffsetRecord) and record.value is None for record in batch):
            # Apache Kafka deletes the offsets of a topic in the order of a hash table.
            lines.sort()
        if any(isinstance(record, RegexRecord) and record.value is not None for record in batch):
            # It resolves regular expressions in such an order, too.
            lines.sort()
        if lines:
            shown.append(lines)
    return shown


def _line(record: Record) -> str:
    fields: Plain = {"record": type(record).__name__, **record._asdict()}
    value: Any = record.value
    if isinstance(record, GroupRecord) and value is not None:
        members = sorted(
            (each.member_id, each.group_instance_id, each.subscription, str(_decoded(each.assignment)))
            for each in value.members
        )
        fields["value"] = (
            value.protocol_type,
            value.generation_id,
            value.protocol_name,
            value.leader_id,
            members,
        )
    elif isinstance(record, OffsetRecord):
        fields["value"] = None if value is None else value._replace(commit_timestamp_ms=0)
    elif isinstance(value, ResolvedRegex):
        fields["value"] = sorted(value.topics)
    elif hasattr(value, "timestamp_ms"):
        fields["value"] = value._replace(timestamp_ms=min(value.timestamp_ms, 1))
    elif isinstance(value, dict):
        fields["value"] = sorted((str(topic), sorted(numbers)) for topic, numbers in value.items())
    elif hasattr(value, "assigned"):
        plain = value._asdict()
        for name in ("assigned", "pending_revocation"):
            plain[name] = sorted((str(topic), sorted(each.items())) for topic, each in plain[name].items())
        fields["value"] = plain
    return str(fields)


class Client:
    """What a client knows of its membership. `uses_classic` is None if it is not in the group."""

    def __init__(self, number: int, connection: Connection) -> None:
        self.number = number
        self.instance_id = f"instance-{number}" if number < 2 else None
        self.connection = connection
        self.uses_classic: bool | None = None
        self.member_id = ""
        self.epoch = 0
        self.must_join = True
        self.must_sync = False
        self.is_pending = False
        """Whether it has a member ID with which it has not joined. Versions of Kafka differ if it leaves."""
        self.leads: list[Plain] = []
        self.names: list[str] = []
        self.owned: Partitions = {}
        self.held: list[Plain] = []
        self.protocol = ""
        self.waits_for: ApiKey | None = None
        self.early: Plain | None = None
        """The response to the request in progress, if it has been read already."""

    def forget(self) -> None:
        self.uses_classic, self.member_id, self.epoch = None, "", 0
        self.must_join, self.must_sync, self.is_pending = True, False, False
        self.owned, self.held = {}, []


class MixedHistory:
    """One group on both brokers, with clients that use both protocols."""

    def __init__(self, address: str, seed: int) -> None:
        self._seed = seed
        self._choose = random.Random(seed)
        self._names = [f"mixed-{seed}-{name}" for name in "abc"[: self._choose.randint(1, 3)]]
        self._sizes = {name: self._choose.randint(1, 6) for name in self._names}
        group = f"mixed-group-{seed}"
        self._connection = Connection(address)
        self._theirs = MixedTheirs(self._connection, group)
        self._theirs.wait_ready()
        self._ids: dict[str, UUID] = self._theirs.create(self._sizes)
        self._ours = MixedOurs(group, self._sizes, self._ids)
        self._group = group
        self._clients = [Client(number, Connection(address)) for number in range(self._choose.randint(2, 5))]
        self._told: list[str] = []
        self._answers: list[tuple[Client, ApiKey, Plain]] = []
        self._joined = 0
        self._is_over = False

    def close(self) -> None:
        self._connection.close()
        for client in self._clients:
            client.connection.close()

    @property
    def story(self) -> str:
        return "\n".join(self._told)

    def play(self) -> None:
        for _ in range(self._choose.randint(20, 70)):
            free = [client for client in self._clients if client.waits_for is None]
            if not free or self._is_over:
                break
            self._act(self._choose.choice(free))
            self._compare_descriptions()
        self._compare_records()

    def _compare_descriptions(self) -> None:
        expected = comparable_description(self._theirs.describe())
        found = comparable_description(self._ours.describe())
        assert found == expected, f"{self.story}\nours:  {found}\ntheirs: {expected}"
        expected = comparable_classic_description(self._theirs.describe_classic())
        found = comparable_classic_description(self._ours.describe_classic())
        assert found == expected, f"{self.story}\nours:  {found}\ntheirs: {expected}"

    def _compare_records(self) -> None:
        expected = comparable_batches(self._theirs.batches())
        found = comparable_batches(self._ours.batches())
        for number, (one, other) in enumerate(zip(found, expected, strict=False)):
            assert one == other, (
                f"{self.story}\nbatch {number}\nours:\n" + "\n".join(one) + "\ntheirs:\n" + ("\n".join(other))
            )
        assert len(found) == len(expected), (
            f"{self.story}\n{found[len(expected) :]}\n{expected[len(found) :]}"
        )

    # What clients do

    def _act(self, client: Client) -> None:
        chance = self._choose.random()
        if client.uses_classic is None:
            if chance < 0.55:
                self._join(client, "")
            else:
                self._consumer_join(client)
        elif client.uses_classic:
            self._act_classic(client, chance)
        else:
            self._act_consumer(client, chance)

    def _act_classic(self, client: Client, chance: float) -> None:
        if chance < 0.06 and not client.is_pending:
            self._leave(client)
        elif chance < 0.09 and client.instance_id is not None:
            self._join(client, "")
        elif chance < 0.12 and client.instance_id is not None:
            self._consumer_join(client)
        elif chance < 0.14:
            self._classic_heartbeat(client, client.epoch + self._choose.choice((-1, 1)))
        elif chance < 0.16:
            self._sync(client)
        elif client.must_join and chance < 0.9:
            self._join(client, client.member_id)
        elif client.must_sync and chance < 0.9:
            self._sync(client)
        elif chance < 0.3 and client.owned:
            self._commit(client, client.owned)
        elif chance < 0.4:
            if self._choose.random() < 0.5:
                client.names = self._some_names()
            self._join(client, client.member_id)
        else:
            self._classic_heartbeat(client, client.epoch)

    def _act_consumer(self, client: Client, chance: float) -> None:
        common = {"member_id": client.member_id, "instance_id": client.instance_id}
        stay = {**common, "member_epoch": client.epoch}
        if chance < 0.12:
            epoch = -2 if client.instance_id is not None and self._choose.random() < 0.5 else -1
            self._consumer_heartbeat(client, {**common, "member_epoch": epoch})
        elif chance < 0.15:
            self._leave(client)
        elif chance < 0.22 and client.instance_id is not None:
            self._join(client, "")
        elif chance < 0.24:
            self._join(client, client.member_id)
        elif chance < 0.3 and client.held:
            names = {topic_id: name for name, topic_id in self._ids.items()}
            self._commit(client, {names[each["topic_id"]]: each["partitions"] for each in client.held})
        elif chance < 0.36:
            self._consumer_heartbeat(client, {**stay, "subscribed_topic_names": self._some_names()})
        elif chance < 0.5:
            self._consumer_heartbeat(client, stay)
        else:
            self._consumer_heartbeat(client, {**stay, "topic_partitions": client.held})

    def _some_names(self) -> list[str]:
        return self._choose.sample(self._names, self._choose.randint(1, len(self._names)))

    def _consumer_join(self, client: Client) -> None:
        self._joined += 1
        client.names = self._some_names()
        request = {
            "member_id": f"consumer-{self._seed}-{client.number}-{self._joined}",
            "instance_id": client.instance_id,
            "member_epoch": 0,
            "rebalance_timeout_ms": TIMEOUT_MS,
            "subscribed_topic_names": client.names,
            "topic_partitions": [],
        }
        self._consumer_heartbeat(client, request)

    def _consumer_heartbeat(self, client: Client, request: Plain) -> None:
        self._begin(client, ApiKey.CONSUMER_GROUP_HEARTBEAT, request)
        self._answers.append((client, ApiKey.CONSUMER_GROUP_HEARTBEAT, self._ours.heartbeat(request)))
        self._finish(client, request)

    def _join(self, client: Client, member_id: str) -> None:
        if member_id and self._ours.is_empty_consumer_group:
            # Apache Kafka would forget the group until it loads the log again.
            return
        if not member_id:
            client.names = self._some_names()
        version = self._choose.choice((0, 1, 3))
        owned = client.owned if self._choose.random() < 0.8 else {}
        metadata = subscription(version, client.names, owned)
        names = self._choose.choice(
            (["range"], ["range"], ["cooperative-sticky", "range"], ["range", "sticky"])
        )
        if self._choose.random() < 0.03:
            names = ["unknown"]
        request = {
            "session_timeout_ms": TIMEOUT_MS,
            "rebalance_timeout_ms": TIMEOUT_MS,
            "member_id": member_id,
            "group_instance_id": client.instance_id,
            "protocol_type": "consumer",
            "protocols": [{"name": name, "metadata": metadata} for name in names],
        }
        self._begin(client, ApiKey.JOIN_GROUP, request)
        if not member_id:
            self._ours.next_member_id = self._created_id(client)
        self._ours.join(request, lambda answer: self._answers.append((client, ApiKey.JOIN_GROUP, answer)))
        self._finish(client, request)

    def _created_id(self, client: Client) -> str:
        """Return the member ID that Apache Kafka has created for a JoinGroup request in progress."""
        for _ in range(100):
            if self._has_answer(client, 0.05):
                answer = client.connection.finish(ApiKey.JOIN_GROUP, _VERSIONS[ApiKey.JOIN_GROUP])
                client.early = answer
                return str(answer["member_id"])
            for member in self._theirs.describe_classic()["members"]:
                is_new = member["member_id"] != client.member_id
                if member["group_instance_id"] == client.instance_id is not None and is_new:
                    return str(member["member_id"])
        raise AssertionError(f"no member ID\n{self.story}")

    def _sync(self, client: Client) -> None:
        assignments: list[Plain] = []
        if client.leads:
            partitions = self._assigned(client.leads)
            user_data = b"custom" if self._choose.random() < 0.05 else None
            version = self._choose.choice((0, 1, 3))
            assignments = [
                {"member_id": member_id, "assignment": assignment(version, each, user_data)}
                for member_id, each in partitions.items()
                if self._choose.random() < 0.95
            ]
        request = {
            "generation_id": client.epoch,
            "member_id": client.member_id,
            "group_instance_id": client.instance_id,
            "protocol_type": "consumer",
            "protocol_name": client.protocol,
            "assignments": assignments,
        }
        self._begin(client, ApiKey.SYNC_GROUP, request)
        self._ours.sync(request, lambda answer: self._answers.append((client, ApiKey.SYNC_GROUP, answer)))
        self._finish(client, request)

    def _assigned(self, members: list[Plain]) -> dict[str, Partitions]:
        assigned: dict[str, Partitions] = {each["member_id"]: {} for each in members}
        ids = sorted(assigned)
        for name, size in self._sizes.items():
            for partition in range(size):
                assigned[self._choose.choice(ids)].setdefault(name, []).append(partition)
        return assigned

    def _classic_heartbeat(self, client: Client, generation_id: int) -> None:
        request = {
            "generation_id": generation_id,
            "member_id": client.member_id,
            "group_instance_id": client.instance_id,
        }
        self._begin(client, ApiKey.HEARTBEAT, request)
        answers = self._answers
        self._ours.classic_heartbeat(
            request, lambda answer: answers.append((client, ApiKey.HEARTBEAT, answer))
        )
        self._finish(client, request)

    def _leave(self, client: Client) -> None:
        others = [
            each
            for each in self._clients
            if each.member_id and each.waits_for is None and not each.is_pending
        ]
        leaving = {client.number: client}
        if self._choose.random() < 0.15:
            other = self._choose.choice(others)
            leaving[other.number] = other
        identities = [
            {
                "member_id": "" if each.instance_id and self._choose.random() < 0.3 else each.member_id,
                "group_instance_id": each.instance_id,
            }
            for each in leaving.values()
        ]
        request = {"members": identities}
        self._begin(client, ApiKey.LEAVE_GROUP, request)
        self._ours.leave(request, lambda answer: self._answers.append((client, ApiKey.LEAVE_GROUP, answer)))
        self._finish(client, request)
        for each in leaving.values():
            each.forget()

    def _commit(self, client: Client, partitions: Partitions) -> None:
        wanted = [(topic, each) for topic, numbers in partitions.items() for each in numbers]
        if not wanted:
            return
        epoch = client.epoch + self._choose.choice((0, 0, 0, -1, 1))
        expected = self._theirs.commit(client.member_id, epoch, wanted)
        self._told.append(f"commit {client.member_id} {epoch} {wanted} -> {expected}")
        found = self._ours.commit(client.member_id, epoch, wanted)
        assert found == expected, f"{self.story}\nours: {found}"

    # Requests and responses on both brokers

    def _begin(self, client: Client, api: ApiKey, request: Plain) -> None:
        client.connection.begin(api, _VERSIONS[api], {"group_id": self._group, **request})
        client.waits_for = api
        client.early = None

    def _finish(self, client: Client, request: Plain) -> None:
        """Compare the responses to this request and to requests of other clients that it completes."""
        self._told.append(f"client {client.number} {client.waits_for} {request}")
        self._ours.scheduler.advance()
        while self._answers:
            answered, api, found = self._answers.pop(0)
            answer = answered.early
            if answer is None:
                answer = answered.connection.finish(api, _VERSIONS[api])
            if api is ApiKey.CONSUMER_GROUP_HEARTBEAT:
                expected, shown = comparable(answer), comparable(found)
            else:
                expected, shown = comparable_classic(api, answer), comparable_classic(api, found)
            self._told.append(f"  {answered.number} <- {api} {expected}")
            if api is ApiKey.JOIN_GROUP and {**shown, **_LEADER} == {**expected, **_LEADER}:
                # If the leader has not rejoined, Apache Kafka elects one in the order of a hash table.
                self._is_over = self._is_over or shown != expected
            else:
                assert shown == expected, f"{self.story}\nours: {shown}"
            answered.waits_for = answered.early = None
            self._learn(answered, api, answer, request)
        if client.waits_for is not None:
            assert client.early is None, f"{self.story}\nours does not respond: {client.early}"
        for each in self._clients:
            if each.waits_for is not None:
                assert not self._has_answer(each, 0.02), (
                    f"{self.story}\nours does not respond to {each.number}"
                )

    def _has_answer(self, client: Client, timeout_s: float) -> bool:
        return bool(select.select([client.connection._socket], [], [], timeout_s)[0])

    def _learn(self, client: Client, api: ApiKey, answer: Plain, request: Plain) -> None:
        error = ErrorCode(answer["error_code"])
        if api is ApiKey.CONSUMER_GROUP_HEARTBEAT:
            self._learn_heartbeat(client, answer, error, request)
        elif api is ApiKey.JOIN_GROUP:
            self._learn_join(client, answer, error)
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            client.forget()
        elif error:
            client.must_join = True
        elif api is ApiKey.SYNC_GROUP:
            client.must_sync = False
            data = bytes(answer["assignment"])
            client.owned = {
                topic: list(numbers)
                for topic, numbers in (read_assignment(data).partitions if data else {}).items()
            }

    def _learn_join(self, client: Client, answer: Plain, error: ErrorCode) -> None:
        if error in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS):
            client.uses_classic, client.member_id, client.must_join = True, answer["member_id"], True
            client.is_pending = error is ErrorCode.MEMBER_ID_REQUIRED
        elif error:
            if client.uses_classic:
                client.forget()
        else:
            client.uses_classic, client.member_id = True, answer["member_id"]
            client.epoch, client.protocol = answer["generation_id"], answer["protocol_name"]
            client.must_join, client.must_sync, client.is_pending = False, True, False
            client.leads = answer["members"]
            client.held = []

    def _learn_heartbeat(self, client: Client, answer: Plain, error: ErrorCode, request: Plain) -> None:
        if error:
            if not client.uses_classic:
                client.forget()
            return
        if answer["member_epoch"] < 0:
            client.forget()
            return
        client.uses_classic, client.member_id = False, answer["member_id"]
        client.epoch, client.owned = answer["member_epoch"], {}
        if answer["assignment"] is not None:
            client.held = answer["assignment"]["topic_partitions"]
