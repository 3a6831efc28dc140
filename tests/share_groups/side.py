"""One share group on running brokers, with its topics and records, as bare clients see it."""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import Record, iter_records
from tests.conformance.record_requests import fetch_request, offsets_request, produce_request
from tests.conformance.wire import Connection, Plain
from tests.groups.consumer.brokers import OurBrokers
from tests.groups.consumer.wire_histories import WireGroup
from tests.support.process import wait_until

GROUP = 32
"""The resource type of a group."""
SHARE = 2
"""The key type of FindCoordinator for share coordinators."""
LATEST = -1
DEADLINE_S = 90.0
_SET, _DELETE = 0, 1
_NO_TRANSACTION = -1

_BEFORE_LENGTH = 12
_HEADER = struct.Struct(">qiibIhi")
"""The fields of a batch up to lastOffsetDelta."""

Partition = tuple[str, int]
"""A topic by the name that it has in a history, and the number of a partition."""


def kafka_id(value: UUID) -> str:
    """Return an ID as Kafka prints it."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


class ShareSide:
    """A share group. Requests and results contain the names that topics have in the history, because topics
    of Apache Kafka have different IDs whenever they are created.
    """

    def __init__(self, address: str, group: str, prefix: str, ours: OurBrokers | None = None) -> None:
        """The real name of a topic begins with `prefix`. Without `ours`, the brokers are Apache Kafka."""
        self.address = address
        self.group_id = group
        self.ids: dict[str, UUID] = {}
        self._prefix = prefix
        self._ours = ours
        self._group = WireGroup(address, group, ours)
        self._controller = Connection(address, DEADLINE_S)
        self._connections: dict[str, Connection] = {}
        self._leader: str | None = None
        self._leader_id = -1
        self._sizes: dict[str, int] = {}
        self._names: dict[UUID, str] = {}
        self._producer = (-1, -1)
        self._sequences: dict[Partition, int] = {}

    def close(self) -> None:
        self._group.close()
        self._controller.close()
        for connection in self._connections.values():
            connection.close()

    # Topics

    def real(self, name: str) -> str:
        return self._prefix + name

    def create(self, name: str, size: int, topic_id: UUID | None = None) -> None:
        """Create a topic, with this ID if the brokers are ours."""
        if topic_id is not None and self._ours is not None:
            self._group.create_with_id(self.real(name), topic_id, size)
        else:
            topic_id = self._group.create({self.real(name): size})[self.real(name)]
        self.ids[name] = topic_id
        self._names[topic_id] = name
        if self._leader is None:
            self._leader_id, self._leader = self._find_leader(self.real(name))
        self._sizes[name] = size
        self._await_leaders(name, range(size))

    def _await_leaders(self, name: str, partitions: Iterable[int]) -> None:
        """Wait until the broker leads these partitions, which it may learn later than the controller."""
        for number in partitions:
            request = offsets_request(self.real(name), LATEST, partition=number, isolation=0)

            def is_led(request: Plain = request) -> bool:
                answer = self.to_leader().ask(ApiKey.LIST_OFFSETS, 7, request)
                return not answer["topics"][0]["partitions"][0]["error_code"]

            wait_until(is_led, DEADLINE_S, "the leader of a partition", 0.05)

    def know(self, ids: dict[str, UUID]) -> None:
        """Use topics that exist."""
        self.ids |= ids
        self._names |= {topic_id: name for name, topic_id in ids.items()}

    def _find_leader(self, topic: str, partition: int = 0) -> tuple[int, str]:
        """Return the ID and the address of the leader, when there is one."""
        request = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
        found: list[tuple[int, str]] = []

        def is_found() -> bool:
            answer = self._controller.ask(ApiKey.METADATA, 9, request)
            brokers = {each["node_id"]: f"{each['host']}:{each['port']}" for each in answer["brokers"]}
            leaders = {
                each["partition_index"]: each["leader_id"] for each in answer["topics"][0]["partitions"]
            }
            if leaders.get(partition) not in brokers:
                return False
            found.append((leaders[partition], brokers[leaders[partition]]))
            return True

        wait_until(is_found, DEADLINE_S, "the leader of the topic", 0.05)
        return found[0]

    def grow(self, name: str, size: int) -> None:
        brokers = [self._leader_id] * (size - self._sizes[name])
        self._group.grow(self.real(name), self.ids[name], size, brokers)
        self._sizes[name] = size
        self._await_leaders(name, range(size))

    def delete(self, name: str) -> None:
        self._group.delete(self.real(name))

    def delete_all(self, names: Iterable[str]) -> None:
        self._group.delete_all([self.real(each) for each in names])

    def name_of(self, topic_id: UUID) -> str:
        return self._names.get(topic_id, "?")

    # Connections

    @property
    def leader_address(self) -> str:
        """The broker that leads all partitions of the history."""
        return self._leader or self.address

    def to_leader(self) -> Connection:
        return self._to(self.leader_address)

    def to_coordinator(self) -> Connection:
        return self._to(self._group.address)

    @property
    def coordinator_address(self) -> str:
        return self._group.address

    def _to(self, address: str) -> Connection:
        if address not in self._connections:
            self._connections[address] = Connection(address, DEADLINE_S)
        return self._connections[address]

    # Records

    def produce(self, partition: Partition, data: bytes, transactional_id: str | None = None) -> Plain:
        request = produce_request(
            self.real(partition[0]), data, partition=partition[1], transactional_id=transactional_id
        )
        answer = self.to_leader().ask(ApiKey.PRODUCE, 11, request)
        found: Plain = answer["responses"][0]["partition_responses"][0]
        return found

    def end_of(self, partition: Partition, isolation: int = 0) -> int:
        """Return the offset after the last record, or the last stable offset (`isolation` 1)."""
        request = offsets_request(
            self.real(partition[0]), LATEST, partition=partition[1], isolation=isolation
        )
        answer = self.to_leader().ask(ApiKey.LIST_OFFSETS, 7, request)
        return int(answer["topics"][0]["partitions"][0]["offset"])

    def delete_records(self, partition: Partition, offset: int) -> Plain:
        part = {"partition_index": partition[1], "offset": offset}
        request = {
            "topics": [{"name": self.real(partition[0]), "partitions": [part]}],
            "timeout_ms": 30_000,
        }
        answer = self.to_leader().ask(ApiKey.DELETE_RECORDS, 2, request)
        found: Plain = answer["topics"][0]["partitions"][0]
        return found

    # Transactions

    @property
    def _transactional_id(self) -> str:
        return f"{self._prefix}transactions"

    def begin(self) -> None:
        """Get a producer ID and epoch for one transaction."""
        request = {"transactional_id": self._transactional_id, "transaction_timeout_ms": 600_000}
        found: Plain = {}

        def is_given() -> bool:
            found.update(self._to_transactions().ask(ApiKey.INIT_PRODUCER_ID, 4, request))
            return not found["error_code"]

        wait_until(is_given, DEADLINE_S, "a producer ID", 0.05)
        self._producer = found["producer_id"], found["producer_epoch"]
        self._sequences = {}

    def _to_transactions(self) -> Connection:
        key = {"key_type": 1, "coordinator_keys": [self._transactional_id]}
        found: Plain = {}

        def is_found() -> bool:
            found.update(self._controller.ask(ApiKey.FIND_COORDINATOR, 4, key)["coordinators"][0])
            return not found["error_code"]

        wait_until(is_found, DEADLINE_S, "the transaction coordinator", 0.05)
        return self._to(f"{found['host']}:{found['port']}")

    def add_to_transaction(self, partition: Partition) -> None:
        topic = {"name": self.real(partition[0]), "partitions": [partition[1]]}
        producer_id, epoch = self._producer
        request = {
            "v3_and_below_transactional_id": self._transactional_id,
            "v3_and_below_producer_id": producer_id,
            "v3_and_below_producer_epoch": epoch,
            "v3_and_below_topics": [topic],
        }

        def is_added() -> bool:
            answer = self._to_transactions().ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
            (result,) = answer["results_by_topic_v3_and_below"]
            return not result["results_by_partition"][0]["partition_error_code"]

        wait_until(is_added, DEADLINE_S, "the partition of the transaction", 0.05)

    def transactional_fields(self, partition: Partition, count: int) -> dict[str, int | bool]:
        """Return the fields of the next batch in the transaction."""
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + count
        producer_id, epoch = self._producer
        return {
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "base_sequence": sequence,
            "transactional": True,
        }

    def produce_in_transaction(self, partition: Partition, data: bytes) -> Plain:
        return self.produce(partition, data, self._transactional_id)

    def end(self, partitions: Iterable[Partition], is_committed: bool) -> None:
        """End the transaction, and wait for its markers."""
        producer_id, epoch = self._producer
        request = {
            "transactional_id": self._transactional_id,
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "committed": is_committed,
        }
        partitions = list(partitions)
        ends = {each: self.end_of(each) for each in partitions}

        def is_ended() -> bool:
            return not self._to_transactions().ask(ApiKey.END_TXN, 4, request)["error_code"]

        wait_until(is_ended, DEADLINE_S, "the end of the transaction", 0.05)
        for each, end in ends.items():
            wait_until(
                lambda each=each, end=end: self.end_of(each, 1) == end + 1,  # type: ignore[misc]
                DEADLINE_S,
                "the marker of the transaction",
                0.05,
            )

    # Dead letters

    @property
    def dead_letter_topic(self) -> str:
        return f"dlq.{self._prefix}"

    def create_dead_letters(self) -> None:
        """Create the topic for dead letters, with two partitions."""
        self.create_plain(self.dead_letter_topic, 2, {"errors.deadletterqueue.group.enable": "true"})

    def create_plain(self, topic: str, size: int, configs: Mapping[str, str]) -> None:
        """Create a topic that is not part of the history, under its real name."""
        wanted = {
            "name": topic,
            "num_partitions": size,
            "replication_factor": 1,
            "configs": [{"name": name, "value": value} for name, value in configs.items()],
        }
        answer = self._controller.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [wanted], "timeout_ms": 30_000})
        assert not answer["topics"][0]["error_code"], answer
        for partition in range(size):
            self._find_leader(topic, partition)

    def to_leader_of(self, topic: str, partition: int) -> Connection:
        return self._to(self._find_leader(topic, partition)[1])

    def dead_letters(self) -> list[Plain]:
        """Return the dead letters, with the names that topics have in the history."""
        found = []
        for partition in range(2):
            connection = self._to(self._find_leader(self.dead_letter_topic, partition)[1])
            request = fetch_request(self.dead_letter_topic, 0, partition=partition, max_bytes=1 << 24)
            answer = connection.ask(ApiKey.FETCH, 12, request)["responses"][0]["partitions"][0]
            for record in _records(memoryview(answer["records"] or b"")):
                headers = [(name, bytes(value or b"").decode()) for name, value in record.headers]
                found.append(
                    {
                        "partition": partition,
                        "key": record.key and bytes(record.key),
                        "value": record.value and bytes(record.value),
                        "headers": [
                            (name, value.removeprefix(self._prefix).replace(self.group_id, "GROUP"))
                            for name, value in headers
                        ],
                    }
                )
        return sorted(found, key=str)

    # The group

    def configure(self, values: dict[str, str | None]) -> None:
        """Set settings of the group, or delete those whose value is None. Wait until they are in effect."""
        configs = [
            {"name": name, "config_operation": _DELETE if value is None else _SET, "value": value}
            for name, value in values.items()
        ]
        resource = {"resource_type": GROUP, "resource_name": self.group_id, "configs": configs}
        answer = self._controller.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
        assert not answer["responses"][0]["error_code"], answer
        asked = {
            "resource_type": GROUP,
            "resource_name": self.group_id,
            "configuration_keys": list(values),
        }

        def is_set(connection: Connection) -> bool:
            found = connection.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [asked]})["results"][0]
            now = {each["name"]: each for each in found["configs"]}
            return all(
                name in now
                and (now[name]["config_source"] != 8 if value is None else now[name]["value"] == value)
                for name, value in values.items()
            )

        for connection in (self.to_leader(), self.to_coordinator()):
            wait_until(lambda c=connection: is_set(c), DEADLINE_S, "the settings", 0.05)  # type: ignore[misc]

    def heartbeat(self, request: Plain) -> Plain:
        fields = {"group_id": self.group_id, **request}
        names = request.get("subscribed_topic_names")
        if names is not None:
            fields["subscribed_topic_names"] = [self.real(each) for each in names]
        return self.to_coordinator().ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, fields)

    def describe(self) -> Plain:
        request = {"group_ids": [self.group_id]}
        found: Plain = self.to_coordinator().ask(ApiKey.SHARE_GROUP_DESCRIBE, 1, request)["groups"][0]
        return found

    def member_ids(self) -> list[str]:
        return [each["member_id"] for each in self.describe()["members"]]

    def offsets(self, names: dict[str, list[int]] | None, version: int = 1) -> Plain:
        """Return the start offsets of the group, of all its topics if `names` is None."""
        topics = names and [
            {"topic_name": self.real(each), "partitions": numbers} for each, numbers in names.items()
        ]
        request = {"groups": [{"group_id": self.group_id, "topics": topics if names is not None else None}]}
        found: Plain = self.to_coordinator().ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, version, request)[
            "groups"
        ][0]
        return found

    def initialized(self) -> set[Partition]:
        """Return the partitions whose state is initialized."""
        return {
            (self.name_of(topic["topic_id"]), each["partition_index"])
            for topic in self.offsets(None)["topics"]
            for each in topic["partitions"]
        }

    def alter(self, starts: dict[str, dict[int, int]]) -> Plain:
        topics = [
            {
                "topic_name": self.real(name),
                "partitions": [
                    {"partition_index": number, "start_offset": start} for number, start in numbers.items()
                ],
            }
            for name, numbers in starts.items()
        ]
        request = {"group_id": self.group_id, "topics": topics}
        return self.to_coordinator().ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, request)

    def delete_offsets(self, names: Iterable[str]) -> Plain:
        request = {
            "group_id": self.group_id,
            "topics": [{"topic_name": self.real(each)} for each in names],
        }
        return self.to_coordinator().ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, request)

    def delete_group(self) -> int:
        answer = self.to_coordinator().ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": [self.group_id]})
        return int(answer["results"][0]["error_code"])

    def listed(self, states: list[str], types: list[str]) -> list[Plain]:
        request = {"states_filter": states, "types_filter": types}
        groups = self.to_coordinator().ask(ApiKey.LIST_GROUPS, 5, request)["groups"]
        return [each for each in groups if each["group_id"] == self.group_id]

    # The stored state

    def _share_coordinator(self, partition: Partition) -> Connection:
        key = f"{self.group_id}:{kafka_id(self.ids[partition[0]])}:{partition[1]}"
        found: Plain = {}

        def is_found() -> bool:
            request = {"key_type": SHARE, "coordinator_keys": [key]}
            found.update(self._controller.ask(ApiKey.FIND_COORDINATOR, 6, request)["coordinators"][0])
            return not found["error_code"]

        wait_until(is_found, DEADLINE_S, "the share coordinator", 0.1)
        return self._to(f"{found['host']}:{found['port']}")

    def state(self, partition: Partition) -> Plain:
        """Return the stored state of a share-partition."""
        return self._stored(partition, ApiKey.READ_SHARE_GROUP_STATE, 0, leader_epoch=0)

    def summary(self, partition: Partition) -> Plain:
        """Return the progress of a share-partition."""
        return self._stored(partition, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, leader_epoch=-1)

    def _stored(self, partition: Partition, api: ApiKey, version: int, leader_epoch: int) -> Plain:
        part = {"partition": partition[1], "leader_epoch": leader_epoch}
        topic = {"topic_id": self.ids[partition[0]], "partitions": [part]}
        request = {"group_id": self.group_id, "topics": [topic]}
        until_s = time.monotonic() + DEADLINE_S
        while True:
            answer = self._share_coordinator(partition).ask(api, version, request)
            found: Plain = answer["results"][0]["partitions"][0]
            if found["error_code"] not in _RETRIABLE or time.monotonic() > until_s:
                return found
            time.sleep(0.1)  # interval of polling

    # Results that both sides must share

    def shown_fetch(self, answer: Plain) -> Plain:
        topics = [
            {
                "partition": (self.name_of(topic["topic_id"]), each["partition_index"]),
                "error": each["error_code"],
                "has_message": each["error_message"] is not None,
                "acknowledge_error": each["acknowledge_error_code"],
                "has_acknowledge_message": each["acknowledge_error_message"] is not None,
                "knows_leader": each["current_leader"]["leader_id"] > 0,
                "has_records": each["records"] is not None,
                "batches": _shown_batches(each["records"] or b""),
                "acquired": [
                    (one["first_offset"], one["last_offset"], one["delivery_count"])
                    for one in each["acquired_records"]
                ],
            }
            for topic in answer["responses"]
            for each in topic["partitions"]
        ]
        return {**_shown_top(answer), "responses": topics}

    def shown_acknowledge(self, answer: Plain) -> Plain:
        topics = [
            {
                "partition": (self.name_of(topic["topic_id"]), each["partition_index"]),
                "error": each["error_code"],
                "has_message": each["error_message"] is not None,
                "knows_leader": each["current_leader"]["leader_id"] > 0,
            }
            for topic in answer["responses"]
            for each in topic["partitions"]
        ]
        return {**_shown_top(answer), "responses": topics}

    def shown_heartbeat(self, answer: Plain, with_assignment: bool) -> Plain:
        held = answer["assignment"]
        return {
            **{each: answer[each] for each in ("error_code", "member_id", "member_epoch")},
            "heartbeat_interval_ms": answer["heartbeat_interval_ms"],
            "has_message": answer["error_message"] is not None,
            "assignment": self._shown_assignment(held, with_assignment),
        }

    def shown_group(self, group: Plain, with_assignment: bool) -> Plain:
        members = [
            {
                "member_id": each["member_id"],
                "rack_id": each["rack_id"],
                "member_epoch": each["member_epoch"],
                "client_host": each["client_host"],
                "names": sorted(one.removeprefix(self._prefix) for one in each["subscribed_topic_names"]),
                "assignment": self._shown_assignment(each["assignment"], with_assignment),
            }
            for each in group["members"]
        ]
        shown = {
            each: group[each]
            for each in ("error_code", "group_state", "group_epoch", "assignment_epoch", "assignor_name")
        }
        return {
            **shown,
            "has_message": group["error_message"] is not None,
            "members": sorted(members, key=lambda each: str(each["member_id"])),
        }

    def _shown_assignment(self, held: Plain | None, with_partitions: bool) -> object:
        if held is None or not with_partitions:
            return held is not None
        return sorted(
            (self.name_of(each["topic_id"]), sorted(each["partitions"])) for each in held["topic_partitions"]
        )

    def shown_offsets(self, group: Plain) -> Plain:
        topics = {
            topic["topic_name"].removeprefix(self._prefix): sorted(
                (
                    each["partition_index"],
                    each["start_offset"],
                    each["leader_epoch"],
                    each["lag"],
                    each["error_code"],
                    each["error_message"] is not None,
                )
                for each in topic["partitions"]
            )
            for topic in group["topics"]
        }
        message = group["error_message"] is not None
        return {"error": group["error_code"], "has_message": message, "topics": topics}

    def shown_topics(self, answer: Plain) -> Plain:
        """Return the comparable response to a change or deletion of offsets."""
        topics = [
            {
                "name": topic["topic_name"].removeprefix(self._prefix),
                "is_known": topic["topic_id"] == self.ids.get(topic["topic_name"].removeprefix(self._prefix)),
                "error": topic.get("error_code"),
                "partitions": sorted(
                    (each["partition_index"], each["error_code"], each["error_message"] is not None)
                    for each in topic.get("partitions", [])
                ),
            }
            for topic in answer["responses"]
        ]
        return {
            "error": answer["error_code"],
            "has_message": answer["error_message"] is not None,
            "topics": sorted(topics, key=str),
        }


def _records(data: memoryview) -> Iterator[Record]:
    position = 0
    for header in read_headers(data):
        yield from iter_records(data[position : position + header.size_bytes])
        position += header.size_bytes


def _shown_batches(records: bytes) -> list[tuple[int, int, int]]:
    """Return the first and last offsets and the sizes of batches. Of the last, there may be only a part."""
    found = []
    position = 0
    while position + _HEADER.size <= len(records):
        first, length, _, _, _, _, last_delta = _HEADER.unpack_from(records, position)
        size = min(_BEFORE_LENGTH + length, len(records) - position)
        found.append((first, first + last_delta, size))
        position += size
    if position < len(records):
        found.append((-1, -1, len(records) - position))
    return found


def _shown_top(answer: Plain) -> Plain:
    return {
        "error": answer["error_code"],
        "has_message": answer["error_message"] is not None,
        "lock_ms": answer["acquisition_lock_timeout_ms"],
        "endpoints": len(answer["node_endpoints"]),
    }


_RETRIABLE = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
