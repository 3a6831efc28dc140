"""JSON form of messages (names in snake_case, bytes as base64, IDs as text), and API names for users."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import ArrayOf, Wire, WireType, fields_of

_BYTES = ("bytes", "records")


def to_json(value: Any, leave_out: frozenset[str] = frozenset()) -> Any:
    """Convert a message or a part of it to JSON values. Fields named in `leave_out` are omitted."""
    if isinstance(value, list | tuple):
        return [to_json(item, leave_out) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return str(value)
    if hasattr(type(value), "__fields__"):
        return {
            spec.name: to_json(getattr(value, spec.name), leave_out)
            for spec in fields_of(type(value))
            if spec.name not in leave_out
        }
    return value


def from_json(cls: type, given: Mapping[str, Any]) -> Any:
    """Convert JSON values to a message or struct of class `cls`. Raises ValueError if a field is unknown."""
    specs = {spec.name: spec for spec in fields_of(cls)}
    if unknown := sorted(given.keys() - specs.keys()):
        raise ValueError(f"{cls.__name__} has no field {', '.join(unknown)}")
    return cls(**{name: _value(specs[name].type, value) for name, value in given.items()})


def _value(kind: WireType, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, ArrayOf):
        return [_value(kind.element, item) for item in value]
    if not isinstance(kind, Wire):
        return from_json(kind, value)
    if kind.name in _BYTES:
        return base64.b64decode(value)
    return UUID(value) if kind.name == "uuid" else value


def api_name(key: ApiKey) -> str:
    """Return an API's name in Kafka's documentation, such as InitProducerId for INIT_PRODUCER_ID."""
    return "".join(word.capitalize() for word in key.name.split("_"))


def api_named(name: str) -> ApiKey | None:
    """Return the API with this name in Kafka's documentation, ignoring case, or None if it is unknown."""
    known = {key.name.replace("_", "").lower(): key for key in ApiKey}
    return known.get(name.replace("_", "").lower())
