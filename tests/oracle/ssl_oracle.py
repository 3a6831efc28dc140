"""Asks Kafka's and Java's own classes about TLS settings and owners of certificates (SslOracle.java)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from tests.oracle.jvm import OracleJvm

_CONFIGURED, _NAME, _MAPPED = range(3)


class Refused(Exception):
    """What Java says of what it does not take."""


class SslOracle(OracleJvm):
    """`ask` Kafka `release`; a context manager that ends its JVM."""

    def __init__(self, release: str, folder: Path) -> None:
        super().__init__("SslOracle", release, folder)

    def configured(self, settings: Mapping[str, str]) -> str:
        """What is in the key store and in the trust store that these settings name. Refused."""
        return self._ask(_CONFIGURED, *(part.encode() for item in settings.items() for part in item))

    def name(self, encoded: bytes) -> str:
        """X500Principal.getName() of a name in DER. Refused."""
        return self._ask(_NAME, encoded)

    def mapped(self, rules: str, name: str) -> str:
        """What ssl.principal.mapping.rules make of a name. Refused."""
        return self._ask(_MAPPED, rules.encode(), name.encode())

    def _ask(self, kind: int, *parts: bytes) -> str:
        sized = b"".join(struct.pack(">i", len(part)) + part for part in parts)
        self.say(struct.pack(">bi", kind, len(parts)) + sized)
        (status,) = self.read(1)
        answer = self.read_sized().decode()
        if status:
            raise Refused(answer)
        return answer
