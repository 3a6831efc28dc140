"""The records of Kafka's internal topics: as kafka-dump-log's decoders print them, and as the formatters of
kafka-console-consumer do, which write JSON without an end of line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
from kafka_compat.tools.failure import Failure
from kafka_compat.tools.message_json import as_json, compact

if TYPE_CHECKING:
    from kafka_compat.client.consumed import Consumed

Texts = tuple[str | None, str | None]
Decoder = Callable[[Record], Texts]
"""The texts of a record's key and its value; None where nothing is printed."""

_VERSION_BYTES: Final = 2
_Classes = dict[int, tuple[type, type]]
"""The classes of keys and values by the types of records, which keys begin with."""
_OF_OFFSETS: Final[_Classes] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
}
_OF_GROUPS: Final[_Classes] = {2: (GroupMetadataKey, GroupMetadataValue)}
_OF_TRANSACTIONS: Final[_Classes] = {0: (TransactionLogKey, TransactionLogValue)}
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
    return _of_coordinator(record, _OF_OFFSETS | _OF_GROUPS)


def of_transactions(record: Record) -> Texts:
    """A record of `__transaction_state`. Raises MissingKey."""
    return _of_coordinator(record, _OF_TRANSACTIONS)


class _Decoded(NamedTuple):
    """`value` is None for a deletion, `data` its JSON."""

    kind: int
    key: dict[str, Any]
    value: Any
    version: int
    data: dict[str, Any]


def _decoded(key: bytes, value: bytes | None, classes: _Classes) -> _Decoded | None:
    """None for a record of another type. Raises MalformedRequest."""
    kind = int.from_bytes(key[:_VERSION_BYTES], "big", signed=True)
    if kind not in classes:
        return None
    key_class, value_class = classes[kind]
    shown = as_json(decode(key_class, kind, key, _VERSION_BYTES), kind)
    if value is None:
        return _Decoded(kind, shown, None, 0, {})
    opened: tuple[Any, int] = decode_versioned(value_class, value)
    return _Decoded(kind, shown, *opened, as_json(*opened))


def _of_coordinator(record: Record, classes: _Classes) -> Texts:
    if record.key is None:
        raise MissingKey(
            f"Failed to decode message at offset {record.offset} using the specified decoder (message had a "
            "missing key)"
        )
    try:
        found = _decoded(record.key, record.value, classes)
    except MalformedRequest as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    if found is None:
        kind = int.from_bytes(record.key[:_VERSION_BYTES], "big", signed=True)
        return f"Unknown record type {kind} at offset {record.offset}, skipping.", None
    key = compact({"type": str(found.kind), "data": found.key})
    if found.value is None:
        return key, "<DELETE>"
    if isinstance(found.value, GroupMetadataValue):
        _open_members(found.value, found.data)
    return key, compact({"version": str(found.version), "data": found.data})


def _formatter(classes: _Classes) -> Callable[[Consumed], bytes]:
    """Other records are left out."""

    def of(record: Consumed) -> bytes:
        try:
            found = None if record.key is None else _decoded(record.key, record.value, classes)
        except MalformedRequest as error:
            text = f"Could not read record at offset {record.offset} due to: {error}"
            raise Failure("java.lang.RuntimeException", text) from error
        if found is None:
            return b""
        value = None if found.value is None else {"version": found.version, "data": found.data}
        return compact({"key": {"type": found.kind, "data": found.key}, "value": value}).encode()

    return of


FORMATTERS: Final[dict[str, Callable[[Consumed], bytes]]] = {
    "OffsetsMessageFormatter": _formatter(_OF_OFFSETS),
    "GroupMetadataMessageFormatter": _formatter(_OF_GROUPS),
    "TransactionLogMessageFormatter": _formatter(_OF_TRANSACTIONS),
}


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
