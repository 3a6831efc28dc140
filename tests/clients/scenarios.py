"""Scenarios of client usage, shared by all clients and both brokers.

A scenario drives a client program, asserts what must hold on any Kafka broker, and returns its observations,
without ids and current times. test_matrix.py compares the observations on this broker with those on Apache
Kafka. `NEEDS` maps each scenario to the client features that it requires.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.clients.group_scenarios import (
    cooperative_group_life,
    group_admin,
    group_life,
    round_robin_over_two_topics,
    static_member,
)
from tests.clients.lane import START_MS, Lane, Observations, numbered, read
from tests.support.process import wait_until


def produce_and_consume(lane: Lane) -> Observations:
    """Keys, values, nulls, empty values, arbitrary bytes, headers and timestamps are returned as sent."""
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
    found = read(lane, topic, 3, len(records))
    offsets = [dict.fromkeys((0, 1, 2), 0), []]
    for record, (partition, offset) in zip(records, sent, strict=True):
        assert partition == record["partition"]
        (match,) = (one for one in found if (one["partition"], one["offset"]) == (partition, offset))
        assert (match["key"], match["value"]) == (record["key"], record["value"])
        if lane.has("timestamps"):
            # Some clients do not report the timestamp type.
            assert (match["timestamp"], match.get("timestamp_type", 0)) == (record["timestamp"], 0)
        if lane.has("headers"):
            assert match["headers"] == record.get("headers", [])
    return {"sent": sent, "found": found, "offsets": offsets}


def default_partitioner(lane: Lane) -> Observations:
    """The client's partitioner selects the partitions of keyed records, from all partitions in the
    metadata.
    """
    topic = lane.topic(5)
    records = [{"key": f"customer-{number}", "value": "x"} for number in range(40)]
    sent = lane.program.call("produce", topic=topic, records=records)["results"]
    assert len({partition for partition, _ in sent}) == 5
    return {"partitions": [partition for partition, _ in sent]}


def codecs(lane: Lane) -> Observations:
    """The client reads back records in each of its codecs."""
    observed = {}
    for codec in lane.program.kind.codecs:
        topic = lane.topic(2)
        records = numbered(60, 2, size_bytes=300)
        sent = lane.program.call("produce", topic=topic, records=records, codec=codec)["results"]
        found = read(lane, topic, 2, 60)
        by_place = {(record["partition"], record["offset"]): record["value"] for record in found}
        assert [by_place[tuple(place)] for place in sent] == [record["value"] for record in records]
        observed[codec] = found
    return observed


def acknowledgements(lane: Lane) -> Observations:
    """Records with acks 0, 1 and all are stored. With acks=0, the client gets no offset."""
    topic = lane.topic()
    for acks in ("0", "1", "all"):
        lane.program.call("produce", topic=topic, records=numbered(5), acks=acks)
    found = read(lane, topic, 1, 15)
    return {
        "values": [record["value"] for record in found],
        "offsets": [record["offset"] for record in found],
    }


def idempotent_producer(lane: Lane) -> Observations:
    """An idempotent producer's records are stored once, and a read_committed consumer receives them."""
    topic = lane.topic(2)
    sent = lane.program.call("produce", topic=topic, records=numbered(200, 2), idempotent=True)["results"]
    found = read(lane, topic, 2, 200, isolation="read_committed")
    assert len({record["value"] for record in found}) == 200
    return {"sent": sent, "found": [record["value"] for record in found]}


def transactions(lane: Lane) -> Observations:
    """Committed records are visible to all consumers; open and aborted ones only to read_uncommitted
    consumers. Of two producers with the same transactional id, the older one is fenced.
    """
    topic = lane.topic(2)
    call = lane.program.call
    given: dict[str, Any] = {"id": lane.fresh("transaction"), "topic": topic, "records": numbered(4, 2)}
    sent = [call("transaction", end=end, **given)["results"] for end in ("commit", "abort")]
    sent.append(call("transaction_open", **given)["results"])
    asked = {"topic": topic, "partitions": [0, 1], "start": "earliest", "isolation": "read_committed"}
    early = call("consume", count=5, timeout_s=2, **asked)["records"]
    assert sorted([record["partition"], record["offset"]] for record in early) == sorted(sent[0])
    call("transaction_end", id=given["id"], end="commit")
    sent.append(call("transaction_open", **given)["results"])
    other = lane.new_program()
    try:
        sent.append(other.call("transaction", end="commit", **given)["results"])
        fenced = lane.program.code("transaction_end", id=given["id"], end="commit")
        assert fenced in (47, 90)
        seen = {}
        for isolation, number in (("read_committed", 12), ("read_uncommitted", 20)):
            found = read(lane, topic, 2, number, isolation=isolation)
            seen[isolation] = [[record["partition"], record["offset"]] for record in found]
        assert seen["read_committed"] == sorted(sent[0] + sent[2] + sent[4])
        assert seen["read_uncommitted"] == sorted(place for places in sent for place in places)
    finally:
        other.close()
    return {"sent": sent, "seen": seen, "fenced": fenced}


