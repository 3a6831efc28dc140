"""Fetch for old clients, and fetch sessions (KIP-227), compared with Apache Kafka 3.9.1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.legacy import read_message, unwrap
from tests.conformance.batches import batch
from tests.conformance.comparison import whole_batches
from tests.conformance.differential import Pair
from tests.conformance.record_requests import fetch_request, fill
from tests.conformance.wire import Connection, Plain
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, StartBroker

OLD = (0, 1, 2, 3)
"""Versions of Fetch that return message formats 0 and 1."""
FOLLOWER, CLIENT = 2, -1
SLOTS = 8
"""Number of cached sessions. Apache Kafka divides its cache into eight shards, each with its own slots."""


def partition_of(answer: Plain) -> Plain:
    found: Plain = answer["responses"][0]["partitions"][0]
    return found


def offsets_of(records: bytes) -> list[int]:
    """Return the offsets of the complete messages in the old formats, including compressed ones."""
    data, found, position = whole_batches(records), list[int](), 0
    while position < len(data):
        message, position = read_message(data, position)
        found += [inner.offset for inner in (unwrap(message) if message.codec else [message])]
    return found


def set_topic(pair: Pair, topic: str, name: str, value: str) -> None:
    """Set a topic config on both brokers."""
    change = {"name": name, "config_operation": 0, "value": value}
    wanted = {"resources": [{"resource_type": 2, "resource_name": topic, "configs": [change]}]}
    for answer in pair.both(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, wanted):
        assert answer["responses"][0]["error_code"] == 0, answer


def await_code(pair: Pair, topic: str, version: int, code: int) -> None:
    """Wait until both brokers respond to a fetch of the topic with error `code`."""
    request = fetch_request(topic, 0)

    def answered() -> bool:
        answers = pair.both(ApiKey.FETCH, version, request)
        return all(partition_of(answer)["error_code"] == code for answer in answers)

    wait_until(answered, 10, f"error code {code} of {topic}")


# Old clients


def test_zstd_records_are_not_sent_to_clients_that_do_not_support_zstd(pair: Pair) -> None:
    packed = pair.topic(configs={"compression.type": "zstd"})
    plain = pair.topic()
    fill(pair, packed, batch(3, compression=CompressionType.ZSTD))
    fill(pair, plain, batch(3))
    request = fetch_request(packed, 0)
    request["topics"] += fetch_request(plain, 0)["topics"]
    for version in pair.versions(ApiKey.FETCH, 4, 12):
        answer = pair.same(ApiKey.FETCH, request, [version])
        of_topic = {entry["topic"]: entry["partitions"][0] for entry in answer["responses"]}
        assert of_topic[packed]["error_code"] == (76 if version < 10 else 0)
        assert of_topic[packed]["high_watermark"] == (-1 if version < 10 else 3)
        assert of_topic[plain]["high_watermark"] == 3
    for version in OLD:
        for answer in pair.both(ApiKey.FETCH, version, request):
            codes = {entry["topic"]: entry["partitions"][0]["error_code"] for entry in answer["responses"]}
            assert codes == {packed: 76, plain: 0}


def test_the_compression_type_setting_determines_whether_a_fetch_needs_zstd_support(pair: Pair) -> None:
    empty = pair.topic(configs={"compression.type": "zstd"})
    pair.same(ApiKey.FETCH, fetch_request(empty, 0), pair.versions(ApiKey.FETCH, 0, 12))
    pair.same(ApiKey.FETCH, fetch_request(empty, 5), pair.versions(ApiKey.FETCH, 0, 12))
    topic = pair.topic()
    fill(pair, topic, batch(3, compression=CompressionType.ZSTD))
    pair.same(ApiKey.FETCH, fetch_request(topic, 0), pair.versions(ApiKey.FETCH, 0, 12))
    set_topic(pair, topic, "compression.type", "zstd")
    await_code(pair, topic, 9, 76)
    pair.same(ApiKey.FETCH, fetch_request(topic, 0), pair.versions(ApiKey.FETCH, 0, 12))


def test_a_session_reports_an_unreadable_zstd_topic_only_when_the_topic_changes(pair: Pair) -> None:
    """A version 9 client receives the error after each change of the topic, and nothing in between."""
    topic = pair.topic(configs={"compression.type": "zstd"})
    fill(pair, topic, batch(3))
    opened = pair.both(ApiKey.FETCH, 9, fetch_request(topic, 3, session_epoch=0))
    assert [partition_of(answer)["error_code"] for answer in opened] == [76, 76]
    session = Sessions(pair, opened, version=9)
    session.same([])
    fill(pair, topic, batch(2))
    assert partition_of(session.same([]))["error_code"] == 76


@pytest.mark.parametrize("version", OLD)
def test_records_before_a_zstd_batch_are_down_converted(pair: Pair, version: int) -> None:
    topic = pair.topic()
    fill(pair, topic, batch(3), batch(2, compression=CompressionType.ZSTD), batch(2))
    for offset, code, offsets in ((1, 0, [1, 2]), (3, 76, []), (5, 0, [5, 6])):
        for answer in pair.both(ApiKey.FETCH, version, fetch_request(topic, offset)):
            found = partition_of(answer)
            assert (found["error_code"], offsets_of(found["records"] or b"")) == (code, offsets)


@pytest.mark.parametrize("version", OLD)
def test_down_converted_records_begin_at_the_requested_offset(pair: Pair, version: int) -> None:
    topic, packed = pair.topic(), pair.topic()
    fill(pair, topic, batch(10), batch(5))
    fill(pair, packed, batch(10, compression=CompressionType.GZIP), batch(5))
    for name, offset, first in ((topic, 7, 7), (topic, 12, 12), (topic, 10, 10), (packed, 7, 0)):
        ours, genuine = (
            offsets_of(partition_of(answer)["records"])
            for answer in pair.both(ApiKey.FETCH, version, fetch_request(name, offset))
        )
        assert ours == list(range(first, 15))
        assert genuine and genuine == ours[: len(genuine)], "Kafka may return fewer"


def test_down_conversion_can_be_disabled_per_topic(pair: Pair) -> None:
    topic = pair.topic(configs={"message.downconversion.enable": "false"})
    fill(pair, topic, batch(3))
    for offset in (0, 3, 9):
        answer = pair.same(ApiKey.FETCH, fetch_request(topic, offset), OLD)
        assert partition_of(answer)["error_code"] == 35
    answer = pair.same(ApiKey.FETCH, fetch_request(topic, 0), pair.versions(ApiKey.FETCH, 4, 12))
    assert partition_of(answer)["high_watermark"] == 3
    set_topic(pair, topic, "compression.type", "zstd")
    await_code(pair, topic, 3, 76)
    set_topic(pair, topic, "compression.type", "producer")
    set_topic(pair, topic, "message.downconversion.enable", "true")
    await_code(pair, topic, 3, 0)


# Fetch sessions


class Sessions:
    """A fetch session on each broker of a pair."""

    def __init__(self, pair: Pair, opened: list[Plain], *, version: int = 11) -> None:
        self.pair = pair
        self.ids = {side: answer["session_id"] for side, answer in zip(pair.sides, opened, strict=True)}
        self.version = version
        self.epoch = 0

    def request(self, topics: list[Plain], **more: Any) -> Callable[[str], Plain]:
        """Return the next incremental request."""
        self.epoch += 1
        base = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 24, "topics": topics, **more}
        epoch = self.epoch
        return lambda side: {**base, "session_id": self.ids[side], "session_epoch": epoch}

    def same(self, topics: list[Plain], **more: Any) -> Plain:
        """Send the request to both brokers, and return our response, which must match Apache Kafka's."""
        return self.pair.same(ApiKey.FETCH, self.request(topics, **more), (self.version,))


