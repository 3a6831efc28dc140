"""Asks Kafka's own request classes what they answer when a request fails (ErrorResponseOracle.java)."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.oracle.jvm import OracleJvm

_ANSWERED, _REFUSED, _NO_ANSWER = range(3)


class ErrorResponseOracle(OracleJvm):
    """`ask` Kafka `release`'s request classes; a context manager that ends its JVM."""

    def __init__(self, release: str, folder: Path) -> None:
        super().__init__("ErrorResponseOracle", release, folder)

    def ask(self, api_key: int, version: int, code: int, message: str, request: bytes) -> bytes | None:
        """The body of the response, or None where Kafka sends none; ValueError for a request that it does
        not take.
        """
        text = message.encode()
        self.say(
            struct.pack(">hhhH", api_key, version, code, len(text))
            + text
            + struct.pack(">i", len(request))
            + request
        )
        (status,) = self.read(1)
        answer = self.read_sized()
        if status == _REFUSED:
            raise ValueError(answer.decode())
        return None if status == _NO_ANSWER else answer
