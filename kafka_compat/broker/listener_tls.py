"""The certificates of one listener while the broker runs: which ones new connections see (KIP-226).

New ones count from the next connection on; connections that there are stay as they are. They are looked for
when somebody alters settings, as in Kafka, and every LOOK_S, since tools that renew certificates write files
and tell nobody. New ones that cannot be used are logged, and the old ones stay.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafka_compat.config import BrokerConfig, ConfigError, Listener
from kafka_compat.security.principal import Principal
from kafka_compat.security.principal_mapping import NoMatchingRule, PrincipalMapper
from kafka_compat.security.tls_context import TlsContext
from kafka_compat.security.tls_settings import TlsSettings

log = logging.getLogger(__name__)

LOOK_S: Final = 10.0


class ListenerTls:
    """See above."""

    def __init__(self, config: BrokerConfig, listener: Listener, *, between_brokers: bool) -> None:
        """Raises ConfigError when there is no certificate that could be shown, or what there is cannot be."""
        self._config = config
        self._listener = listener
        settings = TlsSettings.of(config, listener)
        if settings.key_store is None:
            raise ConfigError(
                f"listener.name.{listener.name.lower()}.ssl.keystore.location",
                None,
                f"the listener {listener.name} speaks TLS, and has no certificate to show",
                "expected the path of a key store here or in ssl.keystore.location",
            )
        self._mapper = PrincipalMapper(
            settings.principal_mapping_rules, settings.named("ssl.principal.mapping.rules")
        )
        self._current = TlsContext(settings, between_brokers=between_brokers)
        self._refused: str | None = None
        self._revision = config.revision

    @property
    def current(self) -> TlsContext:
        """What serves new connections."""
        return self._current

    def server(self) -> ssl.SSLContext:
        """For a connection that has come."""
        return self._current.server

    def client(self) -> ssl.SSLContext:
        """For a connection to another broker."""
        return self._current.client

    def refusal(self, connection: ssl.SSLObject) -> str | None:
        """After a handshake: why the connection may not go on, if so."""
        suite = self._current.suite_refused(connection)
        return f"the client has agreed on {suite} alone, which is not in ssl.cipher.suites" if suite else None

    def principal(self, certificate: bytes) -> Principal | None:
        """Whose a certificate (DER) is; None for nobody that ssl.principal.mapping.rules know."""
        try:
            return self._mapper.principal(certificate)
        except (NoMatchingRule, ValueError) as error:
            log.info("listener %s: %s", self._listener.name, error)
            return None

    async def check(self, config: BrokerConfig) -> None:
        """Raises ConfigError, in Kafka's words, unless this listener could take the certificates that these
        settings name.
        """
        with _told_as_validation():
            settings = TlsSettings.of(config, self._listener)
            if self._names_others(settings):
                await asyncio.to_thread(self._current.renewed, settings)

    async def check_files(self, config: BrokerConfig) -> None:
        """As `check`, where these settings name the same files as before, and these have changed."""
        with _told_as_validation():
            settings = TlsSettings.of(config, self._listener)
            if not self._names_others(settings) and self._current.changed():
                await asyncio.to_thread(self._current.renewed, settings)

    def _names_others(self, settings: TlsSettings) -> bool:
        current = self._current.settings
        return (settings.key_store, settings.trust_store) != (current.key_store, current.trust_store)

    async def look(self) -> None:
        """Take up new certificates, if there are any."""
        current = self._current
        if self._config.revision == self._revision and not current.changed():
            return
        self._revision = self._config.revision
        try:
            settings = TlsSettings.of(self._config, self._listener)
            renewed = await asyncio.to_thread(current.renewed, settings)
        except ConfigError as error:
            if str(error) != self._refused:
                self._refused = str(error)
                log.error("listener %s keeps its certificates: %s", self._listener.name, error.in_full)
            return
        self._refused = None
        if renewed is not current and self._current is current:
            self._current = renewed
            log.info("listener %s has new certificates", self._listener.name)


@contextmanager
def _told_as_validation() -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        told = f"Validation of dynamic config update of SSLFactory failed: {error}"
        raise ConfigError(error.name, error.value, told, error.expected, whole=True) from error
