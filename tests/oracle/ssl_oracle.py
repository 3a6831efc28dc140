"""Kafka's and Java's own classes for TLS settings and certificate subjects (SslOracle.java)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from tests.oracle.jvm import OracleJvm

_CONFIGURED, _NAME, _MAPPED = range(3)


class Refused(Exception):
    """Java's error for rejected input."""


class SslOracle(OracleJvm):
    """The classes of Kafka `release`. Use it as a context manager, which ends the JVM."""

    def __init__(self, release: str) -> None:
        super().__init__("SslOracle", release)

    def configured(self, settings: Mapping[str, str]) -> str:
        """Return the contents of the key store and trust store that these settings name. Raises Refused."""
        return self._ask(_CONFIGURED, *(part.encode() for item in settings.items() for part in item))

    def name(self, encoded: bytes) -> str:
        """Return X500Principal.getName() for a DER-encoded name. Raises Refused."""
        return self._ask(_NAME, encoded)

    def mapped(self, rules: str, name: str) -> str:
        """Apply ssl.principal.mapping.rules to a name. Raises Refused."""
        return self._ask(_MAPPED, rules.encode(), name.encode())

    def _ask(self, kind: int, *parts: bytes) -> str:
        sized = b"".join(struct.pack(">i", len(part)) + part for part in parts)
        self.say(struct.pack(">bi", kind, len(parts)) + sized)
        (status,) = self.read(1)
        answer = self.read_sized().decode()
        if status:
            raise Refused(answer)
        return answer
