"""Bad input: the broker reacts like Apache Kafka, and other connections are not affected.

The broker either closes the connection without a response, or returns an error and keeps the connection open.
Apache Kafka receives the same input, except where our broker differs on purpose.
"""

from __future__ import annotations

import gzip
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.storage.records.records import Record, build_batch, encode_record
from tests.conformance.batches import (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    COUNT_AT,
    CRC_AT,
    LAST_OFFSET_DELTA_AT,
    MAGIC_AT,
    RECORDS_AT,
    START_MS,
    batch,
    changed,
    old_message,
    record,
)
from tests.conformance.bystander import Bystander
from tests.conformance.differential import Pair
from tests.conformance.group_requests import join, ready_group
from tests.conformance.record_requests import fetch_request, produce_request
from tests.conformance.wire import CLIENT_ID, Closed, Connection, Plain, encode, frame
from tests.support.servers import KafkaCompatBroker


@pytest.fixture(scope="module")
def bystander(our_address: str, genuine_address: str) -> Iterator[Bystander]:
    pair = Pair(our_address, genuine_address)
    found = Bystander(our_address, pair.topic())
    pair.close()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def unharmed(bystander: Bystander) -> Iterator[None]:
    """Check after every test that the bystander's connection still works."""
    bystander.await_rounds()
    yield
    bystander.await_rounds()


def header(api_key: int, version: int, *, client_id: bytes | None = b"x") -> bytes:
    start = struct.pack(">hhi", api_key, version, 7)
    return start + (
        struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    )


_MORE_THAN_UNSENT_MAX = 40
"""Number of 0.9 MB responses that exceeds the buffers of the sockets."""
TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(194)
UNKNOWN_VERSION_PAYLOAD = header(ApiKey.METADATA, 99) + bytes(20)

CLOSED_WITHOUT_ANSWER = {
    "frame size -1": struct.pack(">i", -1) + bytes(20),
    "frame larger than socket.request.max.bytes": struct.pack(">i", 104_857_601) + bytes(20),
    "frame size 0": struct.pack(">i", 0),
    "HTTP on a Kafka port": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS on a plaintext port": TLS_HELLO,
    "API key -1": frame(header(-1, 0) + bytes(10)),
    "API key 999": frame(header(999, 0) + bytes(10)),
    "unknown version": frame(UNKNOWN_VERSION_PAYLOAD),
    "version -1": frame(header(ApiKey.METADATA, -1) + bytes(20)),
    "a header of four bytes": frame(struct.pack(">hh", ApiKey.METADATA, 4)),
    "a header without a body": frame(header(ApiKey.METADATA, 4)),
    "an array of 2^31-1 elements": frame(header(ApiKey.METADATA, 4) + struct.pack(">i", 2**31 - 1) + b"\0"),
    "an array of -5 elements": frame(header(ApiKey.PRODUCE, 3) + struct.pack(">hhii", -1, 1, 1000, -5)),
    "null for an array that cannot be null": frame(
        header(ApiKey.PRODUCE, 3) + struct.pack(">hhii", -1, 1, 1000, -1)
    ),
    "a string longer than the frame": frame(
        header(ApiKey.METADATA, 4) + struct.pack(">ih", 1, 30_000) + b"abc" + b"\0"
    ),
    "a client id longer than the frame": frame(struct.pack(">hhih", ApiKey.METADATA, 4, 7, 9000) + b"abc"),
    "a compact array of 2^31-2 elements": frame(
        header(ApiKey.METADATA, 9) + b"\0" + b"\xff\xff\xff\xff\x07" + bytes(4)
    ),
    "a compact string longer than the frame": frame(
        header(ApiKey.METADATA, 9) + b"\0" + b"\x02" + b"\xff\xff\x7f" + b"abc" + bytes(4)
    ),
    "truncated tagged field": frame(header(ApiKey.METADATA, 9) + b"\x01\x05\x64" + b"abc"),
    "an API of the controller's listener": frame(header(52, 0) + bytes(20)),
}


def _connect(address: str) -> Connection:
    return Connection(address)


@pytest.mark.parametrize("what", CLOSED_WITHOUT_ANSWER)
def test_invalid_frames_close_the_connection_without_a_response(
    our_address: str, genuine_address: str, what: str
) -> None:
    for side, address in (("genuine", genuine_address), ("ours", our_address)):
        with _connect(address) as connection:
            connection.send(CLOSED_WITHOUT_ANSWER[what])
            assert connection.closed_by_peer(), f"{side}: {what}"


