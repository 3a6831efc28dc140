"""Encoding and decoding of group records in `__consumer_offsets`, in the versions that Kafka writes.

Each type of group has its own records (`classic/records.py`, `consumer/records.py`, `share/records.py`). The
offsets here belong to groups of any type. Their keys are OffsetCommitKey v1, and their values
OffsetCommitValue v4 with the topic ID, as in Kafka 4.4, or v3 without it, as in Kafka 3.9. An offset with its
own expiry has v1, because later versions have no field for it. All older and newer versions can be read.
Other types of keys belong to streams groups (KIP-1071) and are ignored.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.groups.classic import records as classic_records
from kafka_compat.groups.classic.records import GroupRecord
from kafka_compat.groups.consumer import records as consumer_records
from kafka_compat.groups.consumer.records import ConsumerRecord
from kafka_compat.groups.record_types import RecordTypes
from kafka_compat.groups.requests import OffsetAndMetadata
from kafka_compat.groups.share import records as share_records
from kafka_compat.groups.share.records import ShareRecord
from kafka_compat.protocol.codec import decode, decode_versioned, encode_versioned
from kafka_compat.protocol.messages.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from kafka_compat.protocol.zero_uuid import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID

_OFFSET_KEY_VERSIONS: Final = (0, 1)
_TYPES: Final = RecordTypes([*consumer_records.RECORD_TYPES, *share_records.RECORD_TYPES])


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
        return classic_records.encode_record(record)
    return _TYPES.encode(record)


def decode_record(key: bytes, value: bytes | None) -> Record | None:
    """Decode a record, or return None for other types of keys. Raises MalformedRequest if it is invalid."""
    version = int.from_bytes(key[:2], "big", signed=True)
    if version in _OFFSET_KEY_VERSIONS:
        offset_key = decode(OffsetCommitKey, version, key, 2)
        offset = None if value is None else _decode_offset(value)
        return OffsetRecord(offset_key.group, offset_key.topic, offset_key.partition, offset)
    if version == classic_records.KEY_VERSION:
        return classic_records.decode_record(key, value)
    record: Record | None = _TYPES.decode(key, value)
    return record


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
