"""What a user does with a client, told once for all clients and both brokers.

A scenario drives a client program, asserts what must hold on any Kafka broker, and returns what it observed,
free of ids and of the current time: test_matrix.py compares these observations between our broker and genuine
Kafka.
`NEEDS` names the client features without which a scenario makes no sense.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.clients.programs import ClientProgram
from tests.support.process import wait_until

START_MS = int(time.time()) * 1000 - 3_600_000
"""Timestamp of the first record of every scenario: an hour ago, so that no retention touches it."""

SESSION_TIMEOUT_MS = 1500

Observations = dict[str, Any]
Record = dict[str, Any]


@dataclass
class Lane:
    """One broker with one client program on it."""

    bootstrap: str
    program: ClientProgram
    new_program: Callable[[], ClientProgram]
    make_topic: Callable[[str, int, dict[str, str]], None]
    run: str
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def fresh(self, what: str) -> str:
        """A name that nobody used before, the same in both lanes."""
        return f"{what}-{self.run}-{next(self._numbers)}"

    def topic(self, partitions: int = 1, **configs: str) -> str:
        """A new topic; dots in config names are written as underscores."""
        name = self.fresh("topic")
        given = {setting.replace("_", "."): value for setting, value in configs.items()}
        self.make_topic(name, partitions, given)
        return name

    def has(self, feature: str) -> bool:
        return feature in self.program.kind.features


def numbered(count: int, partitions: int = 1, *, size_bytes: int = 0) -> list[Record]:
    """`count` records spread over the partitions, a second apart."""
    return [
        {
            "partition": number % partitions,
            "key": f"key-{number}",
            "value": f"value-{number}".ljust(size_bytes, "."),
            "timestamp": START_MS + number * 1000,
        }
        for number in range(count)
    ]


def _read(lane: Lane, topic: str, partitions: int, count: int, **arguments: Any) -> list[Record]:
    given = {"start": "earliest", "partitions": list(range(partitions)), **arguments}
    records: list[Record] = lane.program.call("consume", topic=topic, count=count, **given)["records"]
    assert len(records) == count, f"{len(records)} of {count} records"
    if not lane.has("timestamps"):
        assert not any("timestamp" in record for record in records)
    return sorted(records, key=lambda record: (record["partition"], record["offset"]))


def produce_and_consume(lane: Lane) -> Observations:
    """Keys, values, nulls, empty values, any bytes, headers and timestamps come back as they were sent."""
    topic = lane.topic(3)
    every_byte = bytes(range(256)).decode("latin-1")
    records = [
        *numbered(12, 3),
        {"partition": 0, "key": None, "value": "no key", "timestamp": START_MS + 20_000},
        {"partition": 0, "key": "no value", "value": None, "timestamp": START_MS + 21_000},
        {"partition": 1, "key": "", "value": "", "timestamp": START_MS + 22_000},
        {"partition": 2, "key": every_byte, "value": every_byte * 4, "timestamp": START_MS + 23_000},
    ]
    if lane.has("headers"):
        records[0]["headers"] = [["trace", "abc"], ["trace", "again"], ["empty", ""], ["é", "\xff"]]
    if lane.has("null_headers"):
        records[1]["headers"] = [["null", None]]
    sent = lane.program.call("produce", topic=topic, records=records)["results"]
    found = _read(lane, topic, 3, len(records))
    offsets = [dict.fromkeys((0, 1, 2), 0), []]
    for record, (partition, offset) in zip(records, sent, strict=True):
        assert partition == record["partition"]
        (match,) = (one for one in found if (one["partition"], one["offset"]) == (partition, offset))
        assert (match["key"], match["value"]) == (record["key"], record["value"])
        if lane.has("timestamps"):
            assert (match["timestamp"], match["timestamp_type"]) == (record["timestamp"], 0)
        if lane.has("headers"):
            assert match["headers"] == record.get("headers", [])
    return {"sent": sent, "found": found, "offsets": offsets}


def default_partitioner(lane: Lane) -> Observations:
    """Records with keys go where the client's partitioner says, and the metadata names all partitions."""
    topic = lane.topic(5)
    records = [{"key": f"customer-{number}", "value": "x"} for number in range(40)]
    sent = lane.program.call("produce", topic=topic, records=records)["results"]
    assert len({partition for partition, _ in sent}) == 5
    return {"partitions": [partition for partition, _ in sent]}