def test_responses_to_requests_before_an_invalid_frame_are_sent(
    our_address: str, genuine_address: str
) -> None:
    """A response is sent before the invalid frame closes the connection."""
    for address in (genuine_address, our_address):
        with _connect(address) as connection:
            connection.send(encode(ApiKey.API_VERSIONS, 0, {}, 41))
            assert connection.receive()[:4] == struct.pack(">i", 41)
            connection.send(CLOSED_WITHOUT_ANSWER["API key 999"])
            assert connection.closed_by_peer()


def test_bytes_after_the_request_are_ignored(our_address: str, genuine_address: str) -> None:
    for address in (genuine_address, our_address):
        with _connect(address) as connection:
            request = encode(ApiKey.METADATA, 4, {"topics": []}, 5)
            connection.send(frame(request[4:] + b"trailing"))
            assert connection.receive()[:4] == struct.pack(">i", 5)


def test_an_unfinished_frame_has_a_deadline(start_broker: Callable[..., KafkaCompatBroker]) -> None:
    """Only our broker has this deadline. Without it, a partial frame would hold the connection until the idle
    timeout.
    """
    broker = start_broker({"kafka.compat.frame.timeout.ms": "300"})
    with _connect(broker.address) as connection, _connect(broker.address) as patient:
        connection.send(encode(ApiKey.METADATA, 4, {"topics": []})[:-3])
        assert connection.closed_by_peer(5)
        assert patient.ask(ApiKey.METADATA, 4, {"topics": []})["topics"] == []


def test_the_frame_deadline_is_suspended_while_the_broker_does_not_read_from_the_client(
    start_broker: Callable[..., KafkaCompatBroker],
) -> None:
    """A partial frame follows requests whose responses the client does not read until after the deadline."""
    broker = start_broker({"kafka.compat.frame.timeout.ms": "300", "auto.create.topics.enable": "true"})
    with _connect(broker.address) as connection:
        connection.ask(ApiKey.METADATA, 4, {"topics": [{"name": "t"}], "allow_auto_topic_creation": True})
        for _ in range(2):
            data = build_batch([Record(0, START_MS, b"k", bytes(900_000), ())])
            answer = connection.ask(ApiKey.PRODUCE, 9, produce_request("t", data))
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer
        fetch = encode(ApiKey.FETCH, 11, fetch_request("t", 0))
        last = encode(ApiKey.METADATA, 4, {"topics": []})
        connection.send(fetch * _MORE_THAN_UNSENT_MAX + last[:-3])
        threading.Event().wait(1.5)
        for _ in range(_MORE_THAN_UNSENT_MAX):
            assert len(connection.receive()) > 900_000
        connection.send(last[-3:])
        assert connection.receive()


def test_connections_over_the_limit_per_address_are_closed(
    start_broker: Callable[..., KafkaCompatBroker],
) -> None:
    """Excess connections are accepted and then closed. Closing one makes room for a new one."""
    broker = start_broker({"max.connections.per.ip": "2"})
    first, second = _connect(broker.address), _connect(broker.address)
    for connection in (first, second):
        connection.ask(ApiKey.API_VERSIONS, 0, {})
    with _connect(broker.address) as third:
        assert third.closed_by_peer()
    second.ask(ApiKey.API_VERSIONS, 0, {})
    first.close()
    for _ in range(100):
        with _connect(broker.address) as fourth:
            try:
                fourth.ask(ApiKey.API_VERSIONS, 0, {})
                break
            except Closed:
                continue
    else:
        pytest.fail("a new connection after one was closed")
    second.close()


@pytest.mark.parametrize("failing", ["unknown topic", "bad CRC"])
def test_an_error_with_acks_0_closes_the_connection(
    our_address: str, genuine_address: str, pair: Pair, failing: str
) -> None:
    topic = pair.name("absent") if failing == "unknown topic" else pair.topic()
    data = changed(batch(), CRC_AT, "I", 1, seal=False)
    for address in (genuine_address, our_address):
        with _connect(address) as connection:
            connection.send(encode(ApiKey.PRODUCE, 9, produce_request(topic, data, acks=0)))
            assert connection.closed_by_peer()


