"""The binary format of records in `__consumer_offsets`, compared with Kafka 3.9 in every version that Kafka
reads.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from kafka_compat.coordinator_runtime.partitioning import java_hash_code, shard_of
from kafka_compat.groups.classic.records import GroupRecord, GroupSnapshot, MemberSnapshot
from kafka_compat.groups.classic.subscriptions import subscribed_topics
from kafka_compat.groups.consumer.member import Member
from kafka_compat.groups.consumer.records import MemberMetadataRecord
from kafka_compat.groups.records import OffsetRecord, decode_record, encode_record
from kafka_compat.groups.requests import OffsetAndMetadata
from kafka_compat.protocol.codec import MalformedRequest, encode_versioned
from kafka_compat.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kafka_compat.protocol.messages.consumer_offsets import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
)
from tests.groups.classic.transcript import subscription

GROUP_KEY = bytes.fromhex("0002 0001 67")
OFFSET_KEY = bytes.fromhex("0001 0001 67 0001 74 00000005")


@pytest.mark.parametrize(
    ("group_id", "hash_code"),
    [
        ("", 0),
        ("a", 97),
        ("my-group", -1906497762),
        ("polygenelubricants", -(2**31)),
        ("gruppe-ä", 673522898),
        ("😀", 1772899),
    ],
)
def test_the_hash_matches_javas(group_id: str, hash_code: int) -> None:
    assert java_hash_code(group_id) == hash_code


def test_a_hash_equal_to_the_smallest_integer_maps_to_shard_zero() -> None:
    assert shard_of("polygenelubricants", 50) == 0
    assert shard_of("my-group", 50) == 12


def test_an_offset_is_encoded_as_in_kafka() -> None:
    offset = OffsetAndMetadata(258, 7, "m", 0x0102030405060708, -1)
    value = bytes.fromhex("0003 0000000000000102 00000007 0001 6d 0102030405060708")
    record = OffsetRecord("g", "t", 5, offset)
    assert encode_record(record) == (OFFSET_KEY, value)
    assert decode_record(OFFSET_KEY, value) == record


def test_an_offset_with_a_topic_id_is_encoded_as_in_kafka_4_4() -> None:
    topic_id = UUID("5d1ce8d8-4317-4b68-9ab0-e6b15b38956b")
    record = OffsetRecord("g", "t", 5, OffsetAndMetadata(258, -1, "", 9, -1, topic_id))
    value = bytes.fromhex(
        "0004 0000000000000102 ffffffff 01 0000000000000009 01 00 10 5d1ce8d843174b689ab0e6b15b38956b"
    )
    assert encode_record(record) == (OFFSET_KEY, value)
    decoded = decode_record(OFFSET_KEY, value)
    assert decoded == record
    again = decode_record(OFFSET_KEY, value)
    assert isinstance(decoded, OffsetRecord) and isinstance(again, OffsetRecord)
    assert decoded.value is not None and again.value is not None
    assert decoded.value.topic_id is again.value.topic_id


def test_a_member_of_a_consumer_group_is_encoded_as_in_kafka_4_4() -> None:
    value = bytes.fromhex("0000 00 00 02 63 03 2f68 02 02 74 01 0000ea60 00 01 00 01 00")
    member = Member("m", client_id="c", client_host="/h", topic_names=("t",), rebalance_timeout_ms=60_000)
    record = MemberMetadataRecord("g", "m", member)
    key = bytes.fromhex("0005 0001 67 0001 6d")
    assert encode_record(record) == (key, value)
    assert decode_record(key, value) == record


def test_an_offset_with_an_expire_timestamp_is_encoded_in_version_1() -> None:
    record = OffsetRecord("g", "t", 5, OffsetAndMetadata(1, -1, "", 2, 3))
    value = bytes.fromhex("0001 0000000000000001 0000 0000000000000002 0000000000000003")
    assert encode_record(record) == (OFFSET_KEY, value)
    assert decode_record(OFFSET_KEY, value) == record


def test_a_group_is_encoded_as_in_kafka() -> None:
    member = MemberSnapshot("m", "i", "c", "/h", 10, 20, b"sub", b"assigned")
    record = GroupRecord("g", GroupSnapshot("consumer", 3, "range", "m", 9, (member,)))
    value = bytes.fromhex(
        "0003 0008 636f6e73756d6572 00000003 0005 72616e6765 0001 6d 0000000000000009 00000001"
        "0001 6d 0001 69 0001 63 0002 2f68 00000014 0000000a 00000003 737562 00000008 61737369676e6564"
    )
    assert encode_record(record) == (GROUP_KEY, value)
    assert decode_record(GROUP_KEY, value) == record


def test_an_empty_group_has_neither_protocol_nor_leader() -> None:
    record = GroupRecord("g", GroupSnapshot("consumer", 4, None, None, 9, ()))
    key, value = encode_record(record)
    assert value == bytes.fromhex("0003 0008 636f6e73756d6572 00000004 ffff ffff 0000000000000009 00000000")
    assert decode_record(key, value) == record


def test_deletions_are_encoded_with_a_null_value() -> None:
    for record in (GroupRecord("g", None), OffsetRecord("g", "t", 5, None)):
        key, value = encode_record(record)
        assert value is None
        assert decode_record(key, None) == record


@pytest.mark.parametrize("version", range(5))
def test_every_record_version_is_decoded(version: int) -> None:
    value = encode_versioned(OffsetCommitValue(offset=5, metadata="m", commit_timestamp=6), version)
    assert decode_record(OFFSET_KEY, value) == OffsetRecord("g", "t", 5, OffsetAndMetadata(5, -1, "m", 6, -1))
    member = MemberMetadata(
        member_id="m", client_id="c", client_host="/h", session_timeout=10, rebalance_timeout=20
    )
    group = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="m", members=[member]
    )
    rebalance_timeout_ms = 10 if version == 0 else 20
    stored = MemberSnapshot("m", None, "c", "/h", 10, rebalance_timeout_ms, b"", b"")
    expected = GroupRecord("g", GroupSnapshot("consumer", 3, "range", "m", -1, (stored,)))
    assert decode_record(GROUP_KEY, encode_versioned(group, version)) == expected


@pytest.mark.parametrize("record_type", [9, 17, 23])
def test_records_of_streams_groups_are_ignored(record_type: int) -> None:
    assert decode_record(bytes([0, record_type]) + b"\0\1g", b"whatever") is None


@pytest.mark.parametrize("cut", range(1, 20))
def test_truncated_records_are_reported_as_malformed(cut: int) -> None:
    key, value = encode_record(OffsetRecord("g", "t", 5, OffsetAndMetadata(1, 2, "metadata", 3, -1)))
    assert value is not None
    with pytest.raises(MalformedRequest):
        decode_record(key, value[:-cut])


def test_topics_are_read_from_subscriptions() -> None:
    assert subscribed_topics([subscription(["a", "b"]), subscription(["b", "ç"])]) == frozenset("abç")
    assert subscribed_topics([]) == frozenset()


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"\0\0",
        b"\0\0\0\0\0\2\0\1a",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\0\5ab",
        b"\0\0\0\0\0\1\0\1\xff",
    ],
)
def test_an_unreadable_subscription_yields_no_topics(junk: bytes) -> None:
    assert subscribed_topics([subscription(["a"]), junk]) is None


def test_a_subscription_with_too_many_topics_is_not_read() -> None:
    many = [str(number) for number in range(60_000)]
    assert subscribed_topics([subscription(many)]) is None
    assert subscribed_topics([b"\0\0\x7f\xff\xff\xff" + bytes(1_000_000)]) is None
    few = subscription(many[:1_000])
    assert subscribed_topics([few + bytes([number]) for number in range(200)]) == frozenset(many[:1_000])


@pytest.mark.parametrize("state, epochs", [(99, [1, 1]), (0, [1])])
def test_an_invalid_assignment_of_a_member_is_malformed(state: int, epochs: list[int]) -> None:
    partitions = [TopicPartitions(topic_id=UUID(int=1), partitions=[0, 1], assignment_epochs=epochs)]
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=1, previous_member_epoch=0, state=state, assigned_partitions=partitions
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    with pytest.raises(MalformedRequest):
        decode_record(encode_versioned(key, 8), encode_versioned(value, 0))
