"""Clients that repeat one kind of operation until the broker dies, and record its results.

Each records what was acknowledged and what was requested without a response. After a kill, the broker must be
in one of these two states. Several clients run concurrently, each on its own connection.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.records.records import Record, build_batch, iter_records
from tests.conformance.wire import Closed, Connection, Plain

GONE = (Closed, ConnectionError, TimeoutError)
RETRIABLE = frozenset((5, 6, 7, 9, 14, 15, 16, 19, 20, 41))
"""Errors of brokers that have just started: no leader, no coordinator or no controller yet. The request is
retried."""
UNKNOWN_TOPIC = 3
ALREADY_EXISTS = 36
OUT_OF_RANGE = 1
FETCH_BYTES = 4 * 1024 * 1024

T = TypeVar("T")


class Refused(AssertionError):
    """An unexpected error response."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what}: error {code}")
        self.code = code


class Client:
    """Connections to the brokers of a cluster, and the requests that the operations need. Each request is
    sent to the broker that serves it.
    """

    def __init__(self, address: str) -> None:
        self._first = Connection(address, timeout_s=20)
        self._addresses: dict[int, str] = {}
        self._connections: dict[int, Connection] = {}
        self._controller = -1
        self._leaders: dict[tuple[str, int], int] = {}
        self.coordinator = -1

    def close(self) -> None:
        for connection in (self._first, *self._connections.values()):
            connection.close()

    def ask(self, api_key: ApiKey, version: int, request: Plain, broker_id: int = -1) -> Plain:
        """Send a request to a broker, by default to the one connected first."""
        if broker_id < 0:
            return self._first.ask(api_key, version, request)
        if broker_id not in self._connections:
            self._connections[broker_id] = Connection(self._addresses[broker_id], timeout_s=20)
        return self._connections[broker_id].ask(api_key, version, request)

    def ask_controller(self, api_key: ApiKey, version: int, request: Plain) -> Plain:
        self.look(None)
        return self.ask(api_key, version, request, self._controller)

    def ask_leader(self, api_key: ApiKey, version: int, request: Plain, topic: str, partition: int) -> Plain:
        leader = self._leaders.get((topic, partition), -1)
        if leader < 0:
            self.look([topic])
            leader = self._leaders.get((topic, partition), -1)
        return self.ask(api_key, version, request, leader)

    def ask_coordinator(self, api_key: ApiKey, version: int, request: Plain) -> Plain:
        if self.coordinator < 0:
            found = self.ask(ApiKey.FIND_COORDINATOR, 2, {"key": "readers"})
            self._addresses.setdefault(found["node_id"], f"{found['host']}:{found['port']}")
            self.coordinator = -1 if found["error_code"] else found["node_id"]
        return self.ask(api_key, version, request, self.coordinator)

    def look(self, topics: list[str] | None) -> dict[str, int]:
        """Refresh the leaders, and return the partition count of each topic."""
        wanted = None if topics is None else [{"name": name} for name in topics]
        request = {"topics": wanted, "allow_auto_topic_creation": False}
        answer = self.ask(ApiKey.METADATA, 5, request)
        self._controller = answer["controller_id"]
        for broker in answer["brokers"]:
            self._addresses[broker["node_id"]] = f"{broker['host']}:{broker['port']}"
        counts = {}
        for topic in answer["topics"]:
            for partition in topic["partitions"]:
                self._leaders[topic["name"], partition["partition_index"]] = partition["leader_id"]
            if not topic["error_code"]:
                counts[topic["name"]] = len(topic["partitions"])
        return counts

    def forget_leader(self, topic: str, partition: int = 0) -> None:
        """Refresh the leader before the next request."""
        self._leaders.pop((topic, partition), None)

    def create(self, topic: str, partitions: int, replicas: int, **configs: str) -> int:
        given = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
        wanted = {
            "name": topic,
            "num_partitions": partitions,
            "replication_factor": replicas,
            "configs": given,
        }
        answer = self.ask_controller(ApiKey.CREATE_TOPICS, 5, {"topics": [wanted], "timeout_ms": 10_000})
        return int(answer["topics"][0]["error_code"])

    def delete(self, topic: str) -> int:
        answer = self.ask_controller(ApiKey.DELETE_TOPICS, 3, {"topic_names": [topic], "timeout_ms": 10_000})
        return int(answer["responses"][0]["error_code"])

    def grow(self, topic: str, partitions: int) -> int:
        wanted = {"name": topic, "count": partitions, "assignments": None}
        answer = self.ask_controller(ApiKey.CREATE_PARTITIONS, 1, {"topics": [wanted], "timeout_ms": 10_000})
        return int(answer["results"][0]["error_code"])

    def produce(
        self,
        topic: str,
        values: Sequence[bytes],
        partition: int = 0,
        key: bytes | None = None,
        acks: int = -1,
    ) -> tuple[int, int]:
        """Return the error code, and the offset of the first value."""
        batch = build_batch([Record(timestamp=NOW_MS, key=key, value=value) for value in values])
        data = {"name": topic, "partition_data": [{"index": partition, "records": memoryview(batch)}]}
        request = {"acks": acks, "timeout_ms": 10_000, "topic_data": [data]}
        answer = self.ask_leader(ApiKey.PRODUCE, 8, request, topic, partition)
        found = answer["responses"][0]["partition_responses"][0]
        if found["error_code"]:
            self.forget_leader(topic, partition)
        return int(found["error_code"]), int(found["base_offset"])

    def offset(self, topic: str, timestamp: int, partition: int = 0) -> int:
        """Return the start offset (timestamp -2) or the end offset (timestamp -1)."""
        wanted = {"partition_index": partition, "timestamp": timestamp}
        topics = [{"name": topic, "partitions": [wanted]}]
        request = {"replica_id": -1, "topics": topics}
        answer = self.ask_leader(ApiKey.LIST_OFFSETS, 2, request, topic, partition)
        found = answer["topics"][0]["partitions"][0]
        if found["error_code"]:
            self.forget_leader(topic, partition)
            raise Refused(f"ListOffsets of {topic}", found["error_code"])
        return int(found["offset"])

    def records(self, topic: str, first: int, partition: int = 0) -> dict[int, Record]:
        """Return all committed records starting at `first`, by offset."""
        found: dict[int, Record] = {}
        end = self.offset(topic, -1, partition)
        while first < end:
            wanted = {"partition": partition, "fetch_offset": first, "partition_max_bytes": FETCH_BYTES}
            request = {
                "max_wait_ms": 0,
                "max_bytes": FETCH_BYTES,
                "topics": [{"topic": topic, "partitions": [wanted]}],
            }
            whole = self.ask_leader(ApiKey.FETCH, 6, request, topic, partition)
            answer = whole["responses"][0]["partitions"][0]
            if answer["error_code"]:
                self.forget_leader(topic, partition)
                raise Refused(f"Fetch of {topic} from {first}", answer["error_code"])
            data, position = memoryview(answer["records"] or b""), 0
            if not data:
                break
            while position + 61 <= len(data):
                header = read_header(data, position)
                if position + header.size_bytes > len(data):
                    break
                for record in iter_records(data[position : position + header.size_bytes]):
                    if first <= record.offset:
                        found[record.offset] = record
                position += header.size_bytes
                first = max(first, header.next_offset)
        return found


