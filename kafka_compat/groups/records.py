"""Encoding and decoding of group records in `__consumer_offsets`, in the versions that Kafka writes.

Keys: OffsetCommitKey v1 and GroupMetadataKey v2. Values: GroupMetadataValue v3, and OffsetCommitValue v4 with
the topic ID, as in Kafka 4.4, or v3 without it, as in Kafka 3.9. An offset with its own expiry has v1,
because later versions have no field for it. All older and newer versions of these values can be read.
`consumer/records.py` contains the records of consumer groups, and `share/records.py` those of share groups.
Other types of keys belong to streams groups (KIP-1071) and are ignored.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.groups.consumer import records as consumer_records
from kafka_compat.groups.consumer.records import ConsumerRecord
from kafka_compat.groups.requests import OffsetAndMetadata
from kafka_compat.groups.share import records as share_records
from kafka_compat.groups.share.records import SHARE_RECORDS, ShareRecord
from kafka_compat.protocol.codec import decode, decode_versioned, encode_versioned
from kafka_compat.protocol.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafka_compat.protocol.zero_uuid import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID

_OFFSET_KEY_VERSIONS: Final = (0, 1)
_GROUP_KEY_VERSION: Final = 2


class MemberSnapshot(NamedTuple):
    """A stored member. As in Kafka, only the metadata for the chosen protocol survives a restart."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupSnapshot(NamedTuple):
    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_timestamp_ms: int
    members: tuple[MemberSnapshot, ...]


class GroupRecord(NamedTuple):
    """The members of a group after a rebalance. The value None deletes the group."""

    group_id: str
    value: GroupSnapshot | None

    @property
    def machine_key(self) -> str:
        return self.group_id


class OffsetRecord(NamedTuple):
    """One committed offset. The value None deletes the offset."""

    group_id: str
    topic: str
    partition: int
    value: OffsetAndMetadata | None

    @property
    def machine_key(self) -> str:
        return self.group_id


Record = GroupRecord | OffsetRecord | ConsumerRecord | ShareRecord


def encode_record(record: Record) -> tuple[bytes, bytes | None]:
    """Encode a record as (key, value). A tombstone's value is None. Raises ValueError if text is too long."""
    if isinstance(record, OffsetRecord):
        key = OffsetCommitKey(group=record.group_id, topic=record.topic, partition=record.partition)
        return encode_versioned(key, 1), None if record.value is None else _encode_offset(record.value)
    if isinstance(record, GroupRecord):
        group_key = encode_versioned(GroupMetadataKey(group=record.group_id), _GROUP_KEY_VERSION)
        return group_key, None if record.value is None else _encode_group(record.value)
    if isinstance(record, SHARE_RECORDS):
        return share_records.encode_record(record)
    return consumer_records.encode_record(record)


def decode_record(key: bytes, value: bytes | None) -> Record | None:
    """Decode a record, or return None for other types of keys. Raises MalformedRequest if it is invalid."""
    version = int.from_bytes(key[:2], "big", signed=True)
    if version in _OFFSET_KEY_VERSIONS:
        offset_key = decode(OffsetCommitKey, version, key, 2)
        offset = None if value is None else _decode_offset(value)
        return OffsetRecord(offset_key.group, offset_key.topic, offset_key.partition, offset)
    if version == _GROUP_KEY_VERSION:
        group_key = decode(GroupMetadataKey, version, key, 2)
        return GroupRecord(group_key.group, None if value is None else _decode_group(value))
    if version in share_records.KEYS:
        return share_records.decode_record(key, value)
    return consumer_records.decode_record(key, value)


def _encode_offset(offset: OffsetAndMetadata) -> bytes:
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=offset.expire_timestamp_ms,
        topic_id=offset.topic_id or ZERO_UUID,
    )
    if offset.expire_timestamp_ms != -1:
        return encode_versioned(value, 1)
    return encode_versioned(value, 3 if offset.topic_id is None else 4)


def _decode_offset(data: bytes) -> OffsetAndMetadata:
    value, _ = decode_versioned(OffsetCommitValue, data)
    return OffsetAndMetadata(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        None if value.topic_id == ZERO_UUID else _shared(value.topic_id),
    )


@lru_cache(maxsize=1024)
def _shared(topic_id: "UUID") -> "UUID":
    """Return one object for equal IDs, because a UUID needs more memory than the rest of an offset."""
    return topic_id


def _encode_group(group: GroupSnapshot) -> bytes:
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in group.members
        ],
    )
    return encode_versioned(value, 3)


def _decode_group(data: bytes) -> GroupSnapshot:
    value, version = decode_versioned(GroupMetadataValue, data)
    return GroupSnapshot(
        value.protocol_type,
        value.generation,
        value.protocol,
        value.leader,
        value.current_state_timestamp,
        tuple(
            MemberSnapshot(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout,
                # Before KIP-62, members had no rebalance timeout, and the session timeout served as both.
                member.session_timeout if version == 0 else member.rebalance_timeout,
                member.subscription,
                member.assignment,
            )
            for member in value.members
        ),
    )
