"""Random messages decoded and encoded again by kafka-python's classes, with the same bytes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import kafka.protocol
import pytest
from kafka.protocol.api_message import ApiMessage

from kafka_compat.protocol.codec import encode
from kafka_compat.protocol.messages.api_versions import ApiVersionsResponse
from kafka_compat.protocol.schema import Message, schema_of
from tests.protocol.known_messages import message_classes
from tests.protocol.random_messages import RandomMessages
from tests.support.campaign import rounds


def kafka_python_classes() -> dict[str, Any]:
    """Return kafka-python's message classes by the names of Kafka's definitions."""
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name:
            importlib.import_module(module.name)
    return {cls.name: cls for cls in _subclasses(ApiMessage) if getattr(cls, "_json", None)}


def _subclasses(cls: type) -> Iterator[Any]:
    children: list[type] = cls.__subclasses__()
    for child in children:
        yield child
        yield from _subclasses(child)


THEIRS = kafka_python_classes()
SHARED = [cls for cls in message_classes() if cls.__name__ in THEIRS]


def test_kafka_python_implements_52_of_our_apis() -> None:
    assert len({schema_of(cls).api_key for cls in SHARED}) == 52


@pytest.mark.parametrize("cls", SHARED, ids=lambda cls: cls.__name__)
def test_kafka_python_reencodes_the_same_bytes(cls: type[Message]) -> None:
    theirs = THEIRS[cls.__name__]
    differences = []
    for version in schema_of(cls).versions.numbers():
        if version > theirs.max_version:
            continue
        for seed in range(rounds(everyday=5, campaign=200)):
            message = RandomMessages(seed).message(cls, version)
            if isinstance(message, ApiVersionsResponse):
                # with an error, kafka-python reads version 0 whatever version was requested
                message.error_code = 0
            content = encode(message, version)
            try:
                decoded = theirs.decode(content, version=version)
                decoded._header = None  # decoding leaves it unset, and encoding reads it
                again = bytes(decoded.encode(version=version))
            except Exception as error:
                differences.append(f"v{version} seed {seed}: {error!r}")
                continue
            if again != content:
                differences.append(f"v{version} seed {seed}: {content.hex()} became {again.hex()}")
    assert differences[:3] == []
