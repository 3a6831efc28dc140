"""The dead letter queue: batches, retries and what is given up, with topics that the test controls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from kafka_compat.config.group import ShareGroupConfig, ShareGroupLimits
from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import LongWork, Steps
from kafka_compat.share_coordinator.persister import SharePartitionKey
from kafka_compat.share_partitions import dead_letter_queue
from kafka_compat.share_partitions.changes import DeadLetters
from kafka_compat.share_partitions.dead_letter_queue import (
    ATTEMPTS_MAX,
    BACKOFF_MAX_MS,
    BATCHES_MAX,
    DeadLetterQueue,
    Done,
)
from kafka_compat.share_partitions.dead_letters import Contents, refusal
from kafka_compat.storage.records.records import iter_records
from tests.share_partitions.manual_clock import Clock

TOPIC = "dlq.a"
GONE = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Log(NamedTuple):
    max_message_bytes: int = 1_048_588


class Replica(NamedTuple):
    topic: str
    partition: int


class Source:
    def __init__(self, partition: int = 0, group: str = "g") -> None:
        self.key = SharePartitionKey(group, UUID(int=1), partition)
        self.replica: Any = Replica("a", partition)
        self.is_closed = False
        self.written: list[DeadLetters] = []
        self.calls = 0

    def dead_letters_written(self, letters: Sequence[DeadLetters]) -> None:
        self.calls += 1
        self.written += letters


class Topics:
    """Topics, and the requests to them that have no result yet."""

    def __init__(self) -> None:
        self.partitions: dict[str, int] = {TOPIC: 2}
        self.settings = {TOPIC: True}
        self.max_bytes = 1_048_588
        self.produced: list[tuple[str, int, bytes, Done]] = []
        self.prepared: list[tuple[str, bool, Done]] = []

    # The metadata

    @property
    def topics(self) -> Any:
        return {
            name: type("Topic", (), {"partitions": range(size)}) for name, size in self.partitions.items()
        }

    # The settings of topics

    def __contains__(self, topic: str) -> bool:
        return topic in self.settings

    def accepts_dead_letters(self, topic: str) -> bool:
        return self.settings[topic]

    def log_config(self, topic: str) -> Log:
        return Log(self.max_bytes)

    # The topics

    def prepare(self, topic: str, *, creates: bool, done: Done) -> None:
        self.prepared.append((topic, creates, done))

    def produce(self, topic: str, partition: int, batch: bytes, done: Done) -> None:
        self.produced.append((topic, partition, batch, done))


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.topics = Topics()
        self.group = ShareGroupConfig(dead_letter_topic=TOPIC)
        self.limits = ShareGroupLimits()
        topics: Any = self.topics
        self.queue = DeadLetterQueue(
            settings=lambda group_id: self.group,
            limits=lambda: self.limits,
            metadata=topics,
            overrides=topics,
            topics=topics,
            scheduler=self.clock,
            long_work=LongWork(asyncio.get_running_loop(), lambda: 0.0),
            now_ms=lambda: 1,
        )

    def write(self, source: Source, *ranges: tuple[int, int]) -> None:
        self.queue.write(source, [DeadLetters(first, last, 1, "why") for first, last in ranges])

    def offsets(self) -> list[list[int]]:
        """Return the offsets in each batch that is being produced."""
        return [
            [int(dict(record.headers)["__dlq.errors.offset"] or b"") for record in iter_records(batch)]
            for _, _, batch, _ in self.topics.produced
        ]

    def respond(self, code: ErrorCode = ErrorCode.NONE) -> None:
        *_, done = self.topics.produced.pop(0)
        done(code)
        self.clock.advance(0)


async def test_dead_letters_of_one_request_are_combined_and_reported_together() -> None:
    world, first, second = World(), Source(), Source(2)
    world.write(first, (0, 1), (3, 3))
    world.write(second, (5, 5))
    assert world.topics.produced == []
    world.clock.advance(0)
    assert world.offsets() == [[0, 1, 3, 5]]
    assert first.written == []
    world.respond()
    assert [(each.first, each.last) for each in first.written] == [(0, 1), (3, 3)]
    assert (first.calls, second.calls) == (1, 1)
    assert len(world.queue) == 0


async def test_one_batch_of_each_partition_is_produced_at_a_time() -> None:
    world, even, odd = World(), Source(0), Source(1)
    world.write(even, (0, 0))
    world.write(odd, (0, 0))
    world.clock.advance(0)
    world.write(even, (1, 1))
    world.write(even, (2, 2))
    world.clock.advance(0)
    assert [partition for _, partition, *_ in world.topics.produced] == [0, 1]
    assert world.offsets() == [[0], [0]]
    world.respond()
    assert world.offsets() == [[0], [1, 2]]


async def test_the_number_of_batches_of_a_broker_is_limited() -> None:
    world = World()
    world.topics.partitions[TOPIC] = 100
    for partition in range(BATCHES_MAX + 3):
        world.write(Source(partition), (0, 0))
    world.clock.advance(0)
    assert len(world.topics.produced) == BATCHES_MAX
    world.respond()
    assert len(world.topics.produced) == BATCHES_MAX


async def test_a_range_that_does_not_fit_into_a_batch_is_continued_in_the_next() -> None:
    world, source = World(), Source()
    world.topics.max_bytes = 600
    world.write(source, (0, 9), (20, 20))
    found: list[int] = []
    world.clock.advance(0)
    while world.topics.produced:
        assert len(world.topics.produced[0][2]) <= 600
        found += world.offsets()[0]
        world.respond()
    assert found == [*range(10), 20]
    assert source.written == [DeadLetters(0, 9, 1, "why"), DeadLetters(20, 20, 1, "why")]


async def test_retriable_errors_are_attempted_again_with_a_backoff_and_then_given_up() -> None:
    world, source, late = World(), Source(), Source(2)
    world.write(source, (0, 0))
    world.clock.advance(0)
    for attempt in range(1, ATTEMPTS_MAX):
        world.respond(GONE)
        assert source.written == []
        world.clock.advance((1_000 << attempt - 1) - 1)
        assert world.topics.produced == []
        if attempt == ATTEMPTS_MAX - 1:
            world.write(late, (7, 7))
        world.clock.advance(1)
    assert world.offsets() == [[0, 7]]
    world.respond(GONE)
    assert [each.first for each in source.written] == [0]
    assert late.written == []
    world.clock.advance(BACKOFF_MAX_MS)
    assert world.offsets() == [[7]]
    world.respond()
    assert [each.first for each in late.written] == [7]


async def test_a_success_begins_the_attempts_from_scratch() -> None:
    world, source = World(), Source()
    world.topics.max_bytes = 300
    world.write(source, (0, 1))
    world.clock.advance(0)
    for _ in range(2):
        for _ in range(ATTEMPTS_MAX - 1):
            world.respond(GONE)
            world.clock.advance(BACKOFF_MAX_MS)
        assert source.written == []
        world.respond()
    assert len(source.written) == 1


async def test_other_errors_give_up_the_batch_at_once(caplog: pytest.LogCaptureFixture) -> None:
    world, source = World(), Source()
    world.write(source, (0, 3))
    world.clock.advance(0)
    world.respond(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert len(source.written) == 1
    assert len(world.queue) == 0
    assert "without dead letters: topic dlq.a: TOPIC_AUTHORIZATION_FAILED" in caplog.text


@pytest.mark.parametrize("code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD])
async def test_only_the_rejected_record_of_a_batch_is_given_up(
    code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    world, source, other = World(), Source(), Source(2)
    world.write(source, (0, 2))
    world.write(other, (7, 7))
    world.clock.advance(0)
    assert world.offsets() == [[0, 1, 2, 7]]
    world.respond(code)
    written = []
    for _ in range(4):
        [offsets] = world.offsets()
        assert len(offsets) == 1
        if offsets == [1]:
            world.respond(code)
        else:
            written += offsets
            world.respond()
    assert written == [0, 2, 7]
    assert [(each.first, each.last) for each in source.written] == [(0, 2)]
    assert [(each.first, each.last) for each in other.written] == [(7, 7)]
    assert len(world.queue) == 0
    assert f"without dead letters: topic dlq.a: {code.name}" in caplog.text
    world.write(source, (10, 11))
    world.clock.advance(0)
    assert world.offsets() == [[10, 11]], "later batches have several dead letters again"


async def test_retriable_errors_between_single_records_lose_nothing() -> None:
    world, source = World(), Source()
    world.write(source, (0, 2))
    world.clock.advance(0)
    world.respond(ErrorCode.MESSAGE_TOO_LARGE)
    found = []
    while source.written == []:
        world.respond(GONE)
        world.clock.advance(BACKOFF_MAX_MS)
        found += world.offsets()
        world.respond()
    assert found == [[0], [1], [2]]


def _records_with_values(monkeypatch: pytest.MonkeyPatch, sizes_bytes: dict[int, int]) -> None:
    """Let the log of the source contain records with values of these sizes."""

    def read_contents(replica: Any, first: int, last: int, *_: int) -> Steps[Contents]:
        yield None
        return Contents({offset: (b"k", b"v" * size) for offset, size in sizes_bytes.items()}, last)

    monkeypatch.setattr(dead_letter_queue, "read_contents", read_contents)


def _values(batch: bytes) -> list[int | None]:
    return [None if record.value is None else len(record.value) for record in iter_records(batch)]


async def test_a_copy_that_would_make_its_batch_too_large_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The batch has a header, and the dead letter has headers: both count."""

    def batches_with(*sizes_bytes: int) -> list[bytes]:
        world = World()
        world.group = ShareGroupConfig(dead_letter_topic=TOPIC, copies_dead_letters=True)
        world.topics.max_bytes = 2000
        _records_with_values(monkeypatch, dict(enumerate(sizes_bytes)))
        world.write(Source(), (0, len(sizes_bytes) - 1))
        world.clock.advance(0)
        found = []
        while world.topics.produced:
            found.append(world.topics.produced[0][2])
            world.respond()
        return found

    [batch] = batches_with(1500)
    largest = 1500 + 2000 - len(batch)
    [batch] = batches_with(largest)
    assert (len(batch), _values(batch)) == (2000, [largest])
    [batch] = batches_with(largest + 1)
    assert _values(batch) == [None]
    assert [_values(each) for each in batches_with(10, largest + 1, 20)] == [[10], [None, 20]]


