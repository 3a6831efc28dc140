"""The formatters for Kafka's internal topics: their records as JSON, one after the other without a line's end
between them, which is how Kafka's own write them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.protocol.codec import decode, decode_versioned
from kafka_compat.protocol.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafka_compat.protocol.messages.transaction_state import TransactionLogKey, TransactionLogValue
from kafka_compat.tools.message_json import as_json, compact

if TYPE_CHECKING:
    from kafka_compat.client.consumed import Consumed

_VERSION_BYTES: Final = 2
_UNKNOWN: Final = "unknown"


def _formatter(
    keys: dict[int, type], value_class: type, skipped: Sequence[int] = ()
) -> Callable[[Consumed], bytes]:
    """`keys` are the classes of keys by their versions; records with keys of the versions `skipped` are left
    out.
    """

    def of(record: Consumed) -> bytes:
        found: dict[str, Any] = {"key": None, "value": None}
        if record.key is not None:
            version = int.from_bytes(record.key[:_VERSION_BYTES], "big", signed=True)
            if version in skipped:
                return b""
            cls = keys.get(version)
            data: Any = _UNKNOWN
            if cls is not None:
                data = as_json(decode(cls, version, record.key, _VERSION_BYTES), version)
            found["key"] = {"version": version, "data": data}
        if record.value is not None:
            found["value"] = _value(value_class, record.value)
        return compact(found).encode()

    return of


def _value(cls: type, content: bytes) -> dict[str, Any]:
    from kafka_compat.protocol.schema import schema_of

    version = int.from_bytes(content[:_VERSION_BYTES], "big", signed=True)
    if version not in schema_of(cls).versions:
        return {"version": version, "data": _UNKNOWN}
    opened: tuple[Any, int] = decode_versioned(cls, content)
    return {"version": version, "data": as_json(*opened)}


FORMATTERS: Final[dict[str, Callable[[Consumed], bytes]]] = {
    "OffsetsMessageFormatter": _formatter(
        {0: OffsetCommitKey, 1: OffsetCommitKey}, OffsetCommitValue, skipped=(2,)
    ),
    "GroupMetadataMessageFormatter": _formatter({2: GroupMetadataKey}, GroupMetadataValue, skipped=(0, 1)),
    "TransactionLogMessageFormatter": _formatter({0: TransactionLogKey}, TransactionLogValue),
}
