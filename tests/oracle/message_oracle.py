"""Kafka's own message classes, in a JVM that runs for a test session (MessageOracle.java)."""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

from tests.oracle.jvm import OracleJvm


class Answer(NamedTuple):
    """Kafka's JSON for our bytes, and Kafka's bytes for our JSON."""

    json: Any
    bytes: bytes


class MessageOracle(OracleJvm):
    """The message classes of Kafka `release`. Use it as a context manager, which ends the JVM."""

    def __init__(self, release: str) -> None:
        super().__init__("MessageOracle", release)

    def ask(self, java_class: str, version: int, message: bytes, as_json: Any) -> Answer:
        """Convert a message's bytes to JSON and its JSON to bytes. Raises AssertionError if Kafka rejects
        either.
        """
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
