"""Dead letter queues (KIP-1191): this broker and Apache Kafka 4.4 write the same dead letters, and the same
records are archived without dead letters.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Record, build_batch
from tests.conformance.batches import START_MS, batch
from tests.conformance.wire import Plain
from tests.share_groups.dead_letter_topics import (
    ACCEPT,
    ARCHIVED,
    NAME,
    REJECT,
    RELEASE,
    DeadLetterGroup,
)
from tests.share_groups.wire_histories import WIRE_SETTINGS
from tests.support import campaign
from tests.support.kafka_jars import NEWEST_VERSION
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, Server

REJECTED = "Offset rejected by client."
EXCEEDED = "Offset delivery count exceeded the threshold."
TOPIC = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
P0 = (NAME, 0)
_NUMBERS = itertools.count()

Start = Callable[..., DeadLetterGroup]


@pytest.fixture(scope="module", params=campaign.sides())
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp(request.param)
    running: Server = (
        KafkaCompatBroker(directory, WIRE_SETTINGS)
        if request.param == "ours"
        else GenuineKafka(directory, WIRE_SETTINGS, version=NEWEST_VERSION, mode="kraft")
    )
    running.start(180)
    yield running
    running.stop()


@pytest.fixture
def start(server: Server) -> Iterator[Start]:
    """Start a group whose dead letter topic is "dlq." and its name, which the group returns."""
    groups: list[DeadLetterGroup] = []

    def begin(size: int = 1, **settings: str) -> DeadLetterGroup:
        group = DeadLetterGroup(server.address, f"letters-{next(_NUMBERS)}", size)
        groups.append(group)
        names = {TOPIC: f"dlq.{group.name}"}
        group.start({**names, **{name.replace("_", "."): value for name, value in settings.items()}})
        return group

    yield begin
    for group in groups:
        group.close()


def letter(offset: int, cause: str = REJECTED, count: int = 1, **more: object) -> Plain:
    return {
        "key": None,
        "value": None,
        "topic": f"GROUP-{NAME}",
        "partition": "0",
        "offset": str(offset),
        "group": "GROUP",
        "delivery.count": str(count),
        "message": cause,
        **more,
    }


def test_rejected_records_become_dead_letters_without_their_content(start: Start) -> None:
    group = start()
    topic = f"dlq.{group.name}"
    group.create_topic(topic)
    group.side.produce(P0, batch(5))
    assert group.acquire() == {0: [(0, 4, 1)]}
    group.acknowledge(1, {0: [(0, 0, ACCEPT), (1, 1, REJECT), (2, 2, ACCEPT), (3, 4, REJECT)]})
    group.wait_until_archived()
    assert group.letters(topic) == [letter(1), letter(3), letter(4)]


def test_copies_contain_the_key_and_the_value_but_not_the_headers(start: Start) -> None:
    group = start(**{COPY: "true"})
    topic = f"dlq.{group.name}"
    group.create_topic(topic)
    records = [
        Record(0, START_MS, b"key", b"value", [("name", b"content")]),
        Record(0, START_MS, None, b"value"),
        Record(0, START_MS, b"key", None),
        Record(0, START_MS, b"", b""),
    ]
    group.side.produce(P0, build_batch(records))
    group.side.produce(P0, batch(40, compression=CompressionType.GZIP))
    group.acquire()
    group.acknowledge(1, {0: [(0, 43, REJECT)]})
    group.wait_until_archived()
    letters = group.letters(topic)
    assert letters[:4] == [
        letter(0, key=b"key", value=b"value"),
        letter(1, value=b"value"),
        letter(2, key=b"key"),
        letter(3, key=b"", value=b""),
    ]
    assert letters[4:] == [letter(4 + n, key=b"key", value=b"value-%d" % n) for n in range(40)]


def test_records_at_the_delivery_limit_become_dead_letters(start: Start) -> None:
    group = start(**{"share.delivery.count.limit": "2"})
    topic = f"dlq.{group.name}"
    group.create_topic(topic)
    group.side.produce(P0, batch(3))
    assert group.acquire() == {0: [(0, 2, 1)]}
    group.acknowledge(1, {0: [(0, 2, RELEASE)]})
    acquired = group.acquire()
    assert acquired[0][0][2] == 2
    last = acquired[0][-1][1]
    group.acknowledge(1, {0: [(0, last, RELEASE)]})
    wait_until(lambda: len(group.letters(topic)) == last + 1, 60, "the dead letters", 0.05)
    assert group.letters(topic) == [letter(n, EXCEEDED, 2) for n in range(last + 1)]


def test_expired_locks_at_the_delivery_limit_lead_to_dead_letters(start: Start) -> None:
    group = start(**{"share.delivery.count.limit": "2", "share.record.lock.duration.ms": "1000"})
    topic = f"dlq.{group.name}"
    group.create_topic(topic)
    group.side.produce(P0, batch(1))
    assert group.acquire() == {0: [(0, 0, 1)]}
    assert group.acquire() == {0: [(0, 0, 2)]}
    wait_until(lambda: len(group.letters(topic)) == 1, 60, "the dead letter", 0.05)
    assert group.letters(topic) == [letter(0, EXCEEDED, 2)]


def test_partitions_are_mapped_by_their_number(start: Start) -> None:
    group = start(3)
    topic = f"dlq.{group.name}"
    group.create_topic(topic, 2)
    for number in range(3):
        group.side.produce((NAME, number), batch(1))
    group.acquire(3)
    group.acknowledge(1, {number: [(0, 0, REJECT)] for number in range(3)})
    group.wait_until_archived()
    found = group.letters(topic, 0), group.letters(topic, 1)
    assert [sorted(each["partition"] for each in part) for part in found] == [["0", "2"], ["1"]]


@pytest.mark.parametrize(
    ("prefix", "configs"),
    [
        pytest.param("dlq.", None, id="missing"),
        pytest.param("dlq.", {"errors.deadletterqueue.group.enable": "false"}, id="not enabled"),
        pytest.param("letters.", {}, id="wrong prefix"),
        pytest.param("dlq.", {"cleanup.policy": "compact"}, id="compacted"),
    ],
)
def test_records_are_archived_without_dead_letters_if_the_topic_is_unsuitable(
    start: Start, prefix: str, configs: dict[str, str] | None
) -> None:
    group = start()
    topic = f"{prefix}{group.name}"
    if configs is not None:
        group.create_topic(topic, 1, configs)
    group.side.configure({TOPIC: topic})
    group.side.produce(P0, batch(3))
    group.acquire()
    group.acknowledge(1, {0: [(1, 2, REJECT)]})
    group.wait_until_archived()
    assert group.states() == [(1, 2, ARCHIVED, 1)]
    if configs is not None:
        assert group.letters(topic) == []


def test_batches_are_no_larger_than_the_topic_allows(start: Start) -> None:
    group = start(**{COPY: "true"})
    topic = f"dlq.{group.name}"
    group.create_topic(topic, 1, {"max.message.bytes": "1500"})
    group.side.produce(P0, build_batch([Record(0, START_MS, None, b"%3d" % n * 100) for n in range(12)]))
    group.acquire()
    group.acknowledge(1, {0: [(0, 11, REJECT)]})
    group.wait_until_archived()
    assert [each["value"] for each in group.letters(topic)] == [b"%3d" % n * 100 for n in range(12)]
    batches = group.batches(topic)
    assert max(map(len, batches)) <= 1500
    assert len(batches) == 6


def test_records_that_are_too_large_for_the_topic_are_not_copied(start: Start) -> None:
    group = start(**{COPY: "true"})
    topic = f"dlq.{group.name}"
    group.create_topic(topic, 1, {"max.message.bytes": "1500"})
    values = [b"1" * 900, b"2" * 900, os.urandom(2_000), b"4" * 900]
    group.side.produce(P0, build_batch([Record(0, START_MS, None, value) for value in values]))
    group.acquire()
    group.acknowledge(1, {0: [(0, 3, REJECT)]})
    group.wait_until_archived()
    assert [each["value"] for each in group.letters(topic)] == [*values[:2], None, values[3]]


def test_large_amounts_of_copied_records_are_written_in_several_batches(start: Start) -> None:
    group = start(**{COPY: "true"})
    topic = f"dlq.{group.name}"
    group.create_topic(topic)
    for first in range(0, 40, 10):
        group.side.produce(
            P0, build_batch([Record(0, START_MS, b"%d" % n, b"v" * 90_000) for n in range(first, first + 10)])
        )
    group.acquire()
    group.acknowledge(1, {0: [(0, 39, REJECT)]})
    group.wait_until_archived()
    letters = group.letters(topic)
    assert [each["key"] for each in letters] == [b"%d" % n for n in range(40)]
    assert {len(each["value"]) for each in letters} == {90_000}


def test_deleted_records_become_dead_letters_without_content(start: Start) -> None:
    group = start(**{COPY: "true"})
    topic = f"dlq.{group.name}"
    group.create_topic(topic)
    group.side.produce(P0, batch(2))
    group.side.produce(P0, batch(2))
    group.acquire()
    group.side.delete_records(P0, 2)
    group.acknowledge(1, {0: [(0, 3, REJECT)]})
    group.wait_until_archived()
    assert group.letters(topic) == [letter(n) for n in range(4)]