def codecs(lane: Lane) -> Observations:
    """Every codec that the client has, read back by the client itself."""
    observed = {}
    for codec in lane.program.kind.codecs:
        topic = lane.topic(2)
        records = numbered(60, 2, size_bytes=300)
        sent = lane.program.call("produce", topic=topic, records=records, codec=codec)["results"]
        found = _read(lane, topic, 2, 60)
        by_place = {(record["partition"], record["offset"]): record["value"] for record in found}
        assert [by_place[tuple(place)] for place in sent] == [record["value"] for record in records]
        observed[codec] = found
    return observed


def acknowledgements(lane: Lane) -> Observations:
    """acks 0, 1 and all: the records arrive; only acks=0 knows no offset."""
    topic = lane.topic()
    for acks in ("0", "1", "all"):
        lane.program.call("produce", topic=topic, records=numbered(5), acks=acks)
    found = _read(lane, topic, 1, 15)
    return {
        "values": [record["value"] for record in found],
        "offsets": [record["offset"] for record in found],
    }


def idempotent_producer(lane: Lane) -> Observations:
    """An idempotent producer's records are stored once, and a read_committed consumer sees them."""
    topic = lane.topic(2)
    sent = lane.program.call("produce", topic=topic, records=numbered(200, 2), idempotent=True)["results"]
    found = _read(lane, topic, 2, 200, isolation="read_committed")
    assert len({record["value"] for record in found}) == 200
    return {"sent": sent, "found": [record["value"] for record in found]}


def large_records(lane: Lane) -> Observations:
    """A record of 1 MB passes; larger than max.message.bytes is refused with error 10, and nothing breaks."""
    topic = lane.topic()
    megabyte = {"partition": 0, "key": "big", "value": "m" * 1_000_000, "timestamp": START_MS}
    sent = lane.program.call("produce", topic=topic, records=[megabyte])["results"]
    (found,) = _read(lane, topic, 1, 1)
    assert found["value"] == megabyte["value"]

    small = lane.topic(max_message_bytes="10000")
    too_large = {"partition": 0, "key": "big", "value": "x" * 20_000, "timestamp": START_MS}
    refused = lane.program.call("produce", topic=small, records=[too_large])["results"]
    assert refused == [{"error": 10}]
    lane.program.call("produce", topic=small, records=numbered(1))
    after = _read(lane, small, 1, 1)

    beyond_client = {"partition": 0, "key": "big", "value": "x" * 2_000_000, "timestamp": START_MS}
    by_broker = lane.program.call(
        "produce", topic=topic, records=[beyond_client], max_request_bytes=3_000_000
    )
    assert by_broker["results"] == [{"error": 10}]
    return {"sent": sent, "refused": refused, "after": after}


def offsets_by_timestamp(lane: Lane) -> Observations:
    """The first record at or after a time; nothing after the last; earliest and latest."""
    topic = lane.topic(2)
    lane.program.call("produce", topic=topic, records=numbered(20, 2))
    observed: Observations = {}
    for offset_ms in (-10_000, 0, 1, 1000, 9_500, 19_000, 19_001, 60_000):
        asked = {"topic": topic, "partitions": [0, 1], "at": START_MS + offset_ms}
        observed[str(offset_ms)] = lane.program.call("offsets", **asked)["offsets"]
    assert observed["-10000"] == {"0": 0, "1": 0}
    assert observed["1000"] == {"0": 1, "1": 0}
    assert observed["9500"] == {"0": 5, "1": 5}
    assert observed["60000"] == {"0": None, "1": None}
    return observed


def first_and_last_offsets(lane: Lane) -> Observations:
    topic = lane.topic(2)
    lane.program.call("produce", topic=topic, records=numbered(7))
    asked = {"topic": topic, "partitions": [0, 1]}
    observed = {at: lane.program.call("offsets", at=at, **asked)["offsets"] for at in ("earliest", "latest")}
    assert observed == {"earliest": {"0": 0, "1": 0}, "latest": {"0": 7, "1": 0}}
    if lane.has("max_timestamp"):
        observed["max timestamp"] = lane.program.call("latest_by_admin", **asked)["offsets"]
        assert observed["max timestamp"]["0"] == 6
    return observed