def test_a_successful_produce_request_with_acks_0_gets_no_response(pair: Pair) -> None:
    topic = pair.topic()
    for connection in pair.sides.values():
        connection.send(encode(ApiKey.PRODUCE, 9, produce_request(topic, batch(), acks=0)))
        assert connection.ask(ApiKey.METADATA, 4, {"topics": []})["topics"] == []


def code_of(answer: Plain) -> int:
    found: int = answer["responses"][0]["partition_responses"][0]["error_code"]
    return found


def with_record(body: bytes) -> bytes:
    """Return a batch with one record that consists of `body`, with a valid CRC."""
    plain = batch(1)
    data = bytearray(plain[:RECORDS_AT] + body)
    struct.pack_into(">i", data, 8, len(data) - 12)
    return changed(bytes(data), COUNT_AT, "i", 1)


def _one_record() -> bytes:
    return encode_record(0, 0, b"key", b"value")


def _compressed(codec: int, payload: bytes) -> bytes:
    return changed(with_record(payload), ATTRIBUTES_AT, "h", codec)


GOOD = batch(3)
REFUSED_BATCHES: dict[str, tuple[bytes, int]] = {
    "wrong CRC": (changed(GOOD, CRC_AT, "I", 12345, seal=False), 2),
    "magic 3": (changed(GOOD, MAGIC_AT, "b", 3), 2),
    "batch length below 14": (changed(GOOD, 8, "i", 13), 2),
    "negative batch length": (changed(GOOD, 8, "i", -1), 2),
    "format 1 in a version for format 2": (old_message(1, b"value"), 87),
    "format 0 in a version for format 2": (old_message(0, b"value"), 87),
    "truncated batch": (GOOD[:-5], 87),
    "two batches": (GOOD + GOOD, 87),
    "base offset that is not 0": (changed(GOOD, 0, "q", 5), 87),
    "count that contradicts the last offset": (changed(GOOD, LAST_OFFSET_DELTA_AT, "i", 7), 87),
    "count 0": (changed(GOOD, COUNT_AT, "i", 0), 87),
    "count -1": (changed(changed(GOOD, COUNT_AT, "i", -1), LAST_OFFSET_DELTA_AT, "i", -2), 87),
    "a control batch": (changed(GOOD, ATTRIBUTES_AT, "h", 0x20), 87),
    "producer id without sequence": (batch(3, producer_id=4000, producer_epoch=0, base_sequence=-1), 87),
    "record length beyond the batch": (with_record(b"\x7c" + _one_record()[1:]), 87),
    "header count below 0": (with_record(_one_record()[:-1] + b"\x01"), 87),
    "header count beyond the record": (with_record(_one_record()[:-1] + b"\x28"), 87),
    "key length beyond the record": (with_record(_one_record()[:4] + b"\x7c" + _one_record()[5:]), 87),
    "bytes after the last record": (with_record(_one_record() + b"more"), 87),
    "empty records": (b"", 87),
}


@pytest.mark.parametrize("what", REFUSED_BATCHES)
def test_invalid_batches_are_rejected_as_in_apache_kafka(pair: Pair, what: str) -> None:
    data, expected = REFUSED_BATCHES[what]
    topic = pair.topic()
    assert code_of(pair.same(ApiKey.PRODUCE, produce_request(topic, data), (9,))) == expected
    pair.same(ApiKey.FETCH, fetch_request(topic, 0), (11,))
    answers = pair.both(ApiKey.PRODUCE, 9, produce_request(topic, GOOD))
    assert [code_of(answer) for answer in answers] == [0, 0], "the partition still accepts valid batches"


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_reported_as_an_invalid_record(pair: Pair, codec: int) -> None:
    """An unknown codec returns INVALID_RECORD (87). Apache Kafka returns UNKNOWN_SERVER_ERROR."""
    request = produce_request(pair.topic(), _compressed(codec, _one_record()))
    assert code_of(pair.sides["ours"].ask(ApiKey.PRODUCE, 9, request)) == 87


@pytest.mark.parametrize("codec", list(CompressionType)[1:])
def test_invalid_compressed_data_with_a_valid_crc_is_reported_as_a_corrupt_message(
    pair: Pair, codec: CompressionType
) -> None:
    """Our broker returns CORRUPT_MESSAGE (2)."""
    request = produce_request(pair.topic(), _compressed(codec, b"this is no compressed data at all" * 3))
    assert code_of(pair.sides["ours"].ask(ApiKey.PRODUCE, 9, request)) == 2