def test_a_session_can_be_created_without_partitions(pair: Pair) -> None:
    topic = pair.topic()
    fill(pair, topic, batch(3))
    opened = pair.both(
        ApiKey.FETCH, 11, {"max_wait_ms": 0, "session_id": 0, "session_epoch": 0, "topics": []}
    )
    session = Sessions(pair, opened)
    assert all(session.ids.values())
    answer = session.same(fetch_request(topic, 0)["topics"])
    assert partition_of(answer)["high_watermark"] == 3
    session.same([])


def test_a_session_without_partitions_is_closed_by_its_next_request(pair: Pair) -> None:
    opened = pair.both(
        ApiKey.FETCH, 11, {"max_wait_ms": 0, "session_id": 0, "session_epoch": 0, "topics": []}
    )
    session = Sessions(pair, opened)
    assert session.same([])["session_id"] == 0
    assert session.same([])["error_code"] == 70


def test_a_session_that_loses_its_last_partition_gets_an_empty_response(pair: Pair) -> None:
    topic = pair.topic()
    ids = pair.ids(topic)
    fill(pair, topic, batch(5))

    def named(offset: int) -> Callable[[str], list[Plain]]:
        return lambda side: [{**fetch_request(topic, offset)["topics"][0], "topic_id": ids[side]}]

    def full(side: str) -> Plain:
        return {**fetch_request(topic, 0, session_epoch=0), "topics": named(0)(side)}

    session = Sessions(pair, pair.both(ApiKey.FETCH, 15, full), version=15)
    request = session.request([])

    def moved_and_forgotten(side: str) -> Plain:
        forgotten = [{"topic_id": ids[side], "partitions": [0]}]
        return {**request(side), "topics": named(2)(side), "forgotten_topics_data": forgotten}

    answer = pair.same(ApiKey.FETCH, moved_and_forgotten, (15,))
    assert answer["session_id"] == 0
    assert partition_of(answer)["records"] == batch(5, leader_epoch=0)
    assert session.same([])["error_code"] == 70


