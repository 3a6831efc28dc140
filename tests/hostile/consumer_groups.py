"""Attacks by members of consumer groups (KIP-848), and with the versions of APIs that belong to them."""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from uuid import UUID

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain
from tests.hostile.attacks import MANY, MIB, Attack, Strike, fresh, names, single
from tests.hostile.client import ask, connect, joining, pour, request, take_answer
from tests.support.process import wait_until

LIVE_MEMBERS = 10_000
LONGEST = 32_767
"""The length of the longest string in a request."""
MANY_PARTITIONS = 5_000
_GROUP_RESOURCE = 32
_NO_SUCH_ID = UUID(int=7)


def heartbeat(group: str, member: str, epoch: int = 0, **fields: object) -> bytes:
    """Return a ConsumerGroupHeartbeat request, which joins the group if the epoch is 0."""
    given: Plain = {"group_id": group, "member_id": member, "member_epoch": epoch, **fields}
    if epoch == 0:
        given = {"rebalance_timeout_ms": 10_000, "topic_partitions": [], **given}
    return request(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, given)


def await_coordinator(port: int) -> None:
    """Create `__consumer_offsets`, and wait until all groups have a coordinator."""
    groups = names(20, "probe")
    with Connection(f"127.0.0.1:{port}", timeout_s=60) as connection:
        connection.ask(ApiKey.FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": groups})

        def has_loaded() -> bool:
            found = connection.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": groups})
            return all(group["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND for group in found["groups"])

        wait_until(has_loaded, 60, "coordinators of all groups")


def exchange(port: int, frames: Iterable[bytes], window: int = 100) -> None:
    """Send requests on one connection, up to `window` of them ahead of the responses."""
    with connect(port) as connection:
        waiting = 0
        for frame in frames:
            connection.sendall(frame)
            waiting += 1
            if waiting == window:
                _take(connection, 1)
                waiting -= 1
        _take(connection, waiting)


def _take(connection: socket.socket, count: int) -> None:
    for _ in range(count):
        assert take_answer(connection) >= 0, "the broker closed the connection"


def topics_for(port: int, count: int, partitions: int) -> list[str]:
    """Create topics, and return their names."""
    created = names(count, fresh("groups"))
    wanted = [{"name": name, "num_partitions": partitions, "replication_factor": 1} for name in created]
    ask(port, request(ApiKey.CREATE_TOPICS, 5, {"topics": wanted, "timeout_ms": 60_000}))
    return created


def crowd(group: str, topics: list[str], count: int) -> tuple[list[bytes], list[bytes]]:
    """Return the heartbeats with which `count` members join a group, and those with which they leave."""
    members = [f"member-{number}" for number in range(count)]
    joins = [heartbeat(group, member, subscribed_topic_names=topics) for member in members]
    return joins, [heartbeat(group, member, -1) for member in members]


def _one_heartbeat(name: str, fields: Callable[[], Plain], member: str = "m", epoch: int = 0) -> Attack:
    def prepare(port: int) -> Strike:
        group = fresh("single")
        frame = heartbeat(group, member, epoch, **fields())
        return lambda: ask(port, frame)

    return Attack(name, prepare)


def _member(name: str, fields: Callable[[], Plain], everyday: bool = False) -> Attack:
    """A member that joins, and then sends a heartbeat with these fields."""

    def prepare(port: int) -> Strike:
        (topic,) = topics_for(port, 1, 10)
        group = fresh("member")
        ask(port, heartbeat(group, "m", subscribed_topic_names=[topic]))
        frame = heartbeat(group, "m", 2, **fields())
        return lambda: ask(port, frame)

    return Attack(name, prepare, everyday=everyday)


def _owned_by_nobody() -> Plain:
    return {"topic_partitions": [{"topic_id": UUID(int=n), "partitions": [0]} for n in range(1, MANY)]}


def _many_members(members: int, topics: int, partitions: int) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        joins, leaves = crowd(fresh("crowd"), topics_for(port, topics, partitions), members)
        return lambda: exchange(port, itertools.chain(joins, leaves))

    return prepare


def _different_members(port: int) -> Strike:
    group, topics = fresh("different"), topics_for(port, 200, 5)
    frames = [
        heartbeat(group, f"member-{n}", subscribed_topic_names=topics[n % 100 : n % 100 + 100])
        for n in range(1000)
    ]
    return lambda: exchange(port, frames)


def _all_topics_by_one_member(port: int) -> Strike:
    topics = topics_for(port, 500, 10)
    frame = heartbeat(fresh("all"), "m", subscribed_topic_names=topics)
    return lambda: ask(port, frame)


def _members_with_many_topics(members: int, topics: int, prefix: str) -> Callable[[int], Strike]:
    """Members whose subscriptions are as long as a record may be."""

    def prepare(port: int) -> Strike:
        group = fresh("unknown")
        unknown = [f"{prefix}{number:x}" for number in range(topics)]
        frames = [heartbeat(group, f"m-{n}", subscribed_topic_names=unknown[n:]) for n in range(members)]
        return lambda: exchange(port, frames)

    return prepare


def _flipping(port: int) -> Strike:
    group, topics = fresh("flip"), topics_for(port, 200, 5)
    frames = [
        heartbeat(group, "m", subscribed_topic_names=topics[:100] if n % 2 else topics[100:])
        for n in range(2000)
    ]
    return lambda: exchange(port, frames)


def _regexes(count: int, regex: Callable[[int], str], topics: int = 500) -> Callable[[int], Strike]:
    """Members of one group with a regular expression each, which must all be resolved."""

    def prepare(port: int) -> Strike:
        topics_for(port, topics, 1)
        group = fresh("regexes")
        frames = [heartbeat(group, f"m-{n}", subscribed_topic_regex=regex(n)) for n in range(count)]
        return lambda: exchange(port, frames)

    return prepare


def _groups(port: int) -> Strike:
    (topic,) = topics_for(port, 1, 10)
    prefix = fresh("each")
    frames = [heartbeat(f"{prefix}-{n}", "m", subscribed_topic_names=[topic]) for n in range(5000)]
    return lambda: pour(port, frames, 10)


def _same_hash() -> Iterator[str]:
    """Yield 4,096 strings whose hash code in Java is the same."""
    for parts in itertools.product(("Aa", "BB"), repeat=12):
        yield "".join(parts)


def _colliding_members(port: int) -> Strike:
    (topic,) = topics_for(port, 1, 100)
    group = fresh("colliding")
    frames = [heartbeat(group, member, subscribed_topic_names=[topic]) for member in _same_hash()]
    return lambda: exchange(port, frames)


def _described_often(members: int, times: int) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        (topic,) = topics_for(port, 1, 100)
        group = fresh("described")
        joins, _ = crowd(group, [topic], members)
        exchange(port, joins)
        frame = request(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": [group] * times})
        return lambda: ask(port, frame)

    return prepare


def _long_member_ids(port: int) -> Strike:
    (topic,) = topics_for(port, 1, 10)
    group = fresh("long")
    frames = [
        heartbeat(group, f"{n:05}" + "m" * (LONGEST - 5), subscribed_topic_names=[topic]) for n in range(100)
    ]
    return lambda: exchange(port, frames)


def _upgraded_crowd(port: int) -> Strike:
    """A classic group of 500 members, which a member of the consumer protocol converts."""
    group = fresh("upgraded")
    frame = request(ApiKey.JOIN_GROUP, 3, joining(group, bytes(10)))
    last = heartbeat(group, "m", subscribed_topic_names=["absent"])

    def strike() -> None:
        connections = []
        for _ in range(500):
            connections.append(connect(port))
            connections[-1].sendall(frame)
        # A group can be converted when its first rebalance has ended.
        for connection in connections:
            take_answer(connection)
        ask(port, last)
        for connection in connections:
            connection.close()

    return strike


def _described_classic_group(port: int) -> Strike:
    """A request that describes a classic group of 200 members 1,000 times."""
    group = fresh("classic")
    connections = [connect(port) for _ in range(200)]
    for connection in connections:
        connection.sendall(request(ApiKey.JOIN_GROUP, 3, joining(group, bytes(10))))
    for connection in connections:
        take_answer(connection)
    frame = request(ApiKey.DESCRIBE_GROUPS, 5, {"groups": [group] * 1000})

    def strike() -> None:
        ask(port, frame)
        for connection in connections:
            connection.close()

    return strike


def _subscription(names: Iterable[str]) -> bytes:
    """Encode the subscription of a consumer that sends JoinGroup."""
    encoded = [name.encode() for name in names]
    topics = b"".join(struct.pack(">h", len(name)) + name for name in encoded)
    return struct.pack(">hi", 1, len(encoded)) + topics + struct.pack(">ii", -1, 0)


def _joins_consumer_group(port: int) -> Strike:
    """A classic member of a consumer group that subscribes to very many topics."""
    group = fresh("mixed")
    ask(port, heartbeat(group, "m", subscribed_topic_names=["absent"]))
    frame = request(ApiKey.JOIN_GROUP, 3, joining(group, _subscription(names(150_000, ""))))
    return lambda: ask(port, frame)


def _joins_classic_group(metadata: Callable[[], bytes]) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        frame = request(ApiKey.JOIN_GROUP, 3, joining(fresh("large"), metadata()))
        return lambda: ask(port, frame)

    return prepare


def _upgraded_member(port: int) -> Strike:
    """A classic member that subscribes to very many topics, and a member that converts its group."""
    group = fresh("upgraded")
    join = request(ApiKey.JOIN_GROUP, 3, joining(group, _subscription(names(150_000, ""))))
    last = heartbeat(group, "m", subscribed_topic_names=["absent"])

    ask(port, join)
    return lambda: ask(port, last)


def _leaving(group: Callable[[int], str]) -> Callable[[int], Strike]:
    def prepare(port: int) -> Strike:
        members = [{"member_id": name} for name in names(MANY)]
        frame = request(ApiKey.LEAVE_GROUP, 5, {"group_id": group(port), "members": members})
        return lambda: ask(port, frame)

    return prepare


def _consumer_group(port: int) -> str:
    group = fresh("consumer")
    ask(port, heartbeat(group, "m", subscribed_topic_names=["absent"]))
    return group


def _commit(group: str, topic: str, partitions: int, version: int = 8) -> bytes:
    parts = [{"partition_index": each, "committed_offset": each} for each in range(partitions)]
    return request(
        ApiKey.OFFSET_COMMIT, version, {"group_id": group, "topics": [{"name": topic, "partitions": parts}]}
    )


def _many_offsets(port: int) -> tuple[str, str]:
    """Return a group and a topic, whose partitions all have committed offsets."""
    (topic,) = topics_for(port, 1, MANY_PARTITIONS)
    group = fresh("offsets")
    ask(port, _commit(group, topic, MANY_PARTITIONS))
    return group, topic


def _commits_many_offsets(port: int) -> Strike:
    (topic,) = topics_for(port, 1, MANY_PARTITIONS)
    frame = _commit(fresh("offsets"), topic, MANY_PARTITIONS)
    return lambda: ask(port, frame)


def _commits_many_offsets_in_a_transaction(port: int) -> Strike:
    (topic,) = topics_for(port, 1, MANY_PARTITIONS)
    one = fresh("transactional")
    with Connection(f"127.0.0.1:{port}", timeout_s=60) as connection:
        connection.ask(ApiKey.FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": [one]})
        found: Plain = {}

        def has_begun() -> bool:
            fields = {"transactional_id": one, "transaction_timeout_ms": 60_000}
            found.update(connection.ask(ApiKey.INIT_PRODUCER_ID, 4, fields))
            return bool(found["error_code"] == ErrorCode.NONE)

        wait_until(has_begun, 60, "a producer ID")
    identity = {"transactional_id": one, "producer_id": found["producer_id"]}
    epoch = {"producer_epoch": found["producer_epoch"]}
    parts = [{"partition_index": each, "committed_offset": each} for each in range(MANY_PARTITIONS)]
    commit = request(
        ApiKey.TXN_OFFSET_COMMIT,
        5,
        {
            **identity,
            **epoch,
            "group_id": fresh("offsets"),
            "topics": [{"name": topic, "partitions": parts}],
        },
    )
    end = request(ApiKey.END_TXN, 5, {**identity, **epoch, "committed": True})
    return lambda: exchange(port, [commit, end], 1)


def _deletes_group_of_many_offsets(port: int) -> Strike:
    group, _ = _many_offsets(port)
    frame = request(ApiKey.DELETE_GROUPS, 2, {"groups_names": [group]})
    return lambda: ask(port, frame)


def _deletes_offsets_of_large_subscription(port: int) -> Strike:
    (topic,) = topics_for(port, 1, 1_000)
    group = fresh("deleted")
    ask(port, heartbeat(group, "m", subscribed_topic_names=names(70_000)))
    parts = [{"partition_index": each} for each in range(1_000)]
    topics = [{"name": topic, "partitions": parts}]
    frame = request(ApiKey.OFFSET_DELETE, 0, {"group_id": group, "topics": topics})
    return lambda: ask(port, frame)


def _deletes_topic_of_many_groups(port: int) -> Strike:
    topic, other = topics_for(port, 2, 1_000)
    prefix = fresh("each")
    exchange(port, (_commit(f"{prefix}-{n}", topic, 1) for n in range(3_000)))
    frame = request(ApiKey.DELETE_TOPICS, 3, {"topic_names": [topic, other], "timeout_ms": 60_000})
    return lambda: ask(port, frame)


def _group_config(number: int, name: str, value: str) -> Plain:
    return {
        "resource_type": _GROUP_RESOURCE,
        "resource_name": f"absent-{number}",
        "configs": [{"name": name, "config_operation": 0, "value": value}],
    }


def _altered(name: str, resources: Callable[[], list[Plain]]) -> Attack:
    return single(
        name,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        lambda: {"resources": resources()},
        leaves_work=True,
    )


def _by_id(key: str, partitions: str, one: Callable[[int], object]) -> Callable[[], Plain]:
    """Return 100,000 topics with an unknown ID and one partition each."""
    return lambda: {key: [{"topic_id": UUID(int=n + 1), partitions: [one(n)]} for n in range(MANY)]}


def _after_coordinator(attack: Attack) -> Attack:
    def prepare(port: int) -> Strike:
        await_coordinator(port)
        return attack.prepare(port)

    return replace(attack, prepare=prepare)


_ATTACKS = (
    _one_heartbeat(
        "heartbeat that subscribes to 100,000 unknown topics",
        lambda: {"subscribed_topic_names": names(MANY)},
    ),
    Attack("10 members with 70,000 unknown topics each", _members_with_many_topics(10, 70_000, "absent")),
    Attack("2 members with 200,000 unknown topics each", _members_with_many_topics(2, 200_000, "")),
    _one_heartbeat(
        "heartbeat that subscribes to one topic 1,000,000 times",
        lambda: {"subscribed_topic_names": ["absent"] * 1_000_000},
    ),
    _one_heartbeat(
        "heartbeat with a topic name of 20 MiB", lambda: {"subscribed_topic_names": ["x" * 20 * MIB]}
    ),
    _one_heartbeat(
        "heartbeat with a regular expression of 32,767 letters",
        lambda: {"subscribed_topic_regex": "x" * LONGEST},
    ),
    _one_heartbeat(
        "heartbeat with a regular expression of 3,000 alternatives",
        lambda: {"subscribed_topic_regex": "|".join(names(3_000, "x"))},
    ),
    _one_heartbeat(
        "heartbeat with a regular expression of 32,767 brackets",
        lambda: {"subscribed_topic_regex": "(" * LONGEST},
    ),
    _one_heartbeat(
        "heartbeat with a regular expression that repeats repetitions",
        lambda: {"subscribed_topic_regex": "((((a{0,1000}){0,1000}){0,1000}){0,1000})" * 700},
    ),
    _one_heartbeat(
        "heartbeat with a member ID of 20 MiB",
        lambda: {"subscribed_topic_names": ["absent"]},
        member="m" * 20 * MIB,
    ),
    Attack("100 members with IDs of 32,767 characters", _long_member_ids),
    _one_heartbeat("heartbeat of an unknown member that owns 100,000 partitions", _owned_by_nobody, epoch=5),
    _member("heartbeat of a member that owns 100,000 unknown partitions", _owned_by_nobody, everyday=True),
    _member(
        "heartbeat of a member that owns one partition 1,000,000 times",
        lambda: {"topic_partitions": [{"topic_id": _NO_SUCH_ID, "partitions": [0] * 1_000_000}]},
    ),
    _member(
        "heartbeat of a member that changes its subscription to 100,000 topics",
        lambda: {"subscribed_topic_names": names(MANY)},
    ),
    Attack("member of a consumer group with 500 topics of 10 partitions", _all_topics_by_one_member),
    single(
        "ConsumerGroupDescribe for 100,000 groups",
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        lambda: {"group_ids": names(MANY), "include_authorized_operations": True},
        everyday=True,
    ),
    Attack(
        "ConsumerGroupDescribe that lists a group of 1,000 members 1,000 times", _described_often(1000, 1000)
    ),
    Attack("DescribeGroups that lists a group of 200 members 1,000 times", _described_classic_group),
    Attack("ConsumerGroupDescribe of a group of 5,000 members", _described_often(5000, 1)),
    single("DescribeGroups 6 for 100,000 groups", ApiKey.DESCRIBE_GROUPS, 6, lambda: {"groups": names(MANY)}),
    single(
        "ListGroups with 100,000 states and types",
        ApiKey.LIST_GROUPS,
        5,
        lambda: {"states_filter": names(MANY), "types_filter": names(MANY)},
    ),
    single(
        "OffsetCommit for 100,000 unknown topic IDs",
        ApiKey.OFFSET_COMMIT,
        10,
        lambda: {
            "group_id": "g",
            **_by_id("topics", "partitions", lambda n: {"partition_index": 0, "committed_offset": n})(),
        },
    ),
    single(
        "OffsetFetch for 100,000 unknown topic IDs",
        ApiKey.OFFSET_FETCH,
        10,
        lambda: {"groups": [{"group_id": "g", **_by_id("topics", "partition_indexes", lambda n: n)()}]},
    ),
    single(
        "OffsetFetch for 100,000 groups",
        ApiKey.OFFSET_FETCH,
        10,
        lambda: {"groups": [{"group_id": name, "topics": None} for name in names(MANY)]},
    ),
    single(
        "TxnOffsetCommit for 100,000 unknown topic IDs",
        ApiKey.TXN_OFFSET_COMMIT,
        6,
        lambda: {
            "group_id": "g",
            "transactional_id": "t",
            **_by_id("topics", "partitions", lambda n: {"partition_index": 0, "committed_offset": n})(),
        },
    ),
    single(
        "ListOffsets 11 for 100,000 partitions",
        ApiKey.LIST_OFFSETS,
        11,
        lambda: {
            "topics": [
                {
                    "name": "absent",
                    "partitions": [{"partition_index": n, "timestamp": -6} for n in range(MANY)],
                }
            ]
        },
    ),
    single(
        "DescribeConfigs for 100,000 groups",
        ApiKey.DESCRIBE_CONFIGS,
        4,
        lambda: {
            "resources": [
                {
                    "resource_type": _GROUP_RESOURCE,
                    "resource_name": name,
                    "configuration_keys": ["consumer.session.timeout.ms"],
                }
                for name in names(MANY)
            ]
        },
    ),
    single(
        "DescribeConfigs for the group with a name of 20 MiB",
        ApiKey.DESCRIBE_CONFIGS,
        4,
        lambda: {
            "resources": [
                {
                    "resource_type": _GROUP_RESOURCE,
                    "resource_name": "g" * 20 * MIB,
                    "configuration_keys": None,
                }
            ]
        },
    ),
    _altered(
        "IncrementalAlterConfigs for 100,000 groups, out of range",
        lambda: [_group_config(n, "consumer.session.timeout.ms", "9" * 100) for n in range(MANY)],
    ),
    _altered(
        "IncrementalAlterConfigs for a group with a value of 20 MiB",
        lambda: [_group_config(0, "consumer.session.timeout.ms", "9" * 20 * MIB)],
    ),
    _altered(
        "IncrementalAlterConfigs for a group with 100,000 settings",
        lambda: [
            {
                "resource_type": _GROUP_RESOURCE,
                "resource_name": "absent",
                "configs": [
                    {"name": f"setting.{n}", "config_operation": 0, "value": "1"} for n in range(MANY)
                ],
            }
        ],
    ),
    _altered(
        "IncrementalAlterConfigs for 2,000 groups",
        lambda: [_group_config(n, "consumer.heartbeat.interval.ms", "6000") for n in range(2000)],
    ),
    Attack(
        "10,000 members that join and leave one consumer group",
        _many_members(LIVE_MEMBERS, 1, 100),
        is_flood=True,
    ),
    Attack(
        "1,000 members that join and leave one consumer group of 100 topics",
        _many_members(1000, 100, 10),
        is_flood=True,
        everyday=True,
    ),
    Attack("1,000 members with different subscriptions", _different_members, is_flood=True),
    Attack("2,000 heartbeats that change the subscription", _flipping, is_flood=True, everyday=True),
    Attack(
        "1,000 regular expressions in one consumer group",
        _regexes(1000, lambda n: f".*-{n}(foo|bar)*[0-9]+"),
        is_flood=True,
    ),
    Attack(
        "20 large regular expressions in one consumer group",
        _regexes(20, lambda n: f"({n}|" + "|".join(names(3_000, "x")) + ")"),
        is_flood=True,
    ),
    Attack(
        "100 slow regular expressions in one consumer group",
        _regexes(100, lambda n: "(.*)" * 50 + f"{n}" + "(x+x+)+y" + "[a-z]{0,100}" * 5),
        is_flood=True,
    ),
    Attack("5,000 consumer groups with one member each", _groups, is_flood=True),
    Attack("4,096 members whose IDs have the same hash code", _colliding_members, is_flood=True),
    Attack("classic group of 500 members that is converted", _upgraded_crowd, is_flood=True),
    Attack("classic member of a consumer group with 150,000 topics", _joins_consumer_group),
    Attack(
        "member of a classic group with 150,000 topics",
        _joins_classic_group(lambda: _subscription(names(150_000, ""))),
    ),
    Attack(
        "member of a classic group with 10,000,000 empty topic names",
        _joins_classic_group(lambda: struct.pack(">hi", 0, 10_000_000) + bytes(20_000_000)),
        everyday=True,
    ),
    Attack("classic member with 150,000 topics whose group is converted", _upgraded_member),
    Attack("LeaveGroup for 100,000 members of a consumer group", _leaving(_consumer_group), everyday=True),
    Attack("LeaveGroup for 100,000 members of an unknown group", _leaving(lambda _: fresh("unknown"))),
    Attack("OffsetCommit for 5,000 partitions", _commits_many_offsets),
    Attack("TxnOffsetCommit for 5,000 partitions, and EndTxn", _commits_many_offsets_in_a_transaction),
    Attack("DeleteGroups of a group with 5,000 offsets", _deletes_group_of_many_offsets),
    Attack(
        "OffsetDelete for 1,000 partitions in a group with 70,000 topics",
        _deletes_offsets_of_large_subscription,
        everyday=True,
    ),
    Attack("DeleteTopics of 2,000 partitions with 3,000 groups", _deletes_topic_of_many_groups),
)

CONSUMER_GROUPS = tuple(map(_after_coordinator, _ATTACKS))
"""All attacks of this module."""