NOW_MS = 1_790_000_000_000
"""A current timestamp. The topics here keep records regardless of age."""
FOREVER = {"retention_ms": "-1"}


class Operations:
    """One kind of operation. `step` performs it once, and raises one of GONE if the broker dies."""

    name = ""
    replicas = 1

    def __init__(self, address: str, seed: int) -> None:
        self.address = address
        self.chance = random.Random(seed)
        self.steps = 0
        self.failure: BaseException | None = None

    def begin(self) -> threading.Thread:
        """Start a thread that repeats the operation until the broker dies."""
        thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        try:
            client = Client(self.address)
        except GONE:
            return
        try:
            while True:
                self.step(client)
                self.steps += 1
        except GONE:
            pass
        except BaseException as error:
            self.failure = error
        finally:
            client.close()

    def prepare(self, client: Client) -> None:
        """Create the topics that the operation uses."""

    def step(self, client: Client) -> None:
        raise NotImplementedError

    def check(self, client: Client) -> None:
        """After a restart, compare the broker's state with the recorded state, and record the result."""
        raise NotImplementedError

    def make(self, client: Client, topic: str, **configs: str) -> None:
        until_done(lambda: client.create(topic, 1, self.replicas, **{**FOREVER, **configs}), topic)


def until_done(action: Callable[[], int], what: str) -> None:
    """Retry while the cluster is starting."""
    for _ in range(400):
        code = action()
        if code in (0, ALREADY_EXISTS):
            return
        if code not in RETRIABLE:
            raise Refused(what, code)
        threading.Event().wait(0.05)
    raise Refused(f"{what}, for 20 s", code)