def large_records(lane: Lane) -> Observations:
    """A record of 1 MB is accepted. A record above max.message.bytes is rejected with error 10, and the
    producer remains usable.
    """
    topic = lane.topic()
    megabyte = {"partition": 0, "key": "big", "value": "m" * 1_000_000, "timestamp": START_MS}
    sent = lane.program.call("produce", topic=topic, records=[megabyte])["results"]
    (found,) = read(lane, topic, 1, 1)
    assert found["value"] == megabyte["value"]

    small = lane.topic(max_message_bytes="10000")
    too_large = {"partition": 0, "key": "big", "value": "x" * 20_000, "timestamp": START_MS}
    refused = lane.program.call("produce", topic=small, records=[too_large])["results"]
    assert refused == [{"error": 10}]
    lane.program.call("produce", topic=small, records=numbered(1))
    after = read(lane, small, 1, 1)

    beyond_client = {"partition": 0, "key": "big", "value": "x" * 2_000_000, "timestamp": START_MS}
    by_broker = lane.program.call(
        "produce", topic=topic, records=[beyond_client], max_request_bytes=3_000_000
    )
    assert by_broker["results"] == [{"error": 10}]
    return {"sent": sent, "refused": refused, "after": after}


def offsets_by_timestamp(lane: Lane) -> Observations:
    """Look up the first record at or after a timestamp, timestamps after the last record, and the earliest
    and latest offsets.
    """
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
    """Read from the middle of a batch, from the end, and from outside of the log with each reset policy."""
    topic = lane.topic()
    lane.program.call("produce", topic=topic, records=numbered(10))
    middle = read(lane, topic, 1, 6, start=4)
    assert [record["offset"] for record in middle] == [4, 5, 6, 7, 8, 9]
    outside = {"topic": topic, "partitions": [0], "start": 500, "count": 10, "timeout_s": 5}
    reset = read(lane, topic, 1, 10, start=500, reset="earliest")
    assert [record["offset"] for record in reset] == list(range(10))
    refused = lane.program.ask("consume", reset="none", **outside)
    assert "error" in refused
    return {"middle": middle, "reset": reset, "refused": refused["error"]}


def automatic_topic(lane: Lane) -> Observations:
    """The first record for a nonexistent topic creates the topic."""
    topic = lane.fresh("automatic")
    sent = lane.program.call("produce", topic=topic, records=[{"key": "k", "value": "v"}])["results"]
    assert sent == [[0, 0]]
    (found,) = read(lane, topic, 1, 1)
    return {"value": found["value"]}


def commits(lane: Lane) -> Observations:
    """Offsets and their metadata are stored per group. Metadata above 4,096 bytes is rejected with
    error 12.
    """
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


def topic_admin(lane: Lane) -> Observations:
    """Create, describe, alter and delete topics. Invalid requests return Kafka's error codes."""
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
    first = read(lane, topic, 1, 6)[0]["offset"]
    assert (low, first) == ({"0": 4}, 4)
    mistakes["records beyond the end"] = code("delete_records", topic=topic, before={"0": 400})
    assert mistakes["records beyond the end"] == 1

    call("delete_topic", topic=topic)
    wait_until(lambda: topic not in call("list_topics")["topics"], 10, "deletion of the topic")
    mistakes["deleted twice"] = code("delete_topic", topic=topic)
    assert mistakes["deleted twice"] == 3
    return {
        "mistakes": mistakes,
        "described": described,
        "configs": _comparable(configs),
        "cluster": call("describe_cluster"),
    }


def _comparable(configs: dict[str, Any]) -> dict[str, Any]:
    """Return the configs without those that exist only with tiered storage or KRaft."""
    return {name: entry for name, entry in configs.items() if not name.startswith("remote.")}


NEEDS: dict[Callable[[Lane], Observations], set[str]] = {
    produce_and_consume: set(),
    default_partitioner: set(),
    codecs: set(),
    acknowledgements: set(),
    idempotent_producer: {"idempotent"},
    transactions: {"transactions"},
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
