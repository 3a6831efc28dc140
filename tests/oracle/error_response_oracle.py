"""Error responses of Kafka's own request classes (ErrorResponseOracle.java)."""

from __future__ import annotations

import struct

from tests.oracle.jvm import OracleJvm

_ANSWERED, _REFUSED, _NO_ANSWER = range(3)


class ErrorResponseOracle(OracleJvm):
    """The request classes of Kafka `release`. Use it as a context manager, which ends the JVM."""

    def __init__(self, release: str) -> None:
        super().__init__("ErrorResponseOracle", release)

    def ask(self, api_key: int, version: int, code: int, message: str, request: bytes) -> bytes | None:
        """Return the body of the response, or None if Kafka sends none. Raises ValueError if Kafka rejects
        the request.
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
