"""Encoding and decoding of the records in `__transaction_state`: the status of each transactional ID.

Keys are TransactionLogKey v0. Values are TransactionLogValue v0, as Kafka 3.9 writes it, or v1 if
transaction.version is 1 or later, or if v0 lacks a field for the stored data (KIP-890). Kafka 3.9 reads both.
"""

from functools import lru_cache
from typing import Final

from kafka_compat.protocol.codec import MalformedRequest, decode, decode_versioned, encode_versioned
from kafka_compat.protocol.messages.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from kafka_compat.transactions.status import VERSION_WITH_EPOCH_BUMP, Status, StatusRecord, TransactionState

_KEY_VERSION: Final = 0
_VALUE_VERSION: Final = 0
_FLEXIBLE_VALUE_VERSION: Final = 1
_STATES: Final = tuple(TransactionState)
"""The states, in the order of their numbers in a record."""


def encode_record(record: StatusRecord, transaction_version: int = 0) -> tuple[bytes, bytes | None]:
    """Encode a record as (key, value or None for a tombstone). Raises ValueError if the ID is too long."""
    value = None if record.value is None else _encode_status(record.value, transaction_version)
    return _encode_key(record.transactional_id), value


@lru_cache(maxsize=1024)
def _encode_key(transactional_id: str) -> bytes:
    return encode_versioned(TransactionLogKey(transactional_id=transactional_id), _KEY_VERSION)


def decode_record(key: bytes, value: bytes | None) -> StatusRecord | None:
    """Decode a record, or return None for other types of keys. Raises MalformedRequest if it is invalid."""
    if int.from_bytes(key[:2], "big", signed=True) != _KEY_VERSION:
        return None
    transactional_id = decode(TransactionLogKey, _KEY_VERSION, key, 2).transactional_id
    return StatusRecord(transactional_id, None if value is None else _decode_status(value))


def _encode_status(status: Status, transaction_version: int) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(status.partitions):
        topics.setdefault(topic, []).append(partition)
    partitions = [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]
    value = TransactionLogValue(
        producer_id=status.producer_id,
        producer_epoch=status.producer_epoch,
        transaction_timeout_ms=status.timeout_ms,
        transaction_status=_STATES.index(status.state),
        transaction_partitions=None if status.state is TransactionState.EMPTY else partitions,
        transaction_last_update_timestamp_ms=status.last_update_ms,
        transaction_start_timestamp_ms=status.start_ms,
    )
    if transaction_version == 0 and status.client_version < VERSION_WITH_EPOCH_BUMP:
        return encode_versioned(value, _VALUE_VERSION)
    value.previous_producer_id = status.previous_producer_id
    value.next_producer_id = status.next_producer_id
    value.client_transaction_version = status.client_version
    return encode_versioned(value, _FLEXIBLE_VALUE_VERSION)


def _decode_status(data: bytes) -> Status:
    value, _ = decode_versioned(TransactionLogValue, data)
    if not 0 <= value.transaction_status < len(_STATES):
        raise MalformedRequest(f"unknown transaction status {value.transaction_status}")
    return Status(
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        _STATES[value.transaction_status],
        frozenset(
            (topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        value.client_transaction_version,
    )
