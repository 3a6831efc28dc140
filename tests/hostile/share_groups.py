"""Attacks by members of share groups (KIP-932), and with the requests of brokers that belong to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain
from tests.hostile.attacks import (
    MANY,
    MIB,
    Attack,
    Strike,
    fresh,
    names,
    produce_frame,
    single,
    small_records,
)
from tests.hostile.client import ask, connect, request, take_answer
from tests.hostile.consumer_groups import await_coordinator, exchange, topics_for
from tests.support.process import wait_until

OFFSET_MAX = 2**63 - 1
MANY_PARTITIONS = 2_000
MANY_SESSIONS = 3_000
ACQUIRED = 2_000
"""Number of records in flight of a share-partition, which is the default limit."""
_PENDING = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    # The share coordinator may learn of a new topic later than the controller.
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.max.share.sessions": "100000",
}
"""Settings of the broker that is attacked."""


def heartbeat(group: str, member: str, epoch: int = 0, **fields: object) -> bytes:
    """Return a ShareGroupHeartbeat request, which joins the group if the epoch is 0."""
    given: Plain = {"group_id": group, "member_id": member, "member_epoch": epoch, **fields}
    return request(ApiKey.SHARE_GROUP_HEARTBEAT, 1, given)


def share_fetch(
    group: str, member: str, epoch: int, partitions: Iterable[tuple[UUID, int]], **fields: object
) -> bytes:
    """Return a ShareFetch request that does not wait."""
    topics: dict[UUID, list[Plain]] = {}
    for topic_id, number in partitions:
        topics.setdefault(topic_id, []).append({"partition_index": number})
    given: Plain = {
        "group_id": group,
        "member_id": member,
        "share_session_epoch": epoch,
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 50 * MIB,
        "max_records": 500,
        "batch_size": 500,
        "topics": [{"topic_id": topic_id, "partitions": found} for topic_id, found in topics.items()],
        **fields,
    }
    return request(ApiKey.SHARE_FETCH, 2, given)


def acknowledging(group: str, member: str, epoch: int, topic_id: UUID, batches: Sequence[Plain]) -> bytes:
    """Return a ShareAcknowledge request for partition 0."""
    partitions = [{"partition_index": 0, "acknowledgement_batches": batches}]
    given: Plain = {
        "group_id": group,
        "member_id": member,
        "share_session_epoch": epoch,
        "topics": [{"topic_id": topic_id, "partitions": partitions}],
    }
    return request(ApiKey.SHARE_ACKNOWLEDGE, 2, given)


def _acks(first: int, last: int, *types: int) -> Plain:
    return {"first_offset": first, "last_offset": last, "acknowledge_types": types or (1,)}


def topic_id_of(port: int, topic: str) -> UUID:
    """Return the ID of a topic, as soon as the broker knows it."""
    with Connection(f"127.0.0.1:{port}", timeout_s=60) as connection:
        found: Plain = {}

        def is_known() -> bool:
            found.update(connection.ask(ApiKey.METADATA, 12, {"topics": [{"name": topic}]})["topics"][0])
            return bool(found["error_code"] == ErrorCode.NONE)

        wait_until(is_known, 60, "a topic ID")
    topic_id: UUID = found["topic_id"]
    return topic_id


def initialize(port: int, group: str, topic_id: UUID, partitions: int, start_offset: int = 0) -> None:
    """Create the states of share-partitions, as group coordinators do, and wait until they exist."""
    parts = [
        {"partition": number, "state_epoch": 1, "start_offset": start_offset} for number in range(partitions)
    ]
    fields = {"group_id": group, "topics": [{"topic_id": topic_id, "partitions": parts}]}
    with Connection(f"127.0.0.1:{port}", timeout_s=60) as connection:

        def is_done() -> bool:
            answer = connection.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, fields)
            errors = {each["error_code"] for topic in answer["results"] for each in topic["partitions"]}
            assert errors <= {ErrorCode.NONE, *_PENDING}, errors
            return errors == {ErrorCode.NONE}

        wait_until(is_done, 60, "the states of share-partitions")


def await_share_coordinator(port: int) -> None:
    """Create `__consumer_offsets` and `__share_group_state`, and wait until all groups have coordinators."""
    await_coordinator(port)
    key = f"probe:{'A' * 22}:0"
    with Connection(f"127.0.0.1:{port}", timeout_s=60) as connection:

        def has_coordinator() -> bool:
            found = connection.ask(ApiKey.FIND_COORDINATOR, 6, {"key_type": 2, "coordinator_keys": [key]})
            return bool(found["coordinators"][0]["error_code"] == ErrorCode.NONE)

        wait_until(has_coordinator, 60, "the share coordinator")


def shared_topic(
    port: int, partitions: int = 1, *, records: int = 0, start_offset: int = 0
) -> tuple[str, UUID]:
    """Create a group's states for a new topic with `records` records in each partition. Return the group and
    the topic ID.
    """
    (topic,) = topics_for(port, 1, partitions)
    topic_id = topic_id_of(port, topic)
    group = fresh("shared")
    initialize(port, group, topic_id, partitions, start_offset)
    if records:
        batch = small_records(records)
        ask(port, produce_frame(topic, [(number, batch) for number in range(partitions)]))
    return group, topic_id


class Session:
    """A connection with a share session for one partition, in which the member has acquired records."""

    def __init__(self, port: int, group: str, topic_id: UUID) -> None:
        self.connection = connect(port)
        self.group, self.topic_id, self.epoch = group, topic_id, 0
        for _ in range(2):
            # The first fetch may come before the state is read.
            self.ask(self.fetch([(topic_id, 0)] if not self.epoch else [], max_wait_ms=1000))

    def fetch(self, partitions: Iterable[tuple[UUID, int]], **fields: object) -> bytes:
        frame = share_fetch(self.group, "m", self.epoch, partitions, max_records=ACQUIRED, **fields)
        self.epoch += 1
        return frame

    def acknowledge(self, batches: Sequence[Plain]) -> bytes:
        frame = acknowledging(self.group, "m", self.epoch, self.topic_id, batches)
        self.epoch += 1
        return frame

    def ask(self, *frames: bytes) -> None:
        for frame in frames:
            self.connection.sendall(frame)
            assert take_answer(self.connection) >= 0, "the broker closed the connection"

    def close(self) -> None:
        self.connection.close()


def _acknowledges(name: str, batches: Callable[[], Sequence[Plain]], everyday: bool = False) -> Attack:
    """A member that has acquired 2,000 records sends acknowledgements."""

    def prepare(port: int) -> Strike:
        session = Session(port, *shared_topic(port, records=ACQUIRED))
        frame = session.acknowledge(batches())

        def strike() -> None:
            session.connection.sendall(frame)
            # The broker closes the connection if a request has more than a million elements.
            take_answer(session.connection)
            session.close()

        return strike

    return Attack(name, prepare, everyday=everyday)


def _acquires_and_releases_each_record(port: int) -> Strike:
    """A split batch whose records change their states one by one, again and again."""
    session = Session(port, *shared_topic(port, records=ACQUIRED))
    frames = []
    for _ in range(3):
        frames.append(session.acknowledge([_acks(n, n, 2 if n % 2 else 1) for n in range(ACQUIRED)]))
        frames.append(session.acknowledge([_acks(n, n, 2) for n in range(1, ACQUIRED, 2)]))
        frames.append(session.fetch([]))

    def strike() -> None:
        session.ask(*frames)
        session.close()

    return strike


def _one_heartbeat(name: str, fields: Callable[[], Plain], member: str = "m", epoch: int = 0) -> Attack:
    def prepare(port: int) -> Strike:
        frame = heartbeat(fresh("single"), member, epoch, **fields())
        return lambda: ask(port, frame)

    return Attack(name, prepare)


def _many_members(members: int, topics: int, partitions: int) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        group, subscribed = fresh("crowd"), topics_for(port, topics, partitions)
        everyone = names(members, "member")
        joins = [heartbeat(group, member, subscribed_topic_names=subscribed) for member in everyone]
        leaves = [heartbeat(group, member, -1) for member in everyone]
        return lambda: exchange(port, itertools.chain(joins, leaves))

    return prepare


def _groups_made_and_left(count: int) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        (topic,) = topics_for(port, 1, 10)
        groups = names(count, fresh("each"))
        joins = [heartbeat(group, "m", subscribed_topic_names=[topic]) for group in groups]
        leaves = [heartbeat(group, "m", -1) for group in groups]
        deletions = [
            request(ApiKey.DELETE_GROUPS, 2, {"groups_names": groups[n : n + 100]})
            for n in range(0, count, 100)
        ]
        return lambda: exchange(port, itertools.chain(joins, leaves, deletions))

    return prepare


def _subscribes_to_many_partitions(port: int) -> Strike:
    (topic,) = topics_for(port, 1, MANY_PARTITIONS)
    frame = heartbeat(fresh("wide"), "m", subscribed_topic_names=[topic])
    return lambda: ask(port, frame)


def _altering(group: str, topic: str, partitions: Iterable[int], offset: int) -> bytes:
    parts = [{"partition_index": number, "start_offset": offset} for number in partitions]
    topics = [{"topic_name": topic, "partitions": parts}]
    return request(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, {"group_id": group, "topics": topics})


def _alters_many_offsets(port: int) -> Strike:
    (topic,) = topics_for(port, 1, MANY_PARTITIONS)
    frame = _altering(fresh("altered"), topic, range(MANY_PARTITIONS), 5)
    return lambda: ask(port, frame)


def _deletes_many_offsets(
    key: ApiKey, version: int, fields: Callable[[str, str], Plain]
) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        (topic,) = topics_for(port, 1, MANY_PARTITIONS)
        group = fresh("altered")
        ask(port, _altering(group, topic, range(MANY_PARTITIONS), 5))
        frame = request(key, version, fields(group, topic))
        return lambda: ask(port, frame)

    return prepare


def _deletes_topic(port: int) -> Strike:
    """A topic of 1,000 partitions is deleted while a member has acquired records of each."""
    topic, other = topics_for(port, 2, 1_000)
    group, topic_id = fresh("shared"), topic_id_of(port, topic)
    initialize(port, group, topic_id, 1_000)
    batch = small_records(10)
    ask(port, produce_frame(topic, [(number, batch) for number in range(1_000)]))
    connection = connect(port)
    everything = [(topic_id, number) for number in range(1_000)]
    for epoch in range(3):
        connection.sendall(share_fetch(group, "m", epoch, everything, max_records=10_000, max_wait_ms=500))
        take_answer(connection)
    frame = request(ApiKey.DELETE_TOPICS, 3, {"topic_names": [topic, other], "timeout_ms": 60_000})

    def strike() -> None:
        ask(port, frame)
        connection.close()

    return strike


def _far_offsets(port: int) -> Strike:
    """Start offsets, batches and acknowledgements at the end of the range of offsets."""
    (topic,) = topics_for(port, 1, 4)
    group, topic_id = fresh("far"), topic_id_of(port, topic)
    frames = [
        _altering(group, topic, range(4), OFFSET_MAX),
        _altering(group, topic, [-1, 2**31 - 1], -OFFSET_MAX),
    ]
    initialize(port, group, topic_id, 4)
    far = [{"first_offset": 0, "last_offset": OFFSET_MAX, "delivery_state": 2, "delivery_count": 1}]
    frames += [
        writing(group, topic_id, 0, far),
        writing(group, topic_id, 1, [{**far[0], "first_offset": OFFSET_MAX}]),
        writing(group, topic_id, 2, [{**far[0], "delivery_state": 0, "delivery_count": 2**15 - 1}]),
        writing(group, topic_id, 3, [{**far[0], "delivery_state": 99}], start_offset=OFFSET_MAX),
        share_fetch(group, "m", 0, [(topic_id, number) for number in range(4)], max_wait_ms=500),
    ]
    for epoch in range(1, 8):
        frames.append(share_fetch(group, "m", epoch, [], max_wait_ms=100))
        frames.append(
            acknowledging(
                group,
                "m",
                epoch + 1,
                topic_id,
                [_acks(0, OFFSET_MAX), _acks(OFFSET_MAX, OFFSET_MAX, epoch % 4)],
            )
        )
    return lambda: exchange(port, frames, 1)


def writing(
    group: str, topic_id: UUID, partition: int, batches: Sequence[Plain], start_offset: int = 0
) -> bytes:
    """Return a WriteShareGroupState request for one share-partition."""
    part = {
        "partition": partition,
        "state_epoch": 1,
        "leader_epoch": 0,
        "start_offset": start_offset,
        "delivery_complete_count": 0,
        "state_batches": batches,
    }
    topics = [{"topic_id": topic_id, "partitions": [part]}]
    return request(ApiKey.WRITE_SHARE_GROUP_STATE, 1, {"group_id": group, "topics": topics})


def _batches(count: int, gap: int) -> list[Plain]:
    return [
        {"first_offset": n * gap, "last_offset": n * gap, "delivery_state": 2, "delivery_count": n % 3}
        for n in range(count)
    ]


def _writes_batches(count: int, gap: int, times: int = 1) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        group, topic_id = shared_topic(port)
        frame = writing(group, topic_id, 0, _batches(count, gap))
        return lambda: exchange(port, [frame] * times, 1)

    return prepare


def _wrong_epochs(port: int) -> Strike:
    group, topic_id = shared_topic(port, records=10)
    frames = []
    for n in range(2_000):
        epoch = (7, -5, 2**31 - 1, -(2**31), -1)[n % 5]
        frames.append(share_fetch(group, "m", epoch, [(topic_id, 0)]))
        frames.append(acknowledging(group, "m", epoch, topic_id, [_acks(0, 5)]))
    return lambda: exchange(port, frames)


def _sessions_on_one_connection(port: int) -> Strike:
    group, topic_id = shared_topic(port, records=10)
    frames = [share_fetch(group, f"m-{n}", 0, [(topic_id, 0)]) for n in range(MANY_SESSIONS)]
    return lambda: exchange(port, frames)


def _abandoned_sessions(port: int) -> Strike:
    group, topic_id = shared_topic(port, records=10)
    frames = [share_fetch(group, f"m-{n}", 0, [(topic_id, 0)]) for n in range(1_000)]

    def strike() -> None:
        for frame in frames:
            ask(port, frame)

    return strike


def _waiting_sessions(port: int) -> Strike:
    """1,000 members wait for records of one partition, which then come one at a time."""
    (topic,) = topics_for(port, 1, 1)
    group, topic_id = fresh("waiting"), topic_id_of(port, topic)
    initialize(port, group, topic_id, 1)
    frames = [share_fetch(group, f"m-{n}", 0, [(topic_id, 0)], max_wait_ms=60_000) for n in range(1_000)]
    record = produce_frame(topic, [(0, small_records(1))])

    def strike() -> None:
        connections = []
        for frame in frames:
            connections.append(connect(port))
            connections[-1].sendall(frame)
        exchange(port, [record] * 20, 1)
        for connection in connections:
            connection.close()

    return strike


def _sessions_that_wait_for_many_partitions(port: int) -> Strike:
    (topic,) = topics_for(port, 1, 1_000)
    group, topic_id = fresh("wide"), topic_id_of(port, topic)
    initialize(port, group, topic_id, 1_000)
    everything = [(topic_id, number) for number in range(1_000)]
    frames = [share_fetch(group, f"m-{n}", 0, everything, max_wait_ms=60_000) for n in range(30)]
    records = [produce_frame(topic, [(number, small_records(1))]) for number in range(0, 1_000, 10)]

    def strike() -> None:
        connections = []
        for frame in frames:
            connections.append(connect(port))
            connections[-1].sendall(frame)
        exchange(port, records, 10)
        for connection in connections:
            connection.close()

    return strike


def _many_partitions(port: int) -> Strike:
    """A session of 2,000 partitions with records, which is opened, used, and abandoned."""
    group, topic_id = shared_topic(port, MANY_PARTITIONS, records=5)
    everything = [(topic_id, number) for number in range(MANY_PARTITIONS)]
    frames = [
        share_fetch(group, "m", 0, everything, max_wait_ms=500, max_records=100_000),
        *(share_fetch(group, "m", epoch, [], max_wait_ms=500, max_records=100_000) for epoch in range(1, 6)),
    ]
    return lambda: exchange(port, frames, 1)


def _unknown_partitions(port: int) -> Strike:
    """A session of 100,000 partitions of unknown topics, which is continued with as many others."""
    group = fresh("unknown")
    frames = [
        share_fetch(group, "m", epoch, [(UUID(int=epoch * MANY + n + 1), 0) for n in range(MANY)])
        for epoch in range(2)
    ]
    return lambda: exchange(port, frames, 1)


def _replaces_session(port: int) -> Strike:
    """A session of 200,000 partitions of unknown topics is replaced by another one, and ends."""
    group = fresh("replaced")
    everything = [(UUID(int=n + 1), 0) for n in range(2 * MANY)]
    frames = [share_fetch(group, "m", 0, everything)] * 2
    return lambda: exchange(port, frames, 1)


def _acknowledges_many_partitions(port: int) -> Strike:
    """A session of one partition acknowledges 200,000 others, with both requests."""
    group, topic_id = shared_topic(port, records=10)
    partitions = [{"partition_index": n, "acknowledgement_batches": [_acks(0, 0)]} for n in range(2 * MANY)]
    topics = [{"topic_id": topic_id, "partitions": partitions}]
    given: Plain = {"group_id": group, "member_id": "m", "share_session_epoch": 2, "topics": topics}
    frames = [
        share_fetch(group, "m", 0, [(topic_id, 0)]),
        share_fetch(group, "m", 1, [], topics=topics),
        request(ApiKey.SHARE_ACKNOWLEDGE, 2, given),
    ]
    return lambda: exchange(port, frames, 1)


def _forgets(count: int) -> Callable[[int], Strike]:
    """A session forgets partitions. The broker closes the connection if a request has more than four million
    numbers.
    """

    def prepare(port: int) -> Strike:
        group, topic_id = shared_topic(port, records=10)
        forgotten = [{"topic_id": topic_id, "partitions": range(count)}]
        opening = share_fetch(group, "m", 0, [(topic_id, n) for n in range(MANY)])
        forgetting = share_fetch(group, "m", 1, [], forgotten_topics_data=forgotten)

        def strike() -> None:
            with connect(port) as connection:
                for frame in (opening, forgetting):
                    connection.sendall(frame)
                    take_answer(connection)

        return strike

    return prepare


def _described_often(members: int, times: int) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        (topic,) = topics_for(port, 1, 100)
        group = fresh("described")
        exchange(port, [heartbeat(group, each, subscribed_topic_names=[topic]) for each in names(members)])
        frame = request(ApiKey.SHARE_GROUP_DESCRIBE, 1, {"group_ids": [group] * times})
        return lambda: ask(port, frame)

    return prepare


def _describes_offsets(port: int) -> Strike:
    (topic,) = topics_for(port, 1, MANY_PARTITIONS)
    group = fresh("altered")
    ask(port, _altering(group, topic, range(MANY_PARTITIONS), 5))
    fields = {"groups": [{"group_id": group, "topics": None}] * 3}
    frame = request(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, fields)
    return lambda: ask(port, frame)


def _state_request(name: str, key: ApiKey, version: int, part: Plain) -> Attack:
    """A request of brokers for 100,000 share-partitions of an unknown topic."""
    return single(
        name,
        key,
        version,
        lambda: {
            "group_id": "g",
            "topics": [
                {"topic_id": UUID(int=7), "partitions": [{**part, "partition": n} for n in range(MANY)]}
            ],
        },
    )


def _after_coordinator(attack: Attack) -> Attack:
    def prepare(port: int) -> Strike:
        await_share_coordinator(port)
        return attack.prepare(port)

    return replace(attack, prepare=prepare)


_ATTACKS = (
    _one_heartbeat(
        "share heartbeat that subscribes to 100,000 unknown topics",
        lambda: {"subscribed_topic_names": names(MANY)},
    ),
    _one_heartbeat(
        "share heartbeat that subscribes to one topic 1,000,000 times",
        lambda: {"subscribed_topic_names": ["absent"] * 1_000_000},
    ),
    _one_heartbeat(
        "share heartbeat with a topic name of 20 MiB", lambda: {"subscribed_topic_names": ["x" * 20 * MIB]}
    ),
    _one_heartbeat(
        "share heartbeat with a member ID of 20 MiB",
        lambda: {"subscribed_topic_names": ["absent"]},
        member="m" * 20 * MIB,
    ),
    Attack("share group with 2,000 partitions", _subscribes_to_many_partitions),
    single(
        "ShareGroupDescribe for 100,000 groups",
        ApiKey.SHARE_GROUP_DESCRIBE,
        1,
        lambda: {"group_ids": names(MANY), "include_authorized_operations": True},
    ),
    Attack("ShareGroupDescribe that lists a group of 150 members 2,000 times", _described_often(150, 2000)),
    single(
        "DescribeShareGroupOffsets for 100,000 groups",
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        1,
        lambda: {"groups": [{"group_id": name, "topics": None} for name in names(MANY)]},
        everyday=True,
    ),
    single(
        "DescribeShareGroupOffsets for 100,000 partitions of an unknown topic",
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        1,
        lambda: {
            "groups": [
                {"group_id": "g", "topics": [{"topic_name": "absent", "partitions": list(range(MANY))}]}
            ]
        },
    ),
    single(
        "DescribeShareGroupOffsets for 100,000 unknown topics",
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        1,
        lambda: {
            "groups": [
                {
                    "group_id": "g",
                    "topics": [{"topic_name": name, "partitions": [0]} for name in names(MANY)],
                }
            ]
        },
    ),
    Attack("DescribeShareGroupOffsets of 2,000 partitions", _describes_offsets),
    single(
        "AlterShareGroupOffsets for 100,000 partitions of an unknown topic",
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        lambda: {
            "group_id": "g",
            "topics": [
                {
                    "topic_name": "absent",
                    "partitions": [{"partition_index": n, "start_offset": n} for n in range(MANY)],
                }
            ],
        },
    ),
    single(
        "AlterShareGroupOffsets for 100,000 unknown topics",
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        lambda: {
            "group_id": "g",
            "topics": [
                {"topic_name": name, "partitions": [{"partition_index": 0, "start_offset": 1}]}
                for name in names(MANY)
            ],
        },
    ),
    single(
        "DeleteShareGroupOffsets for 100,000 topics",
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        lambda: {"group_id": "g", "topics": [{"topic_name": name} for name in names(MANY)]},
    ),
    Attack("AlterShareGroupOffsets of 2,000 partitions", _alters_many_offsets, everyday=True),
    Attack(
        "DeleteShareGroupOffsets of 2,000 partitions",
        _deletes_many_offsets(
            ApiKey.DELETE_SHARE_GROUP_OFFSETS,
            0,
            lambda group, topic: {"group_id": group, "topics": [{"topic_name": topic}]},
        ),
    ),
    Attack(
        "DeleteGroups of a share group with 2,000 partitions",
        _deletes_many_offsets(ApiKey.DELETE_GROUPS, 2, lambda group, topic: {"groups_names": [group]}),
    ),
    Attack("DeleteTopics of 1,000 partitions whose records are acquired", _deletes_topic),
    Attack("offsets up to 2^63-1", _far_offsets, everyday=True),
    _state_request(
        "InitializeShareGroupState for 100,000 share-partitions",
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        0,
        {"state_epoch": 1, "start_offset": 0},
    ),
    _state_request(
        "ReadShareGroupState for 100,000 share-partitions",
        ApiKey.READ_SHARE_GROUP_STATE,
        0,
        {"leader_epoch": 1},
    ),
    _state_request(
        "WriteShareGroupState for 100,000 share-partitions",
        ApiKey.WRITE_SHARE_GROUP_STATE,
        1,
        {"state_epoch": 1, "leader_epoch": 0, "state_batches": _batches(1, 1)},
    ),
    _state_request(
        "DeleteShareGroupState for 100,000 share-partitions", ApiKey.DELETE_SHARE_GROUP_STATE, 0, {}
    ),
    Attack("WriteShareGroupState with 500,000 adjacent batches", _writes_batches(500_000, 1)),
    Attack("WriteShareGroupState with 500,000 separate batches", _writes_batches(500_000, 2)),
    Attack(
        "WriteShareGroupState with 10,000 batches, 20 times", _writes_batches(10_000, 2, 20), everyday=True
    ),
    _acknowledges(
        "ShareAcknowledge with 1,000,000 batches",
        lambda: [_acks(n, n) for n in range(1_000_000)],
    ),
    _acknowledges(
        "ShareAcknowledge with 200,000 batches",
        lambda: [_acks(n, n) for n in range(200_000)],
    ),
    _acknowledges(
        "ShareAcknowledge with 200,000 batches of the same offset",
        lambda: [_acks(0, 0)] * 200_000,
    ),
    _acknowledges(
        "ShareAcknowledge with 2,000,000 types",
        lambda: [_acks(0, 1_999_999, *([1] * 2_000_000))],
    ),
    _acknowledges(
        "ShareAcknowledge with 3,000,000 types of one batch",
        lambda: [_acks(0, 2_999_999, *([1, 2] * 1_500_000))],
    ),
    _acknowledges(
        "ShareAcknowledge with 20,000,000 types",
        lambda: [_acks(0, 19_999_999, *([1] * 20_000_000))],
    ),
    _acknowledges("ShareAcknowledge of all offsets", lambda: [_acks(0, OFFSET_MAX)]),
    _acknowledges(
        "ShareAcknowledge with alternating types",
        lambda: [_acks(0, ACQUIRED - 1, *([1, 2] * (ACQUIRED // 2)))],
        everyday=True,
    ),
    Attack("2,000 records that are released one by one, again and again", _acquires_and_releases_each_record),
    Attack("ShareFetch of 2,000 partitions with records", _many_partitions, everyday=True),
    Attack("ShareFetch of 200,000 partitions of unknown topics", _unknown_partitions),
    Attack("a share session of 200,000 partitions that is replaced", _replaces_session),
    Attack("acknowledgements of 200,000 partitions", _acknowledges_many_partitions),
    Attack("ShareFetch that forgets 1,000,000 partitions", _forgets(1_000_000)),
    Attack("ShareFetch that forgets 8,000,000 partitions", _forgets(8_000_000)),
    Attack("4,000 requests with wrong epochs of share sessions", _wrong_epochs, is_flood=True),
    Attack("3,000 share sessions on one connection", _sessions_on_one_connection, is_flood=True),
    Attack("1,000 share sessions that are abandoned", _abandoned_sessions, is_flood=True, everyday=True),
    Attack("1,000 share sessions that wait for one partition", _waiting_sessions, is_flood=True),
    Attack(
        "30 share sessions that wait for 1,000 partitions",
        _sessions_that_wait_for_many_partitions,
        is_flood=True,
    ),
    Attack("150 members that join and leave a share group", _many_members(150, 20, 20), is_flood=True),
    Attack("1,000 share groups that are made, left and deleted", _groups_made_and_left(1_000), is_flood=True),
)

SHARE_GROUPS = tuple(map(_after_coordinator, _ATTACKS))
"""All attacks of this module."""