def test_a_decompression_bomb_is_rejected(pair: Pair) -> None:
    """Our broker rejects 200 KB that decompress to 200 MB of zeros with MESSAGE_TOO_LARGE (10), and bounds
    the memory used.
    """
    body = encode_record(0, 0, b"key", bytes(200_000_000))
    bomb = _compressed(CompressionType.GZIP, gzip.compress(body, 9))
    assert len(bomb) < 300_000
    request = produce_request(pair.topic(configs={"max.message.bytes": "1000000"}), bomb)
    assert code_of(pair.sides["ours"].ask(ApiKey.PRODUCE, 9, request)) == 10


def test_invalid_values_of_acks_are_rejected(pair: Pair) -> None:
    topic = pair.topic()
    for acks in (2, -2, 100):
        answer = pair.same(ApiKey.PRODUCE, produce_request(topic, GOOD, acks=acks), (3, 9))
        assert code_of(answer) == 21


def test_null_keys_in_a_compacted_topic_are_reported_per_record(pair: Pair) -> None:
    """The error is INVALID_RECORD (87), and the response names the record."""
    topic = pair.topic(configs={"cleanup.policy": "compact"})
    records = [record(0), record(1, key=None), record(2), record(3, key=None)]
    answer = pair.same(ApiKey.PRODUCE, produce_request(topic, build_batch(records)), (9,))
    found = answer["responses"][0]["partition_responses"][0]
    assert found["error_code"] == 87
    assert [error["batch_index"] for error in found["record_errors"]] == [1, 3]


def test_a_log_append_time_bit_set_by_a_client_is_rejected(pair: Pair) -> None:
    topic = pair.topic(configs={"message.timestamp.type": "LogAppendTime"})
    answer = pair.same(ApiKey.PRODUCE, produce_request(topic, changed(GOOD, ATTRIBUTES_AT, "h", 8)), (9,))
    assert code_of(answer) == 32


def test_zstd_needs_produce_version_7(pair: Pair) -> None:
    request = produce_request(pair.topic(), batch(3, compression=CompressionType.ZSTD))
    answer = pair.same(ApiKey.PRODUCE, request, (3, 6))
    assert code_of(answer) == 76
    assert code_of(pair.same(ApiKey.PRODUCE, request, (7,))) == 0


def test_timestamps_outside_the_window_are_rejected(pair: Pair) -> None:
    topic = pair.topic(
        configs={"message.timestamp.after.max.ms": "1000", "message.timestamp.before.max.ms": "1000"}
    )
    for shift_ms in (0, 7_200_000):
        made = build_batch([Record(0, START_MS + shift_ms, b"key", b"value", ())])
        assert code_of(pair.same(ApiKey.PRODUCE, produce_request(topic, made), (9,))) == 32


def test_batches_with_missing_keys_or_invalid_timestamps_are_rejected_as_in_kafka(pair: Pair) -> None:
    topic = pair.topic(configs={"cleanup.policy": "compact", "message.timestamp.after.max.ms": "1000"})
    keyless, good = Record(0, START_MS, None, b"value", ()), Record(0, START_MS, b"key", b"value", ())
    early = Record(0, START_MS + 7_200_000, b"key", b"value", ())
    for records, code in (([keyless] * 5, 87), ([good, keyless], 87), ([keyless, early], 32)):
        answer = pair.same(ApiKey.PRODUCE, produce_request(topic, build_batch(records)), (9,))
        assert code_of(answer) == code


def test_oversized_batches_are_rejected(pair: Pair) -> None:
    small = pair.topic(configs={"max.message.bytes": "200"})
    assert code_of(pair.same(ApiKey.PRODUCE, produce_request(small, batch(20)), (9,))) == 10
    short = pair.topic(configs={"segment.bytes": "150"})
    assert code_of(pair.same(ApiKey.PRODUCE, produce_request(short, batch(20)), (9,))) == 18


