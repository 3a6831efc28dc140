"""Decode records of Kafka's internal topics for kafka-dump-log and kafka-console-consumer.

The output matches that of Kafka's decoders and formatters. Formatters write JSON without a newline.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from kafka_compat.protocol.codec import MalformedRequest, decode, decode_versioned
from kafka_compat.protocol.messages import consumer_group_records as messages
from kafka_compat.protocol.messages import share_group_records as shares
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
from kafka_compat.protocol.messages.share_group_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from kafka_compat.protocol.messages.transaction_state import TransactionLogKey, TransactionLogValue
from kafka_compat.protocol.schema import FieldSpec, fields_of
from kafka_compat.storage.directories.checkpoints import encode_topic_id
from kafka_compat.storage.records.records import Record
from kafka_compat.tools.failure import Failure

if TYPE_CHECKING:
    from kafka_compat.client.consumed import Consumed


_ESCAPES = {code: f"\\u{code:04X}" for code in range(32)} | {
    8: "\\b",
    9: "\\t",
    10: "\\n",
    12: "\\f",
    13: "\\r",
    34: '\\"',
    92: "\\\\",
}


def as_json(message: object, version: int) -> dict[str, Any]:
    """Convert a message to dicts, lists, strings, numbers and None, as Kafka's JSON converters do."""
    found: dict[str, Any] = {}
    cls: Any = type(message)
    for name, spec in _fields(cls):
        if version not in spec.versions:
            continue
        value = getattr(message, spec.name)
        if spec.tag is not None and value == spec.default:
            continue
        found[name] = _value(value, version)
    return found


@lru_cache(maxsize=64)
def _fields(cls: type) -> tuple[tuple[str, FieldSpec], ...]:
    return tuple((_camel(spec.name), spec) for spec in fields_of(cls))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _value(value: Any, version: int) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return binascii.b2a_base64(value, newline=False).decode()
    if isinstance(value, UUID):
        return encode_topic_id(value)
    if isinstance(value, list | tuple):
        return [_value(item, version) for item in value]
    return as_json(value, version)


def compact(value: Any) -> str:
    """Format a JSON value without spaces, with the escapes of Kafka's JSON library."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{compact(name)}:{compact(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    return str(value)


Texts = tuple[str | None, str | None]
Decoder = Callable[[Record], Texts]
"""Returns the texts of a record's key and value, with None for a text that is not printed."""

_VERSION_BYTES: Final = 2
_Classes = dict[int, tuple[type, type]]
"""Key and value classes by record type, which is the first field of a key."""
_OF_OFFSETS: Final[_Classes] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
}
_OF_GROUPS: Final[_Classes] = {2: (GroupMetadataKey, GroupMetadataValue)}
_OF_CONSUMER_GROUPS: Final[_Classes] = {
    3: (messages.ConsumerGroupMetadataKey, messages.ConsumerGroupMetadataValue),
    4: (messages.ConsumerGroupPartitionMetadataKey, messages.ConsumerGroupPartitionMetadataValue),
    5: (messages.ConsumerGroupMemberMetadataKey, messages.ConsumerGroupMemberMetadataValue),
    6: (
        messages.ConsumerGroupTargetAssignmentMetadataKey,
        messages.ConsumerGroupTargetAssignmentMetadataValue,
    ),
    7: (messages.ConsumerGroupTargetAssignmentMemberKey, messages.ConsumerGroupTargetAssignmentMemberValue),
    8: (messages.ConsumerGroupCurrentMemberAssignmentKey, messages.ConsumerGroupCurrentMemberAssignmentValue),
    16: (messages.ConsumerGroupRegularExpressionKey, messages.ConsumerGroupRegularExpressionValue),
}
_OF_SHARE_GROUPS: Final[_Classes] = {
    10: (shares.ShareGroupMemberMetadataKey, shares.ShareGroupMemberMetadataValue),
    11: (shares.ShareGroupMetadataKey, shares.ShareGroupMetadataValue),
    12: (shares.ShareGroupTargetAssignmentMetadataKey, shares.ShareGroupTargetAssignmentMetadataValue),
    13: (shares.ShareGroupTargetAssignmentMemberKey, shares.ShareGroupTargetAssignmentMemberValue),
    14: (shares.ShareGroupCurrentMemberAssignmentKey, shares.ShareGroupCurrentMemberAssignmentValue),
    15: (shares.ShareGroupStatePartitionMetadataKey, shares.ShareGroupStatePartitionMetadataValue),
}
_OF_SHARE_STATES: Final[_Classes] = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}
_OF_TRANSACTIONS: Final[_Classes] = {0: (TransactionLogKey, TransactionLogValue)}
_EMBEDDED = {"subscription": ConsumerProtocolSubscription, "assignment": ConsumerProtocolAssignment}


class MissingKey(Exception):
    """Raised for a record of an internal topic that has no key."""


def text(record: Record) -> Texts:
    """Decode a record's key and value as UTF-8."""
    return _utf8(record.key), _utf8(record.value)


def _utf8(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")


def of_offsets(record: Record) -> Texts:
    """Decode a record of `__consumer_offsets`. Raises MissingKey if the record has no key."""
    return _of_coordinator(record, _OF_OFFSETS | _OF_GROUPS | _OF_CONSUMER_GROUPS | _OF_SHARE_GROUPS)


def of_share_states(record: Record) -> Texts:
    """Decode a record of `__share_group_state`. Raises MissingKey if the record has no key."""
    return _of_coordinator(record, _OF_SHARE_STATES)


def of_transactions(record: Record) -> Texts:
    """Decode a record of `__transaction_state`. Raises MissingKey if the record has no key."""
    return _of_coordinator(record, _OF_TRANSACTIONS)


class _Decoded(NamedTuple):
    """A decoded record. `value` is None for a tombstone; `data` is the value's JSON."""

    kind: int
    key: dict[str, Any]
    value: Any
    version: int
    data: dict[str, Any]


def _decoded(key: bytes, value: bytes | None, classes: _Classes) -> _Decoded | None:
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
        raise MissingKey(f"Failed to decode the record at offset {record.offset}: it has no key")
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
    def of(record: Consumed) -> bytes:
        try:
            found = None if record.key is None else _decoded(record.key, record.value, classes)
        except MalformedRequest as error:
            text = f"Failed to read the record at offset {record.offset}: {error}"
            raise Failure("java.lang.RuntimeException", text) from error
        if found is None:
            return b""
        value = None if found.value is None else {"version": found.version, "data": found.data}
        return compact({"key": {"type": found.kind, "data": found.key}, "value": value}).encode()

    return of


FORMATTERS: Final[dict[str, Callable[[Consumed], bytes]]] = {
    "OffsetsMessageFormatter": _formatter(_OF_OFFSETS),
    "GroupMetadataMessageFormatter": _formatter(_OF_GROUPS),
    "ShareGroupMessageFormatter": _formatter(_OF_SHARE_GROUPS),
    "group.share.ShareGroupStateMessageFormatter": _formatter(_OF_SHARE_STATES),
    "TransactionLogMessageFormatter": _formatter(_OF_TRANSACTIONS),
}


def _open_members(group: Any, data: dict[str, Any]) -> None:
    if group.protocol_type != "consumer":
        return
    for member, shown in zip(group.members, data["members"], strict=True):
        for name, cls in _EMBEDDED.items():
            try:
                opened: tuple[Any, int] = decode_versioned(cls, getattr(member, name))
            except MalformedRequest:
                continue
            shown[name] = as_json(*opened)