async def test_a_rejected_copy_is_attempted_without_key_and_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """The leader of the dead letter topic may have a lower limit than this broker knows."""
    world, source = World(), Source()
    world.group = ShareGroupConfig(dead_letter_topic=TOPIC, copies_dead_letters=True)
    _records_with_values(monkeypatch, {0: 100, 1: 5000, 2: 100})
    world.write(source, (0, 2))
    world.clock.advance(0)
    written = []
    while world.topics.produced:
        batch = world.topics.produced[0][2]
        if len(batch) > 1000:
            world.respond(ErrorCode.MESSAGE_TOO_LARGE)
        else:
            written += _values(batch)
            world.respond()
    assert written == [100, None, 100]
    assert len(source.written) == 1


async def test_dead_letters_of_forgotten_share_partitions_are_dropped() -> None:
    world, source, other = World(), Source(), Source(2)
    world.write(source, (0, 3))
    world.write(other, (5, 5))
    source.is_closed = True
    world.clock.advance(0)
    assert world.offsets() == [[5]]
    world.respond()
    assert source.written == []


async def test_a_closed_queue_reports_nothing() -> None:
    world, source = World(), Source()
    world.write(source, (0, 0))
    world.clock.advance(0)
    world.queue.close()
    world.respond()
    world.write(source, (1, 1))
    world.clock.advance(BACKOFF_MAX_MS)
    assert source.written == []
    assert world.topics.produced == []


