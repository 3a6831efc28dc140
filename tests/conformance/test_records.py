"""Produce, Fetch, ListOffsets, OffsetForLeaderEpoch and DeleteRecords, compared with Apache Kafka 3.9.1."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Record, build_batch
from tests.conformance.batches import START_MS, batch, old_message
from tests.conformance.differential import Pair
from tests.conformance.record_requests import (
    await_producer_ids,
    fetch_request,
    fill,
    offsets_request,
    produce_request,
)
from tests.conformance.wire import Plain


def test_produce_responses_match_kafkas_in_every_version(pair: Pair) -> None:
    topic = pair.topic(2)
    pair.same(ApiKey.PRODUCE, produce_request(topic, batch(3)), pair.versions(ApiKey.PRODUCE, 3))
    message = old_message(0, b"old", b"key")
    pair.same(ApiKey.PRODUCE, produce_request(topic, message, acks=1), pair.versions(ApiKey.PRODUCE, 0, 2))
    message = old_message(1, b"old", b"key") + old_message(1, b"second", None, offset=1, number=1)
    pair.same(ApiKey.PRODUCE, produce_request(topic, message, acks=1), pair.versions(ApiKey.PRODUCE, 2, 2))


@pytest.mark.parametrize("compression", list(CompressionType))
def test_records_of_every_codec_are_fetched_unchanged(pair: Pair, compression: CompressionType) -> None:
    topic = pair.topic()
    fill(pair, topic, batch(20, compression=compression), batch(3))
    versions = pair.versions(ApiKey.FETCH, 10, 12)
    answer = pair.same(ApiKey.FETCH, fetch_request(topic, 0), versions)
    assert answer["responses"][0]["partitions"][0]["high_watermark"] == 23


def test_producing_to_unknown_partitions_fails(pair: Pair) -> None:
    topic = pair.topic()
    versions = pair.versions(ApiKey.PRODUCE, 3)
    pair.same(ApiKey.PRODUCE, produce_request(pair.name("absent"), batch()), versions)
    pair.same(ApiKey.PRODUCE, produce_request(topic, batch(), partition=7), versions)
    pair.same(ApiKey.PRODUCE, produce_request(topic, batch(), partition=-1), versions)
    pair.same(ApiKey.PRODUCE, produce_request("a/b", batch()), versions)


def test_produce_responses_contain_the_log_append_time(pair: Pair) -> None:
    topic = pair.topic(configs={"message.timestamp.type": "LogAppendTime"})
    ours, genuine = pair.both(ApiKey.PRODUCE, 9, produce_request(topic, batch()))
    for answer in (ours, genuine):
        assert answer["responses"][0]["partition_responses"][0]["log_append_time_ms"] > START_MS


def test_fetch_responses_match_kafkas_in_every_version(pair: Pair) -> None:
    topic = pair.topic()
    fill(pair, topic, batch(3), batch(4, start=10))
    for offset in (0, 1, 3, 5, 7):
        pair.same(ApiKey.FETCH, fetch_request(topic, offset), pair.versions(ApiKey.FETCH, 4, 12))
    ids = pair.ids(topic)

    def by_id(side: str) -> Plain:
        request = fetch_request(topic, 1)
        request["topics"][0]["topic_id"] = ids[side]
        return request

    pair.same(ApiKey.FETCH, by_id, pair.versions(ApiKey.FETCH, 13))


def test_records_are_down_converted_for_old_clients(pair: Pair) -> None:
    topic = pair.topic()
    fill(pair, topic, batch(3), batch(5, start=3, compression=CompressionType.GZIP))
    for version in (0, 1, 2, 3):
        for answer in pair.both(ApiKey.FETCH, version, fetch_request(topic, 0)):
            partition = answer["responses"][0]["partitions"][0]
            magic = partition["records"][16]
            assert (partition["error_code"], partition["high_watermark"]) == (0, 8)
            assert magic == (1 if version >= 2 else 0)
    pair.same(ApiKey.FETCH, fetch_request(topic, 0, max_bytes=150), (0, 1, 2, 3))


def test_fetch_limits_apply_to_all_but_the_first_batch(pair: Pair) -> None:
    """The first batch is returned whole even if it exceeds the limit; later batches are returned only within
    the limits.
    """
    topic = pair.topic(2)
    fill(pair, topic, *(batch(2, start=number * 2) for number in range(5)))
    fill(pair, topic, batch(2), partition=1)
    size = len(batch(2))
    for limit in (0, 1, size - 1, size, size + 1, 3 * size, 3 * size + size // 2):
        pair.same(ApiKey.FETCH, fetch_request(topic, 0, max_bytes=limit), (4, 11))
    for limit in (1, size, 2 * size):
        pair.same(ApiKey.FETCH, fetch_request(topic, 4) | {"max_bytes": limit}, (4, 11))


def test_invalid_fetches_get_kafkas_errors(pair: Pair) -> None:
    topic = pair.topic()
    fill(pair, topic, batch(3))
    names = pair.versions(ApiKey.FETCH, 4, 12)
    for offset in (-1, 4, 1000):
        pair.same(ApiKey.FETCH, fetch_request(topic, offset), names)
    pair.same(ApiKey.FETCH, fetch_request(pair.name("absent"), 0), names)
    pair.same(ApiKey.FETCH, fetch_request(topic, 0, partition=5), names)
    for epoch in (0, 1, 99):
        pair.same(ApiKey.FETCH, fetch_request(topic, 0, current_leader_epoch=epoch), (9, 11, 12))
    for epoch in (0, 5):
        pair.same(ApiKey.FETCH, fetch_request(topic, 3, last_fetched_epoch=epoch), (12,))
    by_unknown_id = fetch_request(topic, 0)
    pair.same(ApiKey.FETCH, by_unknown_id, pair.versions(ApiKey.FETCH, 13))


def test_incremental_fetches_return_only_changes(pair: Pair) -> None:
    """A full fetch creates a session, and incremental fetches return only changes. Wrong session ids and
    epochs are rejected.
    """
    topic = pair.topic(2)
    fill(pair, topic, batch(3))
    first = fetch_request(topic, 0)
    first["topics"][0]["partitions"].append(
        {"partition": 1, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    )
    opened = pair.both(ApiKey.FETCH, 11, first | {"session_id": 0, "session_epoch": 0})
    ids = {side: answer["session_id"] for side, answer in zip(pair.sides, opened, strict=True)}
    assert all(ids.values())

    def in_session(epoch: int, topics: list[Plain], **more: Any) -> Any:
        base = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 24, "topics": topics, **more}
        return lambda side: {**base, "session_id": ids[side], "session_epoch": epoch}

    again = [
        {"topic": topic, "partitions": [{"partition": 0, "fetch_offset": 3, "partition_max_bytes": 1 << 20}]}
    ]
    pair.same(ApiKey.FETCH, in_session(1, again), (11,))
    pair.same(ApiKey.FETCH, in_session(2, []), (11,))
    fill(pair, topic, batch(2), partition=1)
    pair.same(ApiKey.FETCH, in_session(3, []), (11,))
    forgotten = [{"topic": topic, "partitions": [1]}]
    pair.same(ApiKey.FETCH, in_session(4, [], forgotten_topics_data=forgotten), (11,))
    pair.same(ApiKey.FETCH, in_session(99, []), (11,))
    pair.same(ApiKey.FETCH, {**first, "session_id": 123_456_789, "session_epoch": 3}, (11,))
    pair.same(ApiKey.FETCH, in_session(-1, []), (11,))
    pair.same(ApiKey.FETCH, in_session(5, []), (11,))


@pytest.mark.parametrize(
    "timestamp",
    [-1, -2, START_MS - 1, START_MS, START_MS + 2500, START_MS + 1_000_000],
    ids=["latest", "earliest", "before", "first", "between", "after"],
)
def test_list_offsets_finds_kafkas_offsets_by_timestamp(pair: Pair, timestamp: int) -> None:
    topic = pair.topic()
    fill(pair, topic, batch(3), batch(3, start=3, compression=CompressionType.GZIP))
    pair.same(ApiKey.LIST_OFFSETS, offsets_request(topic, timestamp), pair.versions(ApiKey.LIST_OFFSETS, 1))
    pair.same(ApiKey.LIST_OFFSETS, offsets_request(topic, timestamp, isolation=1), (2, 5, 7))


def test_list_offsets_version_0_returns_kafkas_response(pair: Pair) -> None:
    """Version 0 returns the start offsets of segments by modification time, and the log end offset."""
    empty, single = pair.topic(), pair.topic()
    fill(pair, single, batch(30))
    segmented = pair.topic(configs={"segment.bytes": str(len(batch(10)) + 10)})
    fill(pair, segmented, *(batch(10) for _ in range(4)))
    shortened = pair.topic(configs={"segment.bytes": str(len(batch(10)) + 10)})
    fill(pair, shortened, *(batch(10) for _ in range(4)))
    parts = [{"partition_index": 0, "offset": 15}]
    pair.same(ApiKey.DELETE_RECORDS, {"topics": [{"name": shortened, "partitions": parts}]})
    emptied = pair.topic()
    fill(pair, emptied, batch(3))
    parts = [{"partition_index": 0, "offset": -1}]
    pair.same(ApiKey.DELETE_RECORDS, {"topics": [{"name": emptied, "partitions": parts}]})
    for topic in (empty, single, segmented, shortened, emptied):
        for timestamp in (-1, -2, -3, 0, START_MS, START_MS + 7_200_000, 1 << 62):
            for count in (-1, 0, 1, 3, 9):
                request = offsets_request(topic, timestamp)
                request["topics"][0]["partitions"][0]["max_num_offsets"] = count
                pair.same(ApiKey.LIST_OFFSETS, request, (0,))
                pair.same(ApiKey.LIST_OFFSETS, request | {"replica_id": -2}, (0,))
    asked = offsets_request(segmented, 1 << 62)
    (found,) = pair.same(ApiKey.LIST_OFFSETS, asked, (0,))["topics"][0]["partitions"]
    assert found["old_style_offsets"] == [40, 30, 20, 10, 0]


def test_list_offsets_returns_kafkas_response_for_records_without_timestamps(pair: Pair) -> None:
    def without(count: int = 2, compression: CompressionType = CompressionType.NONE) -> bytes:
        return build_batch([Record(timestamp=-1, value=b"v") for _ in range(count)], compression=compression)

    contents = {
        "none": [without(), without()],
        "compressed": [without(compression=CompressionType.GZIP)],
        "before": [without(), batch(2)],
        "behind": [batch(2), without()],
    }
    for batches in contents.values():
        for size in (1 << 20, 100):
            topic = pair.topic(configs={"segment.bytes": str(size)})
            fill(pair, topic, *batches)
            request = offsets_request(topic, -3)
            pair.same(ApiKey.LIST_OFFSETS, request, pair.versions(ApiKey.LIST_OFFSETS, 7))
            # After a whole segment without timestamps, Apache Kafka does not find later records; our broker
            # does.
            for timestamp in (0, START_MS) if size > 100 else ():
                request = offsets_request(topic, timestamp)
                pair.same(ApiKey.LIST_OFFSETS, request, pair.versions(ApiKey.LIST_OFFSETS, 1))
    topic = pair.topic()
    fill(pair, topic, without())
    (found,) = pair.same(ApiKey.LIST_OFFSETS, offsets_request(topic, -3), (7,))["topics"][0]["partitions"]
    assert (found["timestamp"], found["offset"], found["leader_epoch"]) == (-1, 0, 0)


def test_list_offsets_returns_kafkas_response_for_special_timestamps(pair: Pair) -> None:
    topic, empty = pair.topic(), pair.topic()
    fill(pair, topic, batch(3), batch(3, start=-5))
    for timestamp, first in ((-3, 7), (-4, 8)):
        for name in (topic, empty):
            pair.same(
                ApiKey.LIST_OFFSETS,
                offsets_request(name, timestamp),
                pair.versions(ApiKey.LIST_OFFSETS, first),
            )
    for timestamp in (-1, -2, START_MS):
        pair.same(
            ApiKey.LIST_OFFSETS, offsets_request(empty, timestamp), pair.versions(ApiKey.LIST_OFFSETS, 1)
        )


def test_list_offsets_returns_kafkas_errors(pair: Pair) -> None:
    topic = pair.topic()
    versions = pair.versions(ApiKey.LIST_OFFSETS, 1)
    pair.same(ApiKey.LIST_OFFSETS, offsets_request(pair.name("absent"), -1), versions)
    pair.same(ApiKey.LIST_OFFSETS, offsets_request(topic, -1, partition=9), versions)
    pair.same(ApiKey.LIST_OFFSETS, offsets_request(topic, -7, partition=9), versions)
    for epoch in (0, 5):
        pair.same(ApiKey.LIST_OFFSETS, offsets_request(topic, -1, epoch=epoch), (4, 6, 9))


def test_offset_for_leader_epoch_returns_kafkas_response(pair: Pair) -> None:
    topic = pair.topic()
    fill(pair, topic, batch(3))
    for leader_epoch in (-1, 0, 1, 50):
        for current in (-1, 0, 7):
            parts = [{"partition": 0, "current_leader_epoch": current, "leader_epoch": leader_epoch}]
            request = {"replica_id": -1, "topics": [{"topic": topic, "partitions": parts}]}
            pair.same(ApiKey.OFFSET_FOR_LEADER_EPOCH, request)
    parts = [{"partition": 0, "leader_epoch": 0}, {"partition": 4, "leader_epoch": 0}]
    pair.same(ApiKey.OFFSET_FOR_LEADER_EPOCH, {"topics": [{"topic": topic, "partitions": parts}]})
    absent = {"topics": [{"topic": pair.name("absent"), "partitions": parts}]}
    pair.same(ApiKey.OFFSET_FOR_LEADER_EPOCH, absent)


def test_delete_records_moves_the_log_start_offset(pair: Pair) -> None:
    topic = pair.topic(2)
    fill(pair, topic, batch(5), batch(5))

    def before(offset: int, partition: int = 0, name: str = topic) -> Plain:
        parts = [{"partition_index": partition, "offset": offset}]
        return {"topics": [{"name": name, "partitions": parts}], "timeout_ms": 5000}

    for offset in (3, 2, 11, -5, 7, -1):
        pair.same(ApiKey.DELETE_RECORDS, before(offset))
        pair.same(ApiKey.FETCH, fetch_request(topic, 0), (11,))
        pair.same(ApiKey.FETCH, fetch_request(topic, 8), (5, 11))
        pair.same(ApiKey.LIST_OFFSETS, offsets_request(topic, -2), (5,))
    pair.same(ApiKey.DELETE_RECORDS, before(0, partition=6))
    pair.same(ApiKey.DELETE_RECORDS, before(0, name=pair.name("absent")))
    compacted = pair.topic(configs={"cleanup.policy": "compact"})
    pair.same(ApiKey.DELETE_RECORDS, before(0, name=compacted))


def test_init_producer_id_returns_kafkas_response(pair: Pair) -> None:
    """Any client gets a producer id without a transactional id. A producer id without an epoch, or the
    reverse, is rejected.
    """
    await_producer_ids(pair)
    for producer_id, epoch in ((-1, -1), (5, -1), (-1, 5)):
        request = {"transactional_id": None, "transaction_timeout_ms": 60_000}
        pair.same(ApiKey.INIT_PRODUCER_ID, request | {"producer_id": producer_id, "producer_epoch": epoch})
    pair.same(ApiKey.INIT_PRODUCER_ID, {"transactional_id": "", "transaction_timeout_ms": 60_000})


def test_repeated_and_skipped_sequences_are_handled_as_in_kafka(pair: Pair) -> None:
    """Repetitions return the original offset, gaps OUT_OF_ORDER_SEQUENCE_NUMBER (45), and an older epoch
    INVALID_PRODUCER_EPOCH (47).
    """
    await_producer_ids(pair)
    topic = pair.topic()
    request = {"transactional_id": None, "transaction_timeout_ms": 60_000}
    found = pair.both(ApiKey.INIT_PRODUCER_ID, 4, request)
    ids = {side: answer["producer_id"] for side, answer in zip(pair.sides, found, strict=True)}

    def send(sequence: int, epoch: int = 0, count: int = 2) -> None:
        def sided(side: str) -> Plain:
            made = batch(count, producer_id=ids[side], producer_epoch=epoch, base_sequence=sequence)
            return produce_request(topic, made)

        pair.same(ApiKey.PRODUCE, sided, (9,))

    for sequence in (0, 2, 0, 2, 4, 6, 8, 10, 12, 14, 10, 4, 2, 0, 99, 16, 17):
        send(sequence)
    send(0, epoch=1)
    send(5, epoch=2)
    send(0, epoch=2)
    send(18, epoch=0)
    send(0, epoch=2, count=1)


@pytest.mark.parametrize("epoch", [-1, 0], ids=["without a session", "with a session"])
def test_a_partition_named_several_times_is_fetched_once(pair: Pair, epoch: int) -> None:
    topic = pair.topic()
    fill(pair, topic, batch(3), batch(3))
    for offsets in ([0, 3], [3, 0], [0] * 500):
        request = fetch_request(topic, 0, session_epoch=epoch)
        request["topics"][0]["partitions"] = [
            {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20} for offset in offsets
        ]
        found = pair.same(ApiKey.FETCH, request, pair.versions(ApiKey.FETCH, 7, 12))
        assert len(found["responses"][0]["partitions"]) == 1
