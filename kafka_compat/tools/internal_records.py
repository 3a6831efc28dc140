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
from kafka_compat.storage.records.records import Record
from kafka_compat.tools.message_json import as_json, compact

Texts = tuple[str | None, str | None]
Decoder = Callable[[Record], Texts]
"""The texts of a record's key and its value; None where nothing is printed."""

_VERSION_BYTES = 2
_OF_OFFSETS: dict[int, tuple[type, type]] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
}
_OF_TRANSACTIONS: dict[int, tuple[type, type]] = {0: (TransactionLogKey, TransactionLogValue)}
"""The classes of keys and values by the types of records, which keys begin with."""
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
    return _of_coordinator(record, _OF_OFFSETS)


def of_transactions(record: Record) -> Texts:
    """A record of `__transaction_state`. Raises MissingKey."""
    return _of_coordinator(record, _OF_TRANSACTIONS)


def _of_coordinator(record: Record, classes: dict[int, tuple[type, type]]) -> Texts:
    if record.key is None:
        raise MissingKey(
            f"Failed to decode message at offset {record.offset} using the specified decoder (message had a "
            "missing key)"
        )
    kind = int.from_bytes(record.key[:_VERSION_BYTES], "big", signed=True)
    if kind not in classes:
        return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
    key_class, value_class = classes[kind]
    try:
        key: Any = decode(key_class, kind, record.key, _VERSION_BYTES)
        shown = compact({"type": str(kind), "data": as_json(key, kind)})
        if record.value is None:
            return shown, "<DELETE>"
        opened: tuple[Any, int] = decode_versioned(value_class, record.value)
        value, version = opened
        data = as_json(value, version)
        if value_class is GroupMetadataValue:
            _open_members(value, data)
        return shown, compact({"version": str(version), "data": data})
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
