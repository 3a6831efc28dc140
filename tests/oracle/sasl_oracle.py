"""Kafka's own SASL classes (SaslOracle.java)."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from tests.oracle.jvm import OracleJvm

PACKAGE = "org.apache.kafka.common.security.oauthbearer."
SECURED = f"{PACKAGE}OAuthBearerValidatorCallbackHandler"
UNSECURED = f"{PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"


class SaslOracle(OracleJvm):
    """The SASL classes of Kafka `release`. Use it as a context manager, which ends the JVM."""

    def __init__(self, release: str) -> None:
        super().__init__("SaslOracle", release)

    def exchange(
        self, handler: str, settings: Mapping[str, str], options: Mapping[str, str], messages: Sequence[bytes]
    ) -> list[str]:
        """Return the responses to the messages of one OAUTHBEARER exchange: text, "!CLASS: MESSAGE" for an
        exception, and after a successful exchange "=PRINCIPAL EXPIRES_MS".
        """
        return self._ask("exchange", handler, _lines(settings), _lines(options), *messages).split("\n")

    def short_name(self, realm: str, rules: Sequence[str], principal: str) -> str:
        """Return the local name of a Kerberos principal, or "!CLASS: MESSAGE"."""
        return self._ask("short name", realm, "\n".join(rules), principal)

    def _ask(self, *texts: str | bytes) -> str:
        question = struct.pack(">i", len(texts))
        for text in texts:
            content = text.encode() if isinstance(text, str) else text
            question += struct.pack(">i", len(content)) + content
        self.say(question)
        return self.read_sized().decode()


def _lines(pairs: Mapping[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in pairs.items())
