"""The formatters for Kafka's internal topics: their records as JSON, one after the other without a line's end
between them, which is how Kafka's own write them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.protocol.codec import MalformedRequest, decode, decode_versioned
from kafka_compat.protocol.messages.consumer_offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafka_compat.protocol.messages.transaction_state import TransactionLogKey, TransactionLogValue
from kafka_compat.tools.failure import Failure
from kafka_compat.tools.message_json import as_json, compact

if TYPE_CHECKING:
    from kafka_compat.client.consumed import Consumed

_VERSION_BYTES: Final = 2


def _formatter(classes: dict[int, tuple[type, type]]) -> Callable[[Consumed], bytes]:
    """`classes` are those of keys and values by the types of records; other records are left out."""

    def of(record: Consumed) -> bytes:
        if record.key is None:
            return b""
        kind = int.from_bytes(record.key[:_VERSION_BYTES], "big", signed=True)
        if kind not in classes:
            return b""
        key_class, value_class = classes[kind]
        try:
            key: Any = decode(key_class, kind, record.key, _VERSION_BYTES)
            found: dict[str, Any] = {"key": {"type": kind, "data": as_json(key, kind)}, "value": None}
            if record.value is not None:
                opened: tuple[Any, int] = decode_versioned(value_class, record.value)
                found["value"] = {"version": opened[1], "data": as_json(*opened)}
        except MalformedRequest as error:
            text = f"Could not read record at offset {record.offset} due to: {error}"
            raise Failure("java.lang.RuntimeException", text) from error
        return compact(found).encode()

    return of


FORMATTERS: Final[dict[str, Callable[[Consumed], bytes]]] = {
    "OffsetsMessageFormatter": _formatter(
        {0: (OffsetCommitKey, OffsetCommitValue), 1: (OffsetCommitKey, OffsetCommitValue)}
    ),
    "GroupMetadataMessageFormatter": _formatter({2: (GroupMetadataKey, GroupMetadataValue)}),
    "TransactionLogMessageFormatter": _formatter({0: (TransactionLogKey, TransactionLogValue)}),
}
