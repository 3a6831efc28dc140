"""Asks Kafka's own message classes, in a JVM that lives for a test session (MessageOracle.java)."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, NamedTuple

from tests.oracle.jvm import OracleJvm


class Answer(NamedTuple):
    """Kafka's JSON of our bytes, and Kafka's bytes of our JSON."""

    json: Any
    bytes: bytes


class MessageOracle(OracleJvm):
    """`ask` Kafka `release`'s message classes; a context manager that ends its JVM."""

    def __init__(self, release: str, folder: Path) -> None:
        super().__init__("MessageOracle", release, folder)

    def ask(self, java_class: str, version: int, message: bytes, as_json: Any) -> Answer:
        """What Kafka makes of a message's bytes and of its JSON; AssertionError when it refuses either."""
        text = json.dumps(as_json).encode()
        name = java_class.encode()
        self.say(
            struct.pack(">H", len(name))
            + name
            + struct.pack(">hi", version, len(message))
            + message
            + struct.pack(">i", len(text))
            + text
        )
        (refused,) = self.read(1)
        first = self.read_sized()
        second = self.read_sized()
        assert not refused, f"{java_class} v{version}: {first.decode()}"
        return Answer(json.loads(first), second)
