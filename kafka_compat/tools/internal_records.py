"""What records of Kafka's internal topics say, in the words of kafka-dump-log's decoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka_compat.protocol.codec import MalformedRequest, decode, decode_versioned
from kafka_compat.protocol.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafka_compat.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kafka_compat.protocol.messages.transaction_state import TransactionLogKey, TransactionLogValue
from kafka_compat.storage.records import Record
from kafka_compat.tools.message_json import as_json, compact

Texts = tuple[str | None, str | None]
Decoder = Callable[[Record], Texts]
"""The texts of a record's key and its value; None where nothing is printed."""

_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
_VERSION_BYTES = 2
_GROUP_KEY_VERSION = 2
_EMBEDDED = {"subscription": ConsumerProtocolSubscription, "assignment": ConsumerProtocolAssignment}


class MissingKey(Exception):
    """A record of an internal topic that names nothing."""


def text(record: Record) -> Texts:
    """Key and value as UTF-8."""
    return _utf8(record.key), _utf8(record.value)


def _utf8(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")


def of_offsets(record: Record) -> Texts:
    """A record of `__consumer_offsets`. Raises MissingKey."""
    if record.key is None:
        raise MissingKey(
            f"Failed to decode message at offset {record.offset} using offset topic decoder (message had a "
            "missing key)"
        )
    try:
        version = _version(record.key)
        if not 0 <= version <= _GROUP_KEY_VERSION:
            return f"Unknown record type {version} at offset {record.offset}, skipping.", None
        key_class, value_class = (
            (GroupMetadataKey, GroupMetadataValue)
            if version == _GROUP_KEY_VERSION
            else (OffsetCommitKey, OffsetCommitValue)
        )
        key: Any = decode(key_class, version, record.key, _VERSION_BYTES)
        shown = compact({"type": str(version), "data": as_json(key, version)})
        if record.value is None:
            return shown, "<DELETE>"
        value, value_version = decode_versioned(value_class, record.value)
        data = as_json(value, value_version)
        if value_class is GroupMetadataValue:
            _open_members(value, data)
        return shown, compact({"version": str(value_version), "data": data})
    except MalformedRequest as error:
        return f"Error at offset {record.offset}, skipping. {error}", None


def _open_members(group: Any, data: dict[str, Any]) -> None:
    """Members of a group of consumers are shown with what their bytes mean."""
    if group.protocol_type != "consumer":
        return
    for member, shown in zip(group.members, data["members"], strict=True):
        for name, cls in _EMBEDDED.items():
            try:
                opened: tuple[Any, int] = decode_versioned(cls, getattr(member, name))
            except MalformedRequest:
                continue
            shown[name] = as_json(*opened)


def of_transactions(record: Record) -> Texts:
    """A record of `__transaction_state`. Raises MissingKey, MalformedRequest."""
    if record.key is None:
        raise MissingKey(f"the record at offset {record.offset} has no key")
    version = _version(record.key)
    if version != 0:
        return f"unknown::version={version}", None
    transactional_id = decode(TransactionLogKey, 0, record.key, _VERSION_BYTES).transactional_id
    key = f"transaction_metadata::transactionalId={transactional_id}"
    if record.value is None:
        return key, "<DELETE>"
    value, _ = decode_versioned(TransactionLogValue, record.value)
    partitions = [
        f"{topic.topic}-{number}"
        for topic in value.transaction_partitions or ()
        for number in topic.partition_ids
    ]
    return key, (
        f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},"
        f"state={_STATES[value.transaction_status]},partitions=[{','.join(partitions)}],"
        f"txnLastUpdateTimestamp={value.transaction_last_update_timestamp_ms},"
        f"txnTimeoutMs={value.transaction_timeout_ms}"
    )


def _version(key: bytes) -> int:
    return int.from_bytes(key[:_VERSION_BYTES], "big", signed=True)