async def test_unknown_settings_of_the_topic_are_read_first() -> None:
    world, source = World(), Source()
    world.topics.settings.clear()
    world.write(source, (0, 0))
    world.clock.advance(0)
    ((topic, creates, done),) = world.topics.prepared
    assert (topic, creates) == (TOPIC, False)
    world.topics.settings[TOPIC] = True
    done(ErrorCode.NONE)
    world.clock.advance(0)
    assert world.offsets() == [[0]]


async def test_a_topic_is_created_only_if_the_broker_allows_it() -> None:
    world, source = World(), Source()
    world.topics.partitions.clear()
    world.topics.settings.clear()
    world.write(source, (0, 0))
    world.clock.advance(0)
    assert len(source.written) == 1
    world.limits = ShareGroupLimits(creates_dead_letter_topics=True)
    world.write(source, (1, 1))
    world.clock.advance(0)
    ((_, creates, done),) = world.topics.prepared
    assert creates
    world.topics.partitions[TOPIC] = 1
    world.topics.settings[TOPIC] = True
    done(ErrorCode.NONE)
    world.clock.advance(0)
    assert world.offsets() == [[1]]


@pytest.mark.parametrize(
    ("topic", "prefix", "exists", "is_enabled", "creates", "problem"),
    [
        (None, "dlq.", True, True, True, "no dead letter topic"),
        ("__a", "", True, True, True, "begins with __"),
        ("dlq.a", "dlq.", True, False, True, "is not true"),
        ("dlq.a", "dlq.", False, False, False, "does not exist"),
        ("letters", "dlq.", True, True, False, "does not begin with dlq."),
        ("letters", "", True, True, False, None),
        ("dlq.a", "dlq.", False, False, True, None),
    ],
)
def test_only_suitable_topics_get_dead_letters(
    topic: str | None, prefix: str, exists: bool, is_enabled: bool, creates: bool, problem: str | None
) -> None:
    found = refusal(topic, prefix, exists=exists, is_enabled=is_enabled, creates=creates)
    assert (found is None) == (problem is None)
    assert problem is None or problem in (found or "")
