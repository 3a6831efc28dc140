"""Asks Kafka's own message classes, in a JVM that lives for a test session (MessageOracle.java)."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.support.kafka_jars import class_path

_SOURCE = Path(__file__).with_name("MessageOracle.java")


class Answer(NamedTuple):
    """Kafka's JSON of our bytes, and Kafka's bytes of our JSON."""

    json: Any
    bytes: bytes


class MessageOracle:
    """`ask` Kafka `release`'s message classes; a context manager that ends its JVM."""

    def __init__(self, release: str, folder: Path) -> None:
        classes = folder / f"oracle-{release}"
        classes.mkdir()
        jars = class_path(release)
        subprocess.run(["javac", "-cp", jars, "-d", str(classes), str(_SOURCE)], check=True)
        self._jvm = subprocess.Popen(
            ["java", "-Xmx256M", "-XX:+UseSerialGC", "-cp", f"{classes}:{jars}", "MessageOracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._jvm.stdin is not None
        self._jvm.stdin.close()
        self._jvm.wait(timeout=30)
        assert self._jvm.stdout is not None
        self._jvm.stdout.close()

    def ask(self, java_class: str, version: int, message: bytes, as_json: Any) -> Answer:
        """What Kafka makes of a message's bytes and of its JSON; AssertionError when it refuses either."""
        assert self._jvm.stdin is not None
        text = json.dumps(as_json).encode()
        name = java_class.encode()
        self._jvm.stdin.write(
            struct.pack(">H", len(name))
            + name
            + struct.pack(">hi", version, len(message))
            + message
            + struct.pack(">i", len(text))
            + text
        )
        self._jvm.stdin.flush()
        (refused,) = self._read(1)
        first = self._read_sized()
        second = self._read_sized()
        assert not refused, f"{java_class} v{version}: {first.decode()}"
        return Answer(json.loads(first), second)

    def _read_sized(self) -> bytes:
        (size_bytes,) = struct.unpack(">i", self._read(4))
        return self._read(size_bytes)

    def _read(self, size_bytes: int) -> bytes:
        assert self._jvm.stdout is not None
        content = self._jvm.stdout.read(size_bytes)
        assert len(content) == size_bytes, "the JVM of the oracle has ended"
        return content
