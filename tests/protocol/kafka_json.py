"""Conversion of our messages to the JSON of Kafka's JsonConverter classes."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

from kafka_compat.protocol.schema import Message, fields_of
from tests.protocol.definitions import FieldAt

_RECORDS = ("records", "unalignedRecords")


def to_json(message: Message, fields: tuple[FieldAt, ...]) -> dict[str, Any]:
    """Return `message` with the field names of an official definition. Tagged fields with default values are
    omitted.
    """
    content = {}
    for field in fields:
        value = getattr(message, field.name)
        if field.tag is None or value != _default(message, field.name):
            content[field.json_name] = _field(value, field)
    return content


def as_kafka_holds_it(message: Message, fields: tuple[FieldAt, ...]) -> Message:
    """Return `message` reduced to the content that Kafka's class can represent.

    Tagged fields that only a later release defines get their defaults. Array elements with duplicate map keys
    are dropped, because Kafka's classes store such arrays as maps.
    """
    known = {field.name for field in fields}
    for name in {spec.name for spec in fields_of(type(message))} - known:
        setattr(message, name, _default(message, name))
    for field in fields:
        value = getattr(message, field.name)
        if not field.children or value is None:
            continue
        for element in value if field.is_array else [value]:
            if field.tag is None or element != _default(message, field.name):
                as_kafka_holds_it(element, field.children)
        keys = [child.name for child in field.children if child.is_map_key]
        if keys:
            first = {tuple(getattr(element, key) for key in keys): element for element in reversed(value)}
            value[:] = [element for element in value if any(element is kept for kept in first.values())]
    return message


def blank_records(content: Any) -> Any:
    """Blank all records fields, because Kafka's JSON does not contain them."""
    if isinstance(content, dict):
        return {
            name: "" if name in _RECORDS and value is not None else blank_records(value)
            for name, value in content.items()
        }
    return [blank_records(element) for element in content] if isinstance(content, list) else content


def _default(message: Message, name: str) -> Any:
    return getattr(type(message)(), name)


def _field(value: Any, field: FieldAt) -> Any:
    if value is None:
        return None
    if field.is_array:
        return [_value(element, field) for element in value]
    return _value(value, field)


def _value(value: Any, field: FieldAt) -> Any:
    if hasattr(type(value), "__fields__"):
        return to_json(value, field.children)
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    return value
