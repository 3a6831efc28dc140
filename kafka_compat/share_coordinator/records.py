"""Encoding and decoding of the records in `__share_group_state`, in the versions that Kafka 4.4 writes.

A snapshot (ShareSnapshotKey → ShareSnapshotValue v0) contains the whole state of a share-partition. Without a
value, it deletes the state. Updates (ShareUpdateKey → ShareUpdateValue v0) contain changes.
"""

import base64
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kafka_compat.protocol.codec import decode, decode_versioned, encode_versioned
from kafka_compat.protocol.messages import share_group_state as messages
from kafka_compat.protocol.messages.share_group_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from kafka_compat.share_coordinator.persister import SharePartitionKey, StateBatch

if TYPE_CHECKING:
    from uuid import UUID

SNAPSHOT_TYPE: Final = 0
UPDATE_TYPE: Final = 1
_PARTS_MIN: Final = 3
_TOPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]{22}(==)?")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_VALUE_VERSION: Final = 0


class Snapshot(NamedTuple):
    """The whole state of a share-partition. Times are in ms since the epoch; `created_ms` and `written_ms`
    differ if the snapshot was written because the share-partition had not changed for some time.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    created_ms: int
    written_ms: int
    batches: tuple[StateBatch, ...]


class Update(NamedTuple):
    """Changes to a share-partition. `start_offset` is -1 if it has not changed."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]


class ShareRecord(NamedTuple):
    """A record of one share-partition. The value None deletes its state."""

    key: SharePartitionKey
    value: Snapshot | Update | None

    @property
    def machine_key(self) -> str:
        return coordinator_key(*self.key)


def coordinator_key(group_id: str, topic_id: "UUID", partition: int) -> str:
    """Return the key that determines the share coordinator of a share-partition: `group:topicId:partition`,
    with the topic ID as Kafka prints it.
    """
    return f"{group_id}:{_topic_id_text(topic_id)}:{partition}"


def normalized_key(key: str) -> str | None:
    """Return the key of a share-partition as `coordinator_key` returns it, or None if it is invalid."""
    parts = key.rstrip(":").split(":")
    if len(parts) < _PARTS_MIN:
        return None
    *group, topic_id, partition = parts
    group_id = ":".join(group)
    if not group_id.strip() or not _TOPIC_ID.fullmatch(topic_id) or not _INTEGER.fullmatch(partition):
        return None
    index = int(partition)
    if not -(1 << 31) <= index < 1 << 31:
        return None
    data = base64.urlsafe_b64decode(topic_id.rstrip("=") + "==")
    return f"{group_id}:{base64.urlsafe_b64encode(data).decode().rstrip('=')}:{index}"


@lru_cache(maxsize=1024)
def _topic_id_text(topic_id: "UUID") -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def encode_record(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Encode a record as (key, value or None). Raises ValueError if the group ID is too long."""
    group_id, topic_id, partition = record.key
    value = record.value
    if isinstance(value, Update):
        key = ShareUpdateKey(group_id=group_id, topic_id=topic_id, partition=partition)
        return encode_versioned(key, UPDATE_TYPE), encode_versioned(_update_value(value), _VALUE_VERSION)
    snapshot_key = ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition)
    encoded = None if value is None else encode_versioned(_snapshot_value(value), _VALUE_VERSION)
    return encode_versioned(snapshot_key, SNAPSHOT_TYPE), encoded


def decode_record(key: bytes, value: bytes | None) -> ShareRecord | None:
    """Decode a record, or return None for other types of keys. Raises MalformedRequest if it is invalid."""
    key_type = int.from_bytes(key[:2], "big", signed=True)
    if key_type == SNAPSHOT_TYPE:
        of = decode(ShareSnapshotKey, SNAPSHOT_TYPE, key, 2)
        snapshot = None if value is None else _snapshot(decode_versioned(ShareSnapshotValue, value)[0])
        return ShareRecord(SharePartitionKey(of.group_id, of.topic_id, of.partition), snapshot)
    if key_type == UPDATE_TYPE and value is not None:
        changed = decode(ShareUpdateKey, UPDATE_TYPE, key, 2)
        update = _update(decode_versioned(ShareUpdateValue, value)[0])
        return ShareRecord(SharePartitionKey(changed.group_id, changed.topic_id, changed.partition), update)
    return None


def _snapshot_value(snapshot: Snapshot) -> ShareSnapshotValue:
    return ShareSnapshotValue(
        snapshot_epoch=snapshot.snapshot_epoch,
        state_epoch=snapshot.state_epoch,
        leader_epoch=snapshot.leader_epoch,
        start_offset=snapshot.start_offset,
        delivery_complete_count=snapshot.delivery_complete_count,
        create_timestamp=snapshot.created_ms,
        write_timestamp=snapshot.written_ms,
        state_batches=_batch_values(snapshot.batches),
    )


def _snapshot(value: ShareSnapshotValue) -> Snapshot:
    return Snapshot(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        value.create_timestamp,
        value.write_timestamp,
        _batches(value.state_batches),
    )


def _update_value(update: Update) -> ShareUpdateValue:
    return ShareUpdateValue(
        snapshot_epoch=update.snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=_batch_values(update.batches),
    )


def _update(value: ShareUpdateValue) -> Update:
    return Update(
        value.snapshot_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        _batches(value.state_batches),
    )


def _batch_values(batches: Sequence[StateBatch]) -> list[messages.StateBatch]:
    # The fields have the same names, and a copy of thousands of batches would take long.
    return cast("list[messages.StateBatch]", list(batches))


def _batches(values: Sequence[messages.StateBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in values
    )