def settled(action: Callable[[], T]) -> T:
    """Return the result of an action that may fail until the partitions have leaders."""
    for _ in range(400):
        try:
            return action()
        except Refused as error:
            last = error
            if error.code not in RETRIABLE | {UNKNOWN_TOPIC}:
                raise
        threading.Event().wait(0.05)
    raise last


class Topics(Operations):
    """Creates, grows, fills and deletes topics. Each topic created under the same name gets different
    records.

    In a cluster, a change without a response may still take effect after the next startup, so its topic name
    is no longer used.
    """

    name = "topics"

    def __init__(self, address: str, seed: int) -> None:
        super().__init__(address, seed)
        self.names = [f"made-{number}" for number in range(8)]
        self.counts: dict[str, int] = {}
        self.asked: tuple[str, int] | None = None
        """A topic name and the partition count requested without a response (0: deletion)."""
        self.lives: dict[str, int] = {}
        self.stored: dict[str, list[bytes]] = {}
        self.life = 0

    def step(self, client: Client) -> None:
        topic = self.chance.choice(self.names)
        count = self.counts.get(topic, 0)
        if not count:
            self.asked = topic, self.chance.randint(1, 3)
            self.life += 1
            self.lives[topic], self.stored[topic] = self.life, []
            code = client.create(topic, self.asked[1], self.replicas, **FOREVER)
        elif self.chance.random() < 0.4:
            self.asked = topic, 0
            code = client.delete(topic)
        elif self.chance.random() < 0.4 and count < 6:
            self.asked = topic, count + 1
            code = client.grow(topic, count + 1)
        else:
            value = b"life %d, %d" % (self.lives[topic], len(self.stored[topic]))
            self.stored[topic].append(value)
            code, offset = client.produce(topic, [value])
            if not code:
                expected = len(self.stored[topic]) - 1
                assert offset == expected, f"{topic}: offset {offset}, expected {expected}"
            else:
                self.stored[topic].pop()
            return
        if code == 0:
            self.counts[topic] = self.asked[1]
            self.asked = None
        elif code not in RETRIABLE | {UNKNOWN_TOPIC, ALREADY_EXISTS}:
            raise Refused(f"{self.asked}", code)
        elif self.replicas > 1:
            self._give_up(topic)
        else:
            self.counts[topic] = client.look(None).get(topic, 0)
            self.asked = None

    def _give_up(self, topic: str) -> None:
        self.names[self.names.index(topic)] = f"made-{self.life + 1000}"
        self.life += 1
        self.asked = None

    def check(self, client: Client) -> None:
        seen = client.look(None)
        for topic in self.names:
            allowed = {self.counts.get(topic, 0)}
            if self.asked is not None and self.asked[0] == topic:
                allowed.add(self.asked[1])
            assert seen.get(topic, 0) in allowed, f"{topic}: {seen.get(topic, 0)} partitions, not {allowed}"
            if topic in seen:
                self._check_records(client, topic)
        # Update the counts only now: a check that fails is repeated with the previous counts.
        self.counts.update((topic, seen.get(topic, 0)) for topic in self.names)
        if self.asked is not None and self.replicas > 1:
            self._give_up(self.asked[0])
        self.asked = None

    def _check_records(self, client: Client, topic: str) -> None:
        found = settled(lambda: client.records(topic, 0))
        values = [found[offset].value for offset in sorted(found)]
        known = self.stored.setdefault(topic, [])
        # The last record may have been in flight.
        assert values in (known, known[:-1]), f"{topic}: {values[-3:]}, expected {known[-3:]}"
        assert sorted(found) == list(range(len(values)))
        self.stored[topic] = [value for value in values if value is not None]


