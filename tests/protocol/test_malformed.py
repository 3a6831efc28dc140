"""Malformed messages: decoding raises MalformedRequest with the position, and never allocates much memory."""

from __future__ import annotations

import random
import tracemalloc
from contextlib import suppress

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.codec import MalformedRequest, decode, encode
from kafka_compat.protocol.messages.fetch import FetchRequest
from kafka_compat.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafka_compat.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_compat.protocol.schema import Message
from tests.protocol.known_messages import message_classes, message_versions
from tests.protocol.random_messages import RandomMessages
from tests.support.campaign import rounds


@pytest.mark.parametrize("cls", message_classes(), ids=lambda cls: cls.__name__)
def test_every_truncation_is_malformed(cls: type[Message]) -> None:
    for known, version in message_versions():
        if known is not cls:
            continue
        for seed in range(rounds(everyday=1, campaign=10)):
            messages = RandomMessages(f"truncation/{seed}", longest=1, full=True)
            whole = encode(messages.message(cls, version), version)
            for length in range(len(whole)):
                with pytest.raises(MalformedRequest):
                    decode(cls, version, whole[:length])


def test_mutated_messages_decode_or_are_malformed() -> None:
    changes = random.Random("mutations")
    versions = list(message_versions())
    for number in range(rounds(everyday=20_000, campaign=500_000)):
        cls, version = versions[number % len(versions)]
        mutated = bytearray(encode(RandomMessages(number, longest=2).message(cls, version), version))
        for _ in range(changes.randint(1, 4)):
            if mutated:
                mutated[changes.randrange(len(mutated))] = changes.choice([0, 1, 0x7F, 0x80, 0xFF])
        with suppress(MalformedRequest):
            decode(cls, version, mutated, exact=True)


@pytest.mark.parametrize("version", [0, 4, 8])
def test_a_count_is_bounded_by_the_remaining_bytes(version: int) -> None:
    claims_two_billion_topics = b"\x7f\xff\xff\xff" + b"\x00" * 100
    assert_refused_cheaply(MetadataRequest, version, claims_two_billion_topics)


def test_a_compact_count_is_bounded_by_the_remaining_bytes() -> None:
    assert_refused_cheaply(MetadataRequest, 9, b"\xff\xff\xff\xff\x0f" + b"\x00" * 100)


def assert_refused_cheaply(cls: type, version: int, content: bytes) -> None:
    encode(cls(), version)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedRequest, match="elements announced, 100 bytes left"):
            decode(cls, version, content)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 1_000_000


def test_the_error_names_the_version_the_field_and_the_position() -> None:
    request = ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=b"12345")])
        ],
    )
    with pytest.raises(MalformedRequest) as raised:
        decode(ProduceRequest, 3, encode(request, 3)[:-1])
    assert raised.value.code == ErrorCode.INVALID_REQUEST
    assert raised.value.message == (
        "v3 ProduceRequest.topic_data[0].partition_data[0].records at byte 27: 5 bytes announced, 4 left"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x00\x00\x00\x01\xff\xff", "null in a field that cannot be null"),
        (b"\x00\x00\x00\x01\x00\x02\xc3\x28", "not UTF-8"),
        (b"\xff\xff\xff\xff", "null in a field that cannot be null"),
    ],
    ids=["null name", "not UTF-8", "null array"],
)
def test_invalid_field_values_are_malformed(content: bytes, reason: str) -> None:
    with pytest.raises(MalformedRequest, match=reason):
        decode(MetadataRequest, 0, content)


def test_a_varint_of_six_bytes_is_malformed() -> None:
    with pytest.raises(MalformedRequest, match="longer than five bytes"):
        decode(MetadataRequest, 9, b"\x80\x80\x80\x80\x80\x01\x00\x00\x00\x00")


def test_a_tagged_field_with_a_wrong_size_is_malformed() -> None:
    good = encode(FetchRequest(cluster_id="abc"), 12)
    assert decode(FetchRequest, 12, good, exact=True).cluster_id == "abc"
    assert good.endswith(b"\x01\x00\x04\x04abc")
    with pytest.raises(MalformedRequest, match=r"cluster_id .* uses 4 of 5 bytes"):
        decode(FetchRequest, 12, good.replace(b"\x01\x00\x04\x04abc", b"\x01\x00\x05\x04abcd"))


def test_unknown_tagged_fields_are_skipped() -> None:
    good = encode(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    assert good.endswith(b"\x00")
    with_unknown = good[:-1] + b"\x02" + b"\x07\x03abc" + b"\x90\x4e\x00"
    assert decode(MetadataRequest, 9, with_unknown, exact=True) == decode(MetadataRequest, 9, good)


def test_trailing_bytes_are_rejected_only_by_an_exact_decode() -> None:
    content = encode(MetadataRequest(topics=[]), 1) + b"left over"
    assert decode(MetadataRequest, 1, content).topics == []
    with pytest.raises(MalformedRequest, match="9 bytes after the end"):
        decode(MetadataRequest, 1, content, exact=True)
