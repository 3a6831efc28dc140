"""Messages as the JSON that Kafka's own converters make of them: names in camel case, bytes in base64, fields
of other versions left out, tagged ones with nothing to say too.
"""

from __future__ import annotations

import binascii
from functools import lru_cache
from typing import Any
from uuid import UUID

from kafka_compat.protocol.schema import FieldSpec, fields_of
from kafka_compat.storage.directories.checkpoints import encode_topic_id

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
    """What a converter writes for a message of that version, as dicts, lists, texts, numbers and None."""
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
    """JSON without spaces, escaped as Kafka's library does it."""
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