def test_invalid_sequences_and_epochs_are_rejected(pair: Pair) -> None:
    """A gap returns OUT_OF_ORDER_SEQUENCE_NUMBER (45), a repetition the original offset, and an older epoch
    INVALID_PRODUCER_EPOCH (47).
    """
    topic = pair.topic()

    def send(sequence: int, epoch: int) -> Plain:
        made = batch(2, producer_id=77_000, producer_epoch=epoch, base_sequence=sequence)
        return pair.same(ApiKey.PRODUCE, produce_request(topic, made), (9,))

    assert code_of(send(0, 3)) == 0
    assert code_of(send(9, 3)) == 45
    repeated = send(0, 3)["responses"][0]["partition_responses"][0]
    assert (repeated["error_code"], repeated["base_offset"]) == (0, 0)
    assert code_of(send(2, 2)) == 47


def test_a_transactional_batch_needs_a_transactional_id(pair: Pair) -> None:
    made = batch(2, producer_id=77_001, producer_epoch=0, base_sequence=0, transactional=True)
    assert code_of(pair.same(ApiKey.PRODUCE, produce_request(pair.topic(), made), (9,))) == 53


def test_producing_to_internal_and_unknown_topics_is_rejected(pair: Pair) -> None:
    for connection in pair.sides.values():  # creates __consumer_offsets
        connection.ask(ApiKey.FIND_COORDINATOR, 1, {"key": "any", "key_type": 0})
    pair.await_topic("__consumer_offsets", 0)
    answer = pair.same(ApiKey.PRODUCE, produce_request("__consumer_offsets", GOOD), (9,))
    assert code_of(answer) == 17
    assert code_of(pair.same(ApiKey.PRODUCE, produce_request(pair.name("absent"), GOOD), (9,))) == 3


def test_min_insync_replicas_is_limited_to_the_number_of_replicas(pair: Pair) -> None:
    """If min.insync.replicas exceeds the replication factor, acks=all requires only the existing replicas."""
    topic = pair.topic(configs={"min.insync.replicas": "2"})
    for acks in (-1, 1):
        assert code_of(pair.same(ApiKey.PRODUCE, produce_request(topic, GOOD, acks=acks), (9,))) == 0


def test_many_malformed_batches_do_not_close_a_connection(pair: Pair) -> None:
    """Whichever byte of a batch is wrong, the broker returns a response, and the connection stays open."""
    topic = pair.topic()
    connection = pair.sides["ours"]
    for at in range(8, len(GOOD)):
        broken = bytearray(GOOD)
        broken[at] ^= 0x55
        for data in (bytes(broken), changed(bytes(broken), 0, "q", 0)):
            answer = connection.ask(ApiKey.PRODUCE, 9, produce_request(topic, data))
            assert code_of(answer) in (0, 2, 10, 32, 42, 45, 47, 53, 59, 76, 87), (at, answer)


def fetch_code(answer: Plain) -> int:
    found: int = answer["responses"][0]["partitions"][0]["error_code"]
    return found


def test_unknown_fetch_sessions_are_rejected(pair: Pair) -> None:
    request = fetch_request(pair.topic(), 0)
    opened = pair.both(ApiKey.FETCH, 11, request | {"session_epoch": 0})
    ids = {side: answer["session_id"] for side, answer in zip(pair.sides, opened, strict=True)}
    unknown = request | {"session_id": 99_999_999, "session_epoch": 4}
    assert pair.same(ApiKey.FETCH, unknown, (11,))["error_code"] == 70
    wrong_epoch = pair.same(
        ApiKey.FETCH, lambda side: request | {"session_id": ids[side], "session_epoch": 9}, (11,)
    )
    assert wrong_epoch["error_code"] == 71


def test_fetching_from_invalid_partitions_and_offsets_fails(pair: Pair) -> None:
    topic = pair.topic()
    pair.same(ApiKey.PRODUCE, produce_request(topic, GOOD), (9,))
    assert fetch_code(pair.same(ApiKey.FETCH, fetch_request(topic, 700), (11,))) == 1
    assert fetch_code(pair.same(ApiKey.FETCH, fetch_request(topic, -7), (11,))) == 1
    assert fetch_code(pair.same(ApiKey.FETCH, fetch_request(topic, 0, current_leader_epoch=5), (11,))) == 75
    assert fetch_code(pair.same(ApiKey.FETCH, fetch_request(topic, 0), (13,))) == 100