class Settings(Operations):
    """Changes a setting of a topic."""

    name = "settings"
    topic = "settings"

    def __init__(self, address: str, seed: int) -> None:
        super().__init__(address, seed)
        self.number = self.asked = 1_000_000

    def prepare(self, client: Client) -> None:
        self.make(client, self.topic, segment_bytes=str(self.number))

    def step(self, client: Client) -> None:
        self.asked = self.number + 1
        config = {"name": "segment.bytes", "config_operation": 0, "value": str(self.asked)}
        resource = {"resource_type": 2, "resource_name": self.topic, "configs": [config]}
        answer = client.ask_controller(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
        code = answer["responses"][0]["error_code"]
        if code and code not in RETRIABLE:
            raise Refused("IncrementalAlterConfigs", code)
        if not code:
            self.number = self.asked

    def check(self, client: Client) -> None:
        wanted = {"resource_type": 2, "resource_name": self.topic, "configuration_keys": ["segment.bytes"]}

        def value() -> int:
            answer = client.ask(ApiKey.DESCRIBE_CONFIGS, 1, {"resources": [wanted]})["results"][0]
            if answer["error_code"]:
                raise Refused("DescribeConfigs", answer["error_code"])
            return int(answer["configs"][0]["value"])

        found = settled(value)
        assert found in (self.number, self.asked), f"segment.bytes={found}, not {self.number}"
        self.number = self.asked = found


_CHECKS_OF_ALL = 20
_CHECKED_AGAIN = 100


class Records(Operations):
    """Writes numbered records, sometimes several to a batch, and reads them back."""

    name = "records"
    topic = "ledger"
    configs: dict[str, str] = {"segment_bytes": "20000"}

    def __init__(self, address: str, seed: int) -> None:
        super().__init__(address, seed)
        self.acknowledged = 0
        """Records below this offset must exist."""
        self.checks = 0
        self.checked = 0
        """The end offset of the last check."""
        self.sent: dict[int, bytes] = {}
        self.number = 0
        self.start = 0
        self.start_asked = 0

    def prepare(self, client: Client) -> None:
        self.make(client, self.topic, **self.configs)

    def step(self, client: Client) -> None:
        values = []
        for _ in range(self.chance.randint(1, 5)):
            self.number += 1
            values.append(b"%d:" % self.number + b"x" * self.chance.randint(0, 600))
        code, offset = client.produce(self.topic, values)
        if code:
            if code not in RETRIABLE:
                raise Refused(f"Produce to {self.topic}", code)
            return
        for place, value in enumerate(values, offset):
            self.sent[place] = value
        self.acknowledged = offset + len(values)

    def check(self, client: Client) -> None:
        start = settled(lambda: client.offset(self.topic, -2))
        assert self.start <= start <= max(self.start, self.start_asked), (
            f"{self.topic} starts at {start}, not at {self.start} or {self.start_asked}"
        )
        self.start = self.start_asked = start
        self.checks += 1
        # Checking all records takes longer each time, so usually check only new records and a few older ones.
        first = max(start, min(self.checked, self.acknowledged) - _CHECKED_AGAIN)
        if self.checks % _CHECKS_OF_ALL == 0:
            first = start
        found = settled(lambda: client.records(self.topic, first))
        for offset in range(first, self.acknowledged):
            if offset in self.sent:
                there = found.get(offset)
                assert there is not None, f"{self.topic}: offset {offset} is lost (end: {self.acknowledged})"
                assert there.value == self.sent[offset], f"{self.topic}: wrong record at offset {offset}"
        assert sorted(found) == list(range(first, first + len(found))), f"{self.topic}: gaps in the offsets"
        self.checked = first + len(found)
        for offset in [offset for offset in self.sent if offset < start]:
            del self.sent[offset]


class Unreplicated(Records):
    """Writes records, and batches with acks=1 that are not replicated when the brokers die: a different
    leader may truncate them, and replicated records take their offsets.
    """

    name = "truncation"
    topic = "replicated"

    def step(self, client: Client) -> None:
        if self.chance.random() < 0.5:
            client.produce(self.topic, [b"noise" * self.chance.randint(1, 50)], acks=1)
        else:
            super().step(client)


class FlushedRecords(Records):
    """Writes records that are each acknowledged after a flush shared with other requests (group commit)."""

    name = "group commit"
    topic = "flushed"
    configs = {"segment_bytes": "20000", "flush_messages": "1"}


class DeletedRecords(Records):
    """Writes records, and increases the log start offset (DeleteRecords)."""

    name = "DeleteRecords"
    topic = "trimmed"

    def step(self, client: Client) -> None:
        super().step(client)
        if self.chance.random() < 0.3 and self.acknowledged > self.start:
            self.start_asked = self.chance.randint(self.start, self.acknowledged)
            wanted = {"partition_index": 0, "offset": self.start_asked}
            topics = [{"name": self.topic, "partitions": [wanted]}]
            request = {"topics": topics, "timeout_ms": 10_000}
            answer = client.ask_leader(ApiKey.DELETE_RECORDS, 1, request, self.topic, 0)
            found = answer["topics"][0]["partitions"][0]
            if found["error_code"] and found["error_code"] not in RETRIABLE:
                raise Refused("DeleteRecords", found["error_code"])
            if not found["error_code"]:
                assert found["low_watermark"] == self.start_asked
                self.start = self.start_asked


class Moves(Records):
    """Writes records while the log moves between directories."""

    name = "moves"
    topic = "moving"

    def __init__(self, address: str, seed: int, directories: Sequence[str]) -> None:
        super().__init__(address, seed)
        self.directories = directories

    def step(self, client: Client) -> None:
        super().step(client)
        if self.chance.random() < 0.1:
            path = self.chance.choice(self.directories)
            request = {"dirs": [{"path": path, "topics": [{"name": self.topic, "partitions": [0]}]}]}
            answer = client.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, request)
            code = answer["results"][0]["partitions"][0]["error_code"]
            if code and code not in RETRIABLE:
                raise Refused("AlterReplicaLogDirs", code)