def positions(lane: Lane) -> Observations:
    """Reading from the middle of a batch, from the end, and from outside the log with each reset policy."""
    topic = lane.topic()
    lane.program.call("produce", topic=topic, records=numbered(10))
    middle = _read(lane, topic, 1, 6, start=4)
    assert [record["offset"] for record in middle] == [4, 5, 6, 7, 8, 9]
    outside = {"topic": topic, "partitions": [0], "start": 500, "count": 10, "timeout_s": 5}
    reset = _read(lane, topic, 1, 10, start=500, reset="earliest")
    assert [record["offset"] for record in reset] == list(range(10))
    refused = lane.program.ask("consume", reset="none", **outside)
    assert "error" in refused
    return {"middle": middle, "reset": reset, "refused": refused["error"]}


def automatic_topic(lane: Lane) -> Observations:
    """A topic that does not exist is created by the first record for it."""
    topic = lane.fresh("automatic")
    sent = lane.program.call("produce", topic=topic, records=[{"key": "k", "value": "v"}])["results"]
    assert sent == [[0, 0]]
    (found,) = _read(lane, topic, 1, 1)
    return {"value": found["value"]}


def commits(lane: Lane) -> Observations:
    """Offsets and their metadata are kept per group; metadata beyond 4,096 bytes is refused with error 12."""
    topic, group = lane.topic(3), lane.fresh("group")
    lane.program.call("produce", topic=topic, records=numbered(9, 3))
    place = {"group": group, "topic": topic}
    before = lane.program.call("committed", partitions=[0, 1, 2], **place)["committed"]
    lane.program.call("commit", offsets={"0": [1, "note"], "1": [2, ""]}, **place)
    after = lane.program.call("committed", partitions=[0, 1, 2], **place)["committed"]
    assert before == {"0": None, "1": None, "2": None}
    assert after == {"0": [1, "note"], "1": [2, ""], "2": None}
    too_much = lane.program.code("commit", offsets={"0": [2, "x" * 4097]}, **place)
    assert too_much == 12
    lane.program.call("commit", offsets={"0": [3, ""]}, **place)
    again = lane.program.call("committed", partitions=[0, 1, 2], **place)["committed"]
    return {"after": after, "again": again, "too much": too_much}


class _Group:
    """A group whose members live in one or several programs of a lane."""

    def __init__(self, lane: Lane, topics: list[str], **settings: Any) -> None:
        self.lane, self.topics, self.settings = lane, topics, settings
        self.name = lane.fresh("group")
        self.programs: dict[str, ClientProgram] = {}
        self.gone: list[list[Any]] = []

    def join(self, member: str, program: ClientProgram | None = None, **settings: Any) -> None:
        self.programs[member] = program or self.lane.program
        self.programs[member].call(
            "member_start",
            member=f"{self.name}-{member}",
            group=self.name,
            topics=self.topics,
            **{"session_timeout_ms": SESSION_TIMEOUT_MS, **self.settings, **settings},
        )

    def state(self, member: str) -> dict[str, Any]:
        return self.programs[member].call("member_state", member=f"{self.name}-{member}")

    def commit_all(self, topic: str, partitions: int, offset: int) -> None:
        """Let the members commit what they have read until the group stands at `offset` everywhere."""

        def done() -> bool:
            for member, program in self.programs.items():
                code = program.code("member_commit", member=f"{self.name}-{member}")
                assert code in (0, 22, 25, 27), f"commit: error {code}"  # a rebalance may be under way
            place = {"group": self.name, "topic": topic, "partitions": list(range(partitions))}
            committed = self.lane.program.call("committed", **place)["committed"]
            return all(hit is not None and hit[0] == offset for hit in committed.values())

        wait_until(done, 20, f"{self.name} has committed everything", interval_s=0.2)

    def leave(self, member: str) -> None:
        self.gone += self.state(member)["received"]
        self.programs.pop(member).call("member_stop", member=f"{self.name}-{member}")

    def die(self, member: str) -> None:
        self.gone += self.state(member)["received"]
        self.programs.pop(member).kill()

    def received(self) -> list[list[Any]]:
        """Every (topic, partition, offset) that any member got, also those who are gone."""
        return self.gone + [place for member in self.programs for place in self.state(member)["received"]]

    def shares(self) -> list[int]:
        """How many partitions each member holds; empty while one partition is held twice."""
        held = [self.state(member)["assignment"] for member in self.programs]
        every = [tuple(part) for assignment in held for part in assignment]
        return sorted(len(assignment) for assignment in held) if len(set(every)) == len(every) else []

    def await_shares(self, *expected: int) -> None:
        wait_until(
            lambda: self.shares() == sorted(expected),
            self.lane.program.kind.patience_s,
            f"shares {expected} of {self.name}",
            interval_s=0.05,
        )

    def await_received(self, count: int) -> None:
        def enough() -> bool:
            return len({tuple(place) for place in self.received()}) >= count

        wait_until(enough, 30, f"{count} records for {self.name}", interval_s=0.05)


