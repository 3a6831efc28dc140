"""The project's message classes, found by the names of Kafka's definitions."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages import request_class, response_class
from kafka_compat.protocol.schema import Message, schema_of

_DATA_MODULES = (
    "consumer_offsets",
    "consumer_group_records",
    "share_group_state",
    "transaction_state",
    "consumer_protocol",
    "quorum_records",
)


def message_classes() -> list[type[Message]]:
    """Return requests and responses by API key, and then the versioned records."""
    found: list[type[Message]] = []
    for api_key in ApiKey:
        try:
            found += (request_class(api_key), response_class(api_key))
        except LookupError:
            continue
    for name in _DATA_MODULES:
        module = import_module(f"kafka_compat.protocol.messages.{name}")
        found += (
            value
            for value in vars(module).values()
            if isinstance(value, type) and "__schema__" in vars(value)
        )
    return found


def message_versions() -> Iterator[tuple[type[Message], int]]:
    """Yield every pair of a class and a version."""
    for cls in message_classes():
        for version in schema_of(cls).versions.numbers():
            yield cls, version