class LatestByKey(Operations):
    """Writes values for a few keys to a compacted topic, which must keep the last value of each key."""

    name = "compaction"
    topic = "compacted"

    def __init__(self, address: str, seed: int) -> None:
        super().__init__(address, seed)
        self.latest: dict[bytes, int] = {}
        self.number = 0

    def prepare(self, client: Client) -> None:
        self.make(
            client,
            self.topic,
            cleanup_policy="compact",
            segment_bytes="8000",
            min_cleanable_dirty_ratio="0.01",
        )

    def step(self, client: Client) -> None:
        self.number += 1
        key = b"key-%d" % self.chance.randint(0, 20)
        code, _ = client.produce(self.topic, [b"%d" % self.number + b":" + b"x" * 300], key=key)
        if code and code not in RETRIABLE:
            raise Refused("Produce to a compacted topic", code)
        if not code:
            self.latest[key] = self.number

    def check(self, client: Client) -> None:
        start = settled(lambda: client.offset(self.topic, -2))
        found: dict[bytes, int] = {}
        for _, record in sorted(settled(lambda: client.records(self.topic, start)).items()):
            assert record.key is not None and record.value is not None
            found[record.key] = int(record.value.partition(b":")[0])
        for key, number in self.latest.items():
            assert found.get(key, -1) >= number, f"{key!r} is {found.get(key)}, acknowledged: {number}"


class Positions(Operations):
    """Commits the offset of a group."""

    name = "positions"
    topic = "positions"

    def __init__(self, address: str, seed: int) -> None:
        super().__init__(address, seed)
        self.position = self.asked = 0

    def prepare(self, client: Client) -> None:
        self.make(client, self.topic)
        until_done(lambda: self._commit(client), "the first commit")

    def _commit(self, client: Client) -> int:
        partition = {"partition_index": 0, "committed_offset": self.asked}
        topics = [{"name": self.topic, "partitions": [partition]}]
        request: Plain = {"group_id": "readers", "generation_id_or_member_epoch": -1, "topics": topics}
        answer = client.ask_coordinator(ApiKey.OFFSET_COMMIT, 5, request)
        code = int(answer["topics"][0]["partitions"][0]["error_code"])
        if code:
            client.coordinator = -1
        return code

    def step(self, client: Client) -> None:
        self.asked = self.position + 1
        code = self._commit(client)
        if code and code not in RETRIABLE:
            raise Refused("OffsetCommit", code)
        if not code:
            self.position = self.asked

    def check(self, client: Client) -> None:
        topics = [{"name": self.topic, "partition_indexes": [0]}]

        def position() -> int:
            request = {"group_id": "readers", "topics": topics}
            answer: dict[str, Any] = client.ask_coordinator(ApiKey.OFFSET_FETCH, 3, request)
            code = answer["error_code"] or answer["topics"][0]["partitions"][0]["error_code"]
            if code:
                client.coordinator = -1
                raise Refused("OffsetFetch", code)
            return int(answer["topics"][0]["partitions"][0]["committed_offset"])

        found = settled(position)
        assert found in (self.position, self.asked), f"position {found}, committed {self.position}"
        self.position = self.asked = found