def test_invalid_join_group_requests_are_rejected(pair: Pair) -> None:
    group = ready_group(pair)
    cases: list[tuple[Plain, tuple[int, ...], int]] = [
        (join(""), (1, 5), 24),
        (join(group, session_timeout_ms=10), (1, 5), 26),
        (join(group, session_timeout_ms=2_000_000_000), (1, 5), 26),
        (join(group), (4, 5, 9), 79),
        (join(group, member_id="somebody"), (1, 5), 25),
        (join(group, protocols=[]), (1, 5), 23),
        (join(group, protocol_type=""), (1, 5), 23),
    ]
    for request, versions, expected in cases:
        for version in versions:
            ours, genuine = pair.both(ApiKey.JOIN_GROUP, version, request)
            assert (genuine["error_code"], ours["error_code"]) == (expected, expected), (request, version)


def test_unknown_group_members_are_rejected(pair: Pair) -> None:
    group = ready_group(pair)
    member = {"group_id": group, "generation_id": 5, "member_id": "nobody"}
    for api_key, version in ((ApiKey.HEARTBEAT, 3), (ApiKey.SYNC_GROUP, 3)):
        assert pair.same(api_key, member, (version,))["error_code"] == 25
    joined = pair.both(ApiKey.JOIN_GROUP, 3, join(group))
    ids = {side: answer["member_id"] for side, answer in zip(pair.sides, joined, strict=True)}
    assert all(answer["error_code"] == 0 for answer in joined)
    for api_key, version in ((ApiKey.HEARTBEAT, 3), (ApiKey.SYNC_GROUP, 3)):
        stale = pair.same(api_key, lambda side: {**member, "member_id": ids[side]}, (version,))
        assert stale["error_code"] == 22
    other = join(group, protocols=[{"name": "another", "metadata": b""}])
    assert pair.same(ApiKey.JOIN_GROUP, other, (3,))["error_code"] == 23
    for side, connection in pair.sides.items():
        connection.ask(ApiKey.LEAVE_GROUP, 1, {"group_id": group, "member_id": ids[side]})


def test_commits_with_oversized_metadata_are_rejected(pair: Pair) -> None:
    group, topic = ready_group(pair), pair.topic()

    def commit(metadata: str) -> Plain:
        part = {"partition_index": 0, "committed_offset": 1, "committed_metadata": metadata}
        request = {"group_id": group, "topics": [{"name": topic, "partitions": [part]}]}
        return pair.same(ApiKey.OFFSET_COMMIT, request, pair.versions(ApiKey.OFFSET_COMMIT, 2))

    assert commit("x" * 4097)["topics"][0]["partitions"][0]["error_code"] == 12
    assert commit("x" * 4096)["topics"][0]["partitions"][0]["error_code"] == 0


def test_an_incomplete_producer_identity_is_rejected(pair: Pair) -> None:
    for half in ({"producer_id": 5}, {"producer_epoch": 5}, {"transactional_id": ""}):
        request = {"transactional_id": None, "transaction_timeout_ms": 60_000, **half}
        assert pair.same(ApiKey.INIT_PRODUCER_ID, request, (4,))["error_code"] == 42


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        ({"name": ""}, 17),
        ({"name": ".."}, 17),
        ({"name": "x" * 250}, 17),
        ({"name": "a/b"}, 17),
        ({"num_partitions": 0}, 37),
        ({"replication_factor": 3}, 38),
        ({"assignments": [{"partition_index": 0, "broker_ids": [1]}]}, 42),
    ],
)
def test_invalid_topics_are_not_created(pair: Pair, mistake: Plain, expected: int) -> None:
    wanted = {"name": pair.name(), "num_partitions": 1, "replication_factor": 1, **mistake}
    answer = pair.same(ApiKey.CREATE_TOPICS, {"topics": [wanted], "timeout_ms": 9000}, (4, 7))
    assert answer["topics"][0]["error_code"] == expected


def test_the_client_id_can_be_null_empty_or_non_ascii(our_address: str, genuine_address: str) -> None:
    body = encode(ApiKey.METADATA, 4, {"topics": []})[4 + 10 + len(CLIENT_ID) :]
    for address in (genuine_address, our_address):
        for client_id in (None, b"", "é".encode() * 100):
            with _connect(address) as connection:
                connection.send(frame(header(ApiKey.METADATA, 4, client_id=client_id) + body))
                assert connection.receive()[:4] == struct.pack(">i", 7)


def test_a_sequence_without_a_producer_id_is_handled_as_in_kafka(pair: Pair) -> None:
    data = changed(GOOD, BASE_SEQUENCE_AT, "i", 5)
    pair.same(ApiKey.PRODUCE, produce_request(pair.topic(), data), (9,))