def test_a_fetch_overtaken_by_a_later_fetch_of_its_session_gets_kafkas_error(pair: Pair) -> None:
    """A later fetch of the session comes from a different connection: the waiting fetch must not return data,
    because the client would not expect its epoch.
    """
    topic = pair.topic()
    opened = pair.both(ApiKey.FETCH, 11, fetch_request(topic, 0, session_epoch=0))
    session = Sessions(pair, opened)
    waits = session.request([], max_wait_ms=60_000, min_bytes=1)
    others = {side: Connection(address) for side, address in zip(pair.sides, pair.addresses, strict=True)}
    try:
        for side, connection in others.items():
            connection.begin(ApiKey.FETCH, 11, waits(side))
        assert all(connection.hears_nothing() for connection in others.values())
        session.same([])
        fill(pair, topic, batch(1))
        for side, connection in others.items():
            answer = connection.finish(ApiKey.FETCH, 11)
            assert (answer["error_code"], answer["session_id"]) == (71, session.ids[side])
            assert answer["responses"] == []
    finally:
        for connection in others.values():
            connection.close()


def delete(pair: Pair, topic: str) -> None:
    for answer in pair.both(ApiKey.DELETE_TOPICS, 5, {"topic_names": [topic], "timeout_ms": 15_000}):
        assert answer["responses"][0]["error_code"] == 0, answer
    pair.await_topic(topic, 3)


def recreate(pair: Pair, topic: str) -> None:
    wanted = {"name": topic, "num_partitions": 1, "replication_factor": 1}
    request = {"topics": [wanted], "timeout_ms": 15_000}
    waiting = dict(pair.sides)

    def created() -> bool:
        for side, connection in dict(waiting).items():
            code = connection.ask(ApiKey.CREATE_TOPICS, 4, request)["topics"][0]["error_code"]
            # Apache Kafka may still be deleting the topic's log.
            assert code in (0, 36)
            if code == 0:
                del waiting[side]
        return not waiting

    wait_until(created, 10, f"creation of {topic}")
    pair.await_topic(topic, 0)


def error_codes(answer: Plain) -> list[int]:
    return [part["error_code"] for topic in answer["responses"] for part in topic["partitions"]]


def by_id(pair: Pair, topics: list[str], **more: Any) -> Callable[[str], Plain]:
    """Return a fetch of partition 0 of each topic, by topic ID."""
    ids = {topic: pair.ids(topic) for topic in topics}

    def request(side: str) -> Plain:
        wanted = [{**fetch_request(topic, 0)["topics"][0], "topic_id": ids[topic][side]} for topic in topics]
        return {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 24, "topics": wanted, **more}

    return request


