"""Display and search of messages written by real clients."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer

from kafka_compat.testing import KafkaBroker
from tests.control.clients import producer
from tests.decoding.schema_registry import NODE, SchemaRegistry, framed
from tests.page.browsing import WRITING, Asked

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
T0_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry().serve() as served:
        served.user_info = "me:secret"
        yield served


@pytest.fixture(scope="module")
def broker(registry: SchemaRegistry) -> Iterator[KafkaBroker]:
    settings = {
        **WRITING,
        "kafka.compat.schema.registry.url": registry.url,
        "kafka.compat.schema.registry.basic.auth.user.info": "me:secret",
        "log.cleaner.min.compaction.lag.ms": 0,
    }
    with KafkaBroker(settings) as running:
        yield running


@pytest.fixture
def page(broker: KafkaBroker) -> Asked:
    return Asked(broker.control.url)


@pytest.fixture
def topic() -> str:
    return f"t-{uuid4().hex[:8]}"


def keys(records: list[dict[str, dict[str, str]]]) -> list[str]:
    return [each["key"]["text"] for each in records]


def test_records_of_every_codec_are_shown(broker: KafkaBroker, page: Asked, topic: str) -> None:
    broker.create_topic(topic, 3)
    written = []
    for number, codec in enumerate(CODECS):
        client = producer(broker, **{"compression.type": codec, "linger.ms": 50})
        other = KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            compression_type=None if codec == "none" else codec,
            linger_ms=50,
        )
        for index in range(20):
            at_ms = T0_MS + 1000 * number + 10 * index
            client.produce(topic, b"v" * 50, f"c{number}-{index:02}", index % 3, timestamp=at_ms)
            written.append(f"c{number}-{index:02}")
        assert client.flush(20) == 0
        for index in range(20):
            at_ms = T0_MS + 1000 * number + 10 * index + 500
            name = f"p{number}-{index:02}"
            other.send(topic, b"w" * 50, name.encode(), [("h", codec.encode())], index % 3, at_ms)
            written.append(name)
        other.close()
    assert keys(page.all_messages(name=topic, order="oldest", limit=7)) == sorted(
        written, key=lambda each: (each[1], each[0], each[3:])
    )
    newest = page.data("messages", name=topic, limit=5)["records"]
    assert keys(newest) == [f"p4-{index}" for index in (19, 18, 17, 16, 15)]
    assert newest[0]["headers"][0]["name"] == "h" and newest[0]["headers"][0]["text"] == "zstd"
    found = page.all_messages(name=topic, header="h", header_value="lz4", header_how="is", limit=500)
    assert len(found) == 20 and {each["key"]["text"][:2] for each in found} == {"p3"}
    assert keys(page.all_messages(name=topic, key="c2-0", order="oldest")) == [f"c2-0{n}" for n in range(10)]
    assert keys(page.all_messages(name=topic, key="c2-03", key_how="is", partitions="0")) == ["c2-03"]
    assert page.all_messages(name=topic, key="c2-03", key_how="is", partitions="1-2") == []
    one = page.data("message", name=topic, partition=0, offset=newest[2]["offset"])
    assert one["batch"]["codec"] == "zstd" and one["is_committed"] is True


def test_records_are_found_by_timestamp_and_offset(broker: KafkaBroker, page: Asked, topic: str) -> None:
    broker.create_topic(topic, 2)
    client = producer(broker)
    for minute in range(60):
        client.produce(topic, b"", f"{minute}", minute % 2, timestamp=T0_MS + 60_000 * minute)
    assert client.flush(20) == 0
    # 2023-11-14 22:13:20 UTC
    found = page.all_messages(
        name=topic, order="oldest", **{"from": "2023-11-14T22:20", "to": "2023-11-14T22:30Z"}
    )
    assert keys(found) == [str(minute) for minute in range(7, 17)]
    found = page.all_messages(name=topic, **{"from": T0_MS + 60_000 * 58, "limit": 1})
    assert keys(found) == ["59", "58"]
    assert page.all_messages(name=topic, **{"from": "2033-01-01"}) == []
    found = page.all_messages(name=topic, from_offset=3, to_offset=5, order="oldest")
    assert keys(found) == ["6", "7", "8", "9"]


def test_a_search_with_more_results_returns_a_cursor(broker: KafkaBroker, page: Asked, topic: str) -> None:
    broker.create_topic(topic)
    client = producer(broker)
    for number in range(2):
        client.produce(topic, b"", f"{number}")
    assert client.flush(20) == 0
    first = page.data("messages", name=topic, limit=1)
    assert first["cursor"] and first["has_more"] is True
    whole = page.data("messages", name=topic, partitions=0, limit=3)
    assert (len(whole["records"]), whole["cursor"], whole["has_more"]) == (2, None, False)
    assert "<details open>" in page.html("messages", name=topic, partitions=0)
    assert "<details>" in page.html("messages", name=topic, key="k", order="oldest")


def test_transactional_records_are_marked_as_committed_aborted_or_open(
    broker: KafkaBroker, page: Asked, topic: str
) -> None:
    broker.create_topic(topic)
    plain = producer(broker)
    plain.produce(topic, b"", "plain")
    assert plain.flush(20) == 0
    for end in ("commit", "abort", "open"):
        client = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "transactional.id": f"{topic}-{end}",
                "log_level": 0,
            }
        )
        client.init_transactions(20)
        client.begin_transaction()
        client.produce(topic, b"", end)
        assert client.flush(20) == 0
        if end == "commit":
            client.commit_transaction(20)
        elif end == "abort":
            client.abort_transaction(20)
    plain.produce(topic, b"", "behind")
    assert plain.flush(20) == 0
    assert keys(page.all_messages(name=topic)) == ["commit", "plain"]
    found = page.all_messages(name=topic, isolation="read_uncommitted", order="oldest")
    assert keys(found) == ["plain", "commit", "abort", "open", "behind"]
    aborted = page.data("message", name=topic, partition=0, offset=found[2]["offset"])
    assert aborted["is_committed"] is False and aborted["batch"]["is_transactional"] is True
    assert aborted["older_offset"] == found[1]["offset"]
    status, told = page.try_data("message", name=topic, partition=0, offset=found[1]["offset"] + 1)
    assert status == 404 and "marker" in told["detail"]
    client.abort_transaction(20)


def test_remaining_records_of_a_compacted_topic_are_listed(
    broker: KafkaBroker, page: Asked, topic: str
) -> None:
    broker.create_topic(topic, config={"cleanup.policy": "compact", "segment.bytes": 16384})
    client = producer(broker, **{"batch.size": 2000})
    for number in range(2000):
        client.produce(topic, b"%d" % number * 5, f"k{number % 7}")
    assert client.flush(20) == 0
    broker.control.compact(topic)
    left = page.all_messages(name=topic, order="oldest", limit=9)
    offsets = [each["offset"] for each in left]
    assert offsets == sorted(offsets) and len(offsets) < 2000 and offsets[-1] == 1999
    backwards = page.all_messages(name=topic, limit=9)
    assert backwards == left[::-1]
    status, told = page.try_data("message", name=topic, partition=0, offset=0)
    assert status == 404 and "deleted or compacted" in told["detail"]
    first = page.data("message", name=topic, partition=0, offset=offsets[0])
    assert first["older_offset"] is None and first["newer_offset"] == offsets[1]


def test_values_and_headers_are_shown_in_the_detected_or_requested_format(
    broker: KafkaBroker, page: Asked, topic: str, registry: SchemaRegistry
) -> None:
    registry.add(9, NODE)
    broker.create_topic(topic)
    client = producer(broker)
    values = [b'{"b":[1,2]}', struct.pack(">q", 42), framed(9, b"\x02\x00"), b"\xff\x00", None, b"", b"words"]
    for value in values:
        client.produce(topic, value, "k", headers={"none": None, "bin": b"\xff"})
    assert client.flush(20) == 0
    found = page.data("messages", name=topic, order="oldest")["records"]
    assert [each["value"]["format"] for each in found] == [
        "json", "long", "avro", "hex", "null", "empty", "text"
    ]  # fmt: skip
    assert json.loads(found[2]["value"]["text"]) == {"next": {"next": None}}
    assert [each["format"] for each in found[0]["headers"]] == ["null", "hex"]
    found = page.data("messages", name=topic, value="42", value_as="long", value_how="is")["records"]
    assert [each["offset"] for each in found] == [1]
    assert len(page.data("messages", name=topic, value_how="null")["records"]) == 1
    (shown,) = page.data("messages", name=topic, value="words", show_value="hex")["records"]
    assert shown["value"]["text"] == "77 6f 72 64 73"
    told = page.data("message", name=topic, partition=0, offset=6, show_value="long")
    assert told["value"]["format"] == "text" and "a long has 8" in told["value"]["problem"]


def test_an_unknown_schema_does_not_fail_the_view(broker: KafkaBroker, page: Asked, topic: str) -> None:
    broker.create_topic(topic)
    client = producer(broker)
    client.produce(topic, framed(77, b"abc"), "k")
    assert client.flush(20) == 0
    (found,) = page.data("messages", name=topic)["records"]
    assert found["value"]["format"] == "long" and found["value"]["problem"] is None
    (found,) = page.data("messages", name=topic, show_value="schema")["records"]
    assert found["value"]["problem"] == "the schema registry has no schema 77"
    assert "has no schema 77" in page.html("messages", name=topic, show_value="schema")


def test_large_values_are_truncated_and_can_be_loaded_in_full(
    broker: KafkaBroker, page: Asked, topic: str
) -> None:
    broker.create_topic(topic, config={"max.message.bytes": 4_000_000})
    client = producer(broker, **{"message.max.bytes": 4_000_000})
    value = bytes(range(32, 127)) * 30_000
    client.produce(topic, value, "k")
    assert client.flush(20) == 0
    (found,) = page.data("messages", name=topic)["records"]
    assert found["value"]["is_cut"] and found["value"]["size_bytes"] == len(value)
    assert len(found["value"]["text"]) == 16 * 1024
    (found,) = page.data("messages", name=topic, limit=500)["records"]
    assert len(found["value"]["text"]) == 2097
    assert len(page.html("messages", name=topic)) < 50_000
    told = page.data("message", name=topic, partition=0, offset=0)["value"]
    assert told["is_cut"] and len(told["text"]) == 64 * 1024
    place = {"name": topic, "partition": 0, "offset": 0}
    assert page.download("message-data", **place, part="value") == (
        value,
        f'attachment; filename="{topic}-0-0.value"',
        "application/octet-stream",
    )
    assert page.download("message-data", **place, part="key")[0] == b"k"


def test_hostile_data_is_shown_as_text(broker: KafkaBroker, page: Asked, topic: str) -> None:
    broker.create_topic(topic)
    client = producer(broker)
    hostile = '"><script>alert(1)</script>\u202e\x1b[31m{{ 7*7 }}'
    client.produce(topic, hostile, hostile, headers={hostile: hostile})
    assert client.flush(20) == 0
    for html in (
        page.html("messages", name=topic, value="<script>"),
        page.html("message", name=topic, partition=0, offset=0),
    ):
        assert "<script" not in html and "\u202e" not in html and "\x1b" not in html
        assert "&lt;script&gt;" in html and "{{ 7*7 }}" in html and "\\u202e" in html
    (found,) = page.data("messages", name=topic, show_value="text", show_key="text")["records"]
    assert found["key"]["text"] == found["value"]["text"] == found["headers"][0]["name"] == hostile


def test_a_long_search_is_continued_with_cursors(broker: KafkaBroker, page: Asked, topic: str) -> None:
    broker.create_topic(topic, 2)
    client = producer(broker, **{"linger.ms": 20, "compression.type": "lz4"})
    for number in range(300_000):
        client.produce(topic, b"a value that is not meant", b"%d" % number, number % 2)
        if number % 50_000 == 0:
            client.flush(20)
    client.produce(topic, b"needle", b"last", 0)
    assert client.flush(30) == 0
    seen, done, requests, cursor, found = 0, 0.0, 0, None, []
    begun_s = time.monotonic()
    while True:
        told = page.data(
            "messages", name=topic, order="oldest", value="eedl", **({"cursor": cursor} if cursor else {})
        )
        requests, seen = requests + 1, seen + told["records_seen"]
        found += keys(told["records"])
        assert told["records_seen"] < 400_000 and told["done"] >= done
        cursor, done = told["cursor"], told["done"]
        if cursor is None:
            break
        html = page.html("messages", name=topic, order="oldest", value="eedl", cursor=cursor)
        assert "Restart the search" in html
    print(f"300,000 records in {requests} requests, {time.monotonic() - begun_s:.2f} s")
    assert found == ["last"] and seen == 300_001 and requests > 1
    html = page.html("messages", name=topic, order="oldest", value="eedl")
    assert "messages</a>" in html and "% searched" in html


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"limit": 0}, "limit=0: expected a whole number from 1 to 500"),
        ({"limit": "ten"}, "limit=ten"),
        ({"order": "up"}, "order=up: expected one of newest, oldest"),
        ({"from": "yesterday"}, "from=yesterday: expected a time, such as 2026-01-31T12:00:00Z"),
        ({"to": "2026-02-31T00:00"}, "to=2026-02-31T00:00"),
        ({"key": "x", "key_as": "hex"}, "key=x: 'x' is not hexadecimal"),
        ({"key_how": "like"}, "key_how=like: expected one of contains, is, starts, null"),
        ({"partitions": "0-x"}, "'0-x' is not a number or range"),
        ({"partitions": "7"}, "the topic has no partition 7; they are 0 to 0"),
        ({"partitions": "0-999999"}, "at most 256 can be searched at once"),
        ({"cursor": "abc"}, "cursor=abc: not a cursor of this search"),
        ({"show_value": "xml"}, "show_value=xml: expected one of auto, text"),
        ({"from_offset": -1}, "from_offset=-1"),
        ({"colour": "red"}, "unknown parameter 'colour'"),
    ],
)
def test_invalid_queries_are_rejected_with_the_valid_values(
    broker: KafkaBroker, page: Asked, query: dict[str, object], reason: str
) -> None:
    if "asked" not in broker.topics():
        broker.create_topic("asked")
    status, told = page.try_data("messages", name="asked", **query)
    assert status == 400 and reason in told["detail"]


def test_a_topic_with_very_many_partitions_requires_a_choice_of_partitions(
    broker: KafkaBroker, page: Asked, topic: str
) -> None:
    broker.create_topic(topic, 300)
    client = producer(broker)
    for number in range(300):
        client.produce(topic, b"", b"%d" % number, number)
    assert client.flush(20) == 0
    status, told = page.try_data("messages", name=topic)
    assert status == 400 and "select some, such as partitions=0-255" in told["detail"]
    assert len(page.all_messages(name=topic, partitions="44-299", limit=100)) == 256


def test_the_latest_value_of_each_key_is_shown(broker: KafkaBroker, page: Asked, topic: str) -> None:
    broker.create_topic(topic, 3, config={"cleanup.policy": "compact"})
    client = producer(broker)
    for number in range(90):
        client.produce(topic, f"value {number}", f"key-{number % 30:02}", timestamp=T0_MS + number)
    client.produce(topic, None, "key-07", timestamp=T0_MS + 1000)
    assert client.flush(20) == 0
    found: list[dict[str, dict[str, str]]] = []
    skip = 0
    while skip is not None:
        told = page.data("latest", name=topic, limit=8, skip=skip)
        assert told["is_compacted"] and told["problems"] == [] and told["skip"] == skip
        found += told["records"]
        skip = told["next_skip"]
    assert told["is_complete"]
    values = {each["key"]["text"]: each["value"]["text"] for each in found}
    assert values == {f"key-{n:02}": f"value {60 + n}" for n in range(30)} | {"key-07": None}
    assert keys(found)[0] == "key-07" and len(found) == 30
    (one,) = page.data("latest", name=topic, key="key-12", key_how="is")["records"]
    assert one["value"]["text"] == "value 72"
    shown = page.get("latest", name=topic, limit=8).shown
    assert "null: deleted" in shown and "More keys" in shown and "not compacted" not in shown
    assert page.try_data("latest", name=topic, skip="x")[0] == 400


def test_a_topic_that_is_not_compacted_is_labelled(broker: KafkaBroker, page: Asked, topic: str) -> None:
    broker.create_topic(topic)
    client = producer(broker)
    client.produce(topic, b"without a key")
    assert client.flush(20) == 0
    told = page.data("latest", name=topic)
    assert (told["records"], told["is_compacted"], told["is_complete"]) == ([], False, True)
    shown = page.get("latest", name=topic).shown
    assert "The topic is not compacted" in shown and "No keys." in shown