def _group_life(lane: Lane, strategy: str) -> Observations:
    topic = lane.topic(6)
    lane.program.call("produce", topic=topic, records=numbered(60, 6))
    group = _Group(lane, [topic], strategy=strategy)
    elsewhere = lane.new_program()
    try:
        group.join("first")
        group.await_shares(6)
        group.join("second")
        group.await_shares(3, 3)
        group.join("third", elsewhere)
        group.await_shares(2, 2, 2)
        group.await_received(60)
        group.commit_all(topic, 6, 10)
        group.leave("first")
        group.await_shares(3, 3)
        group.die("third")
        group.await_shares(6)
    finally:
        elsewhere.close()
    described = None
    if lane.has("group_admin"):
        described = lane.program.call("describe_group", group=group.name)
        assert described["state"] == "stable"
    group.leave("second")

    lane.program.call("produce", topic=topic, records=numbered(6, 6))
    follower = _Group(lane, [topic], strategy=strategy)
    follower.name = group.name
    follower.join("fourth")
    follower.await_received(6)
    resumed = sorted([partition, offset] for _, partition, offset in follower.received())
    assert resumed == [[partition, 10] for partition in range(6)], "resumes exactly after the commits"
    follower.leave("fourth")
    return {"resumed": resumed, "described": described}


def group_life(lane: Lane) -> Observations:
    """Members join, leave, and die; each partition has one owner; a successor resumes at the commits."""
    return _group_life(lane, "range")


def cooperative_group_life(lane: Lane) -> Observations:
    """The same with cooperative rebalances."""
    return _group_life(lane, "cooperative-sticky")


def round_robin_over_two_topics(lane: Lane) -> Observations:
    """A group of two on two topics; a topic's new partitions reach the group."""
    topics = [lane.topic(3), lane.topic(1)]
    group = _Group(lane, topics, strategy="roundrobin")
    group.join("first")
    group.join("second")
    group.await_shares(2, 2)
    if lane.has("topic_admin"):
        lane.program.call("add_partitions", topic=topics[1], total=3)
        group.await_shares(3, 3)
    for topic in topics:
        lane.program.call("produce", topic=topic, records=numbered(12, 3 if topic == topics[0] else 1))
    group.await_received(24)
    # Each once: a member that learns late of the new partitions starts one more rebalance, and since nobody
    # commits here, what was read before it is read again.
    received = sorted(
        {(topics.index(topic), partition, offset) for topic, partition, offset in group.received()}
    )
    group.leave("first")
    group.leave("second")
    return {"received": [list(place) for place in received]}


def static_member(lane: Lane) -> Observations:
    """A static member that is back before its session ends finds its partitions without a rebalance."""
    topic = lane.topic(4)
    group = _Group(lane, [topic], session_timeout_ms=20_000)
    elsewhere = lane.new_program()
    group.join("stays", instance="instance-1")
    group.join("restarts", elsewhere, instance="instance-2")
    group.await_shares(2, 2)
    held = group.state("restarts")["assignment"]
    others = group.state("stays")["assignment"]
    group.die("restarts")
    successor = lane.new_program()
    try:
        group.join("restarts", successor, instance="instance-2")
        group.await_shares(2, 2)
        assert sorted(group.state("restarts")["assignment"]) == sorted(held)
        assert sorted(group.state("stays")["assignment"]) == sorted(others)
    finally:
        successor.close()
    group.programs.pop("restarts")
    group.leave("stays")
    return {"held": [partition for _, partition in sorted(held)]}


