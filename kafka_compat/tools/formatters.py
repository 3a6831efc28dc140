"""How kafka-console-consumer writes records: Kafka's own formatters, by their classes' names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.storage.records.kinds import TimestampType
from kafka_compat.tools import deserializers
from kafka_compat.tools.failure import Failure, log

if TYPE_CHECKING:
    from kafka_compat.client.consumed import Consumed

Formatter = Callable[["Consumed"], bytes]
"""What is written of a record. Raises Failure for a record that cannot be shown."""

_NEW: Final = "org.apache.kafka.tools.consumer."
_OLD: Final = "kafka.tools."
_DEFAULT: Final = "DefaultMessageFormatter"
_LOGGING: Final = "LoggingMessageFormatter"
_NO_OP: Final = "NoOpMessageFormatter"
_SHORT: Final = (_DEFAULT, _LOGGING, _NO_OP)
_TYPES: Final = {
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


def formatter_named(name: str, properties: Mapping[str, str]) -> Formatter:
    """Raises Failure where there is no such class."""
    short = name.removeprefix(_OLD).removeprefix(_NEW)
    if short in _SHORT and name != short:
        if name.startswith(_OLD):
            warn_of_old_name(name, _NEW + short)
        return (lambda record: b"") if short == _NO_OP else _Columns(properties).of
    if name.startswith(_NEW):
        from kafka_compat.tools.internal_records import FORMATTERS

        if short in FORMATTERS:
            return FORMATTERS[short]
    raise Failure("java.lang.ClassNotFoundException", name)


def warn_of_old_name(old: str, new: str) -> None:
    """As Kafka 3.9 does."""
    import sys

    print(
        f"WARNING: {old} is deprecated and will be removed in the next major release. Please use {new} "
        "instead",
        file=sys.stderr,
    )


class _Columns:
    """DefaultMessageFormatter."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def is_on(name: str, default: bool = False) -> bool:
            return properties[name].strip().lower() == "true" if name in properties else default

        self._timestamp = is_on("print.timestamp")
        self._partition = is_on("print.partition")
        self._offset = is_on("print.offset")
        self._delivery = is_on("print.delivery")
        self._epoch = is_on("print.epoch")
        self._headers = is_on("print.headers")
        self._key = is_on("print.key")
        self._value = is_on("print.value", True)
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_separator = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._show_key = _deserializer(properties, "key.deserializer")
        self._show_value = _deserializer(properties, "value.deserializer")
        self._show_header = _deserializer(properties, "headers.deserializer")

    def of(self, record: Consumed) -> bytes:
        """The line of a record. Raises Failure."""
        columns: list[bytes] = []
        if self._timestamp:
            kind = record.timestamp_type
            text = "NO_TIMESTAMP" if kind is None else f"{_TYPES[kind]}:{record.timestamp_ms}"
            columns.append(text.encode())
        if self._partition:
            columns.append(b"Partition:%d" % record.partition)
        if self._offset:
            columns.append(b"Offset:%d" % record.offset)
        if self._delivery:
            columns.append(b"Delivery:NOT_PRESENT")
        if self._epoch:
            # Kafka's command has forgotten it when it comes to this.
            columns.append(b"Epoch:NOT_PRESENT")
        if self._headers:
            shown = (
                name.encode() + b":" + self._shown(content, self._show_header)
                for name, content in record.headers
            )
            columns.append(self._headers_separator.join(shown) or b"NO_HEADERS")
        if self._key:
            columns.append(self._shown(record.key, self._show_key))
        if self._value:
            columns.append(self._shown(record.value, self._show_value))
        return self._separator.join(columns) + self._line_separator if columns else b""

    def _shown(self, content: bytes | None, show: deserializers.Deserializer | None) -> bytes:
        found = self._null if content is None else content
        return found if show is None else show(found).encode()


def _deserializer(properties: Mapping[str, str], name: str) -> deserializers.Deserializer | None:
    wanted = properties.get(name)
    if wanted is None:
        return None
    found = deserializers.named(wanted)
    if found is None:
        log("ERROR", f"Unable to instantiate a deserializer from {wanted}", f"{_NEW}{_DEFAULT}")
        _trace(Failure("java.lang.ClassNotFoundException", wanted))
    return found


def _trace(failure: Failure) -> None:
    import sys

    print(failure.trace, end="", file=sys.stderr)


def json_lines(properties: Mapping[str, str]) -> Formatter:
    """A JSON object per line; keys and values as the deserializers show them, or as UTF-8."""
    import json

    show_key = _deserializer(properties, "key.deserializer") or _text
    show_value = _deserializer(properties, "value.deserializer") or _text

    def of(record: Consumed) -> bytes:
        found: dict[str, Any] = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "timestamp_type": None if record.timestamp_type is None else _TYPES[record.timestamp_type],
            "key": None if record.key is None else show_key(record.key),
            "value": None if record.value is None else show_value(record.value),
            "headers": [
                [name, None if content is None else _text(content)] for name, content in record.headers
            ],
        }
        return json.dumps(found, ensure_ascii=False).encode() + b"\n"

    return of


def _text(content: bytes) -> str:
    return content.decode(errors="replace")