def test_a_session_distinguishes_deleted_and_recreated_topics_from_unknown_ids(pair: Pair) -> None:
    kept, deleted = pair.topic(), pair.topic()
    request = by_id(pair, [kept, deleted], session_epoch=0)
    session = Sessions(pair, pair.both(ApiKey.FETCH, 15, request), version=15)
    delete(pair, deleted)
    assert error_codes(session.same([])) == [3]
    assert error_codes(pair.same(ApiKey.FETCH, request, (15,))) == [0, 100]
    recreate(pair, deleted)

    def recreated() -> bool:
        # With ZooKeeper, the metadata shows the new topic before its leader serves it.
        answers = pair.both(ApiKey.FETCH, 15, session.request([]))
        return all(error_codes(answer) == [103] for answer in answers)

    wait_until(recreated, 10, "INCONSISTENT_TOPIC_ID")
    session.same([])


@pytest.mark.parametrize("version", [11, 15])
def test_a_consumer_waits_for_records_although_another_topic_does_not_exist(pair: Pair, version: int) -> None:
    """Otherwise, a consumer of a deleted topic would fetch without a pause."""
    kept, deleted = pair.topic(), pair.topic()
    request = by_id(pair, [kept, deleted], max_wait_ms=60_000, min_bytes=1)
    delete(pair, deleted)
    for side, connection in pair.sides.items():
        connection.begin(ApiKey.FETCH, version, request(side))
    assert all(connection.hears_nothing() for connection in pair.sides.values())
    others = Pair(*pair.addresses)
    fill(others, kept, batch(1))
    others.close()
    for connection in pair.sides.values():
        answer = connection.finish(ApiKey.FETCH, version)
        assert error_codes(answer) == [0, 3 if version == 11 else 100]
        assert partition_of(answer)["high_watermark"] == 1


def test_a_consumer_is_notified_at_once_if_no_topic_exists(pair: Pair) -> None:
    topics = [pair.topic(), pair.topic()]
    request = by_id(pair, topics, max_wait_ms=60_000, min_bytes=1)
    for topic in topics:
        delete(pair, topic)
    assert error_codes(pair.same(ApiKey.FETCH, request, (15,))) == [100, 100]


def test_a_waiting_consumer_is_notified_at_once_if_a_topic_is_deleted(pair: Pair) -> None:
    kept, deleted = pair.topic(), pair.topic()
    request = by_id(pair, [kept, deleted], max_wait_ms=60_000, min_bytes=1)
    for side, connection in pair.sides.items():
        connection.begin(ApiKey.FETCH, 15, request(side))
    assert all(connection.hears_nothing() for connection in pair.sides.values())
    others = Pair(*pair.addresses)
    delete(others, deleted)
    others.close()
    answers = [connection.finish(ApiKey.FETCH, 15) for connection in pair.sides.values()]
    assert [error_codes(answer) for answer in answers] == [[0, 3], [0, 3]]


@pytest.fixture
def small_pair(start_broker: StartBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Brokers whose cache holds eight sessions."""
    settings = {"max.incremental.fetch.session.cache.slots": str(SLOTS)}
    genuine = GenuineKafka(tmp_path_factory.mktemp("kafka-3.9.1"), settings)
    genuine.start()
    found = Pair(start_broker(settings).address, genuine.address)
    yield found
    found.close()
    genuine.stop()


def test_sessions_are_evicted_from_a_full_cache_as_in_apache_kafka(small_pair: Pair) -> None:
    pair = small_pair
    topic = pair.topic(3)

    def opened(replica_id: int, partitions: int) -> Sessions:
        wanted = [
            {"partition": number, "fetch_offset": 0, "partition_max_bytes": 1000}
            for number in range(partitions)
        ]
        topics = [{"topic": topic, "partitions": wanted}]
        request = {"replica_id": replica_id, "max_wait_ms": 0, "session_epoch": 0, "topics": topics}
        return Sessions(pair, pair.both(ApiKey.FETCH, 11, request))

    clients = [opened(CLIENT, 2) for _ in range(SLOTS)]
    assert all(all(session.ids.values()) for session in clients)
    assert not any(opened(CLIENT, 3).ids.values()), "a client evicts only old sessions"
    followers = [opened(FOLLOWER, 1) for _ in range(SLOTS)]
    assert all(all(session.ids.values()) for session in followers), "each follower evicts a client's session"
    assert {session.same([])["error_code"] for session in clients} == {70}
    assert not any(opened(FOLLOWER, 3).ids.values()), "followers evict only old sessions of other followers"
    assert not any(opened(CLIENT, 3).ids.values())
    assert {session.same([])["error_code"] for session in followers} == {0}