def topic_admin(lane: Lane) -> Observations:
    """Topics are created, described, changed and deleted; each mistake gets Kafka's own error code."""
    topic = lane.fresh("admin")
    call, code = lane.program.call, lane.program.code
    call("create_topic", topic=topic, partitions=2, configs={"retention.ms": "3600000"})
    mistakes = {
        "exists": code("create_topic", topic=topic, partitions=1),
        "bad name": code("create_topic", topic="a/b", partitions=1),
        "no partitions": code("create_topic", topic=lane.fresh("none"), partitions=0),
        "replication": code("create_topic", topic=lane.fresh("wide"), partitions=1, replication=9),
        "config": code("create_topic", topic=lane.fresh("odd"), partitions=1, configs={"nonsense.x": "1"}),
        "value": code(
            "create_topic", topic=lane.fresh("odd"), partitions=1, configs={"retention.ms": "soon"}
        ),
    }
    assert mistakes == {
        "exists": 36,
        "bad name": 17,
        "no partitions": 37,
        "replication": 38,
        "config": 40,
        "value": 40,
    }
    described = [call("describe_topic", topic=topic)["partitions"]]
    call("add_partitions", topic=topic, total=4)
    described.append(call("describe_topic", topic=topic)["partitions"])
    mistakes["fewer partitions"] = code("add_partitions", topic=topic, total=3)
    assert mistakes["fewer partitions"] == 37
    assert [len(partitions) for partitions in described] == [2, 4]
    assert topic in call("list_topics")["topics"]

    call("set_topic_config", topic=topic, configs={"retention.ms": "7200000"})
    configs = call("topic_config", topic=topic)["configs"]
    mistakes["bad change"] = code("set_topic_config", topic=topic, configs={"retention.ms": "never"})
    mistakes["unknown topic's config"] = code("topic_config", topic=lane.fresh("absent"))

    call("produce", topic=topic, records=numbered(10))
    low = call("delete_records", topic=topic, before={"0": 4})["low"]
    first = _read(lane, topic, 1, 6)[0]["offset"]
    assert (low, first) == ({"0": 4}, 4)
    mistakes["records beyond the end"] = code("delete_records", topic=topic, before={"0": 400})
    assert mistakes["records beyond the end"] == 1

    call("delete_topic", topic=topic)
    wait_until(lambda: topic not in call("list_topics")["topics"], 10, "the topic is gone")
    mistakes["deleted twice"] = code("delete_topic", topic=topic)
    assert mistakes["deleted twice"] == 3
    return {
        "mistakes": mistakes,
        "described": described,
        "configs": _comparable(configs),
        "cluster": call("describe_cluster"),
    }


def _comparable(configs: dict[str, Any]) -> dict[str, Any]:
    """Configs without those that exist only where tiered storage or KRaft does."""
    return {name: entry for name, entry in configs.items() if not name.startswith("remote.")}


def group_admin(lane: Lane) -> Observations:
    """Groups are listed, described with their members, and deleted once they are empty."""
    topic = lane.topic(2)
    lane.program.call("produce", topic=topic, records=numbered(4, 2))
    group = _Group(lane, [topic])
    group.join("only")
    group.commit_all(topic, 2, 2)
    call, code = lane.program.call, lane.program.code
    assert group.name in call("list_groups")["groups"]
    stable = call("describe_group", group=group.name)
    assert (stable["state"], stable["hosts"]) == ("stable", 1)
    offsets = [[number, at] for _, number, at in call("group_offsets", group=group.name)["offsets"]]
    assert offsets == [[0, 2], [1, 2]]
    refused = code("delete_group", group=group.name) if lane.has("delete_group") else None
    group.leave("only")
    empty = call("describe_group", group=group.name)
    observed = {"stable": stable, "offsets": offsets, "refused": refused, "empty": empty}
    if lane.has("delete_group"):
        assert refused == 68
        call("delete_group", group=group.name)
        assert group.name not in call("list_groups")["groups"]
        observed["deleted twice"] = code("delete_group", group=group.name)
    return observed


NEEDS: dict[Callable[[Lane], Observations], set[str]] = {
    produce_and_consume: set(),
    default_partitioner: set(),
    codecs: set(),
    acknowledgements: set(),
    idempotent_producer: {"idempotent"},
    large_records: set(),
    offsets_by_timestamp: {"timestamps"},
    first_and_last_offsets: set(),
    positions: set(),
    automatic_topic: set(),
    commits: set(),
    group_life: set(),
    cooperative_group_life: {"cooperative"},
    round_robin_over_two_topics: set(),
    static_member: {"static"},
    topic_admin: {"topic_admin"},
    group_admin: {"group_admin"},
}
