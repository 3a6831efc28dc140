"""Security of each listener, as configured: TLS, SASL, both, or neither."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_compat.cluster.broker_context import BrokerContext, EntityChanges
from kafka_compat.config import BrokerConfig, ConfigError, Listener
from kafka_compat.coordination.store.metadata_store import MetadataStore
from kafka_compat.errors import StartupError
from kafka_compat.metadata.feed import MetadataDelta
from kafka_compat.network.entrance import ListenerEntrance, SaslTerms, TlsTerms
from kafka_compat.network.server import Server
from kafka_compat.security.broker_security import BrokerSecurity
from kafka_compat.security.broker_settings import Login, connection_security
from kafka_compat.security.principal import Principal
from kafka_compat.security.principal_mapping import NoMatchingRule, PrincipalMapper
from kafka_compat.security.sasl.exchange import Exchange
from kafka_compat.security.sasl.offer import Sources, offer_of
from kafka_compat.security.scram_credential import Credential
from kafka_compat.security.tls_context import TlsContext
from kafka_compat.security.tls_settings import TlsSettings
from kafka_compat.security.users import Users
from kafka_compat.storage.clock import Clock
from kafka_compat.tasks import Tasks

if TYPE_CHECKING:
    from kafka_compat.security.oauth.key_set import KeySet, KeySource
    from kafka_compat.security.oauth.login import TokenEndpoint, TokenSource
    from kafka_compat.security.sasl.scram import Found
    from kafka_compat.security.tokens.keeper import Keeper


class Entrances:
    """Security of the listeners that use TLS or SASL."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, server: Server, listeners: Sequence[Listener] | None = None
    ) -> None:
        """Configure the security of the server's listeners, by default those in config.listeners. Raises
        ConfigError if a setting is invalid.
        """
        self._config = config
        own = config.inter_broker_listener if listeners is None else None
        self._settings_changed = asyncio.Event()
        self.tls: dict[str, ListenerTls] = {}
        """Maps the names of TLS listeners to their certificates."""
        self.delegation_tokens: Keeper | None = None
        """The delegation tokens, or None if they are disabled."""
        self._users: Users | None = None
        self._clock = clock
        self._token_sources: list[TokenSource] = []
        self._key_sets: dict[KeySource, KeySet] = {}
        sources = Sources(self._credential, self._delegation_token, self._keys, clock.now_ms)
        for listener in config.listeners if listeners is None else listeners:
            settings = config.for_listener(listener.name)
            tls: TlsTerms | None = None
            sasl: SaslTerms | None = None
            if listener.security_protocol.endswith("SSL"):
                # Nodes of a quorum use all controller listeners among themselves.
                certificates = ListenerTls(config, listener, between_brokers=own in (None, listener.name))
                self.tls[listener.name] = certificates
                tls = TlsTerms(
                    certificates.server,
                    certificates.refusal,
                    certificates.principal,
                    certificates.invalid,
                )
            if listener.security_protocol.startswith("SASL"):
                sasl = SaslTerms(
                    partial(Exchange, offer_of(settings, sources), clock.now_ms, clock.monotonic_ms),
                    config.int("sasl.server.max.receive.size"),
                )
            if tls is not None or sasl is not None:
                server.entrances[listener.name] = ListenerEntrance(server, tls, sasl)

    async def open(self, context: BrokerContext, tasks: Tasks) -> None:
        """Load the users, fetch the issuers' keys and this broker's token, and subscribe to changes. Call
        this before the first client connects. Raises StartupError if the keys or the token are unavailable.
        """
        await self.open_without_store(tasks)
        await self.load_users(context.store, context.entity_changes)
        context.dynamic_settings.broker_checks += [tls.check for tls in self.tls.values()]
        context.dynamic_settings.file_checks += [tls.check_files for tls in self.tls.values()]
        context.metadata.feed.subscribe(self._on_metadata)

    async def load_users(self, store: MetadataStore, changes: EntityChanges) -> None:
        """Load the users. Until this is called, no user with SCRAM credentials can log in."""
        users = Users(store)
        await users.load()
        self._users = users
        changes.listeners.append(users.changed)

    async def open_without_store(self, tasks: Tasks) -> None:
        """Fetch the issuers' keys and this broker's token. Raises StartupError if they are unavailable."""
        for source, keys in self._key_sets.items():
            of_keys = f"the keys that verify tokens from {source.place.url}"
            await _open(keys, of_keys, "sasl.oauthbearer.jwks.endpoint.url")
            tasks.spawn(f"fetching the keys of {source.place.url}", keys.keep, restarts=True)
        for tokens in self._token_sources:
            of_brokers = f"a token for connections to other brokers from {tokens.url}"
            await _open(tokens, of_brokers, "sasl.oauthbearer.token.endpoint.url")
            tasks.spawn(f"fetching tokens from {tokens.url}", tokens.keep, restarts=True)
        tasks.spawn("checking for new certificates", self._keep_certificates, restarts=True)

    def _on_metadata(self, delta: MetadataDelta) -> None:
        if any(change.is_of_broker for change in delta.config_changes):
            self._settings_changed.set()

    def broker_security(self) -> BrokerSecurity:
        """Return the security of inter-broker connections. Raises StartupError if a setting is invalid."""
        return self.security_of(Login.between_brokers(self._config))

    def security_of(self, login: Login) -> BrokerSecurity:
        """Return the security of connections to a listener. Raises StartupError if a setting is invalid."""
        certificates = self.tls.get(login.listener_name)
        try:
            tls = certificates.client if certificates else None
            if tls is None and login.security_protocol.endswith("SSL"):
                # The listener is that of other nodes only.
                there = Listener(login.listener_name, "", 0, login.security_protocol)
                context = TlsContext(TlsSettings.of(self._config, there))
                tls = lambda: context.client  # noqa: E731
            return connection_security(self._config, login, tls, self._tokens, self._clock.now_ms)
        except ConfigError as error:
            raise StartupError(error.in_full) from error

    async def _keep_certificates(self) -> None:
        while self.tls:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._settings_changed.wait()
            self._settings_changed.clear()
            for certificates in self.tls.values():
                await certificates.look()

    def _keys(self, source: KeySource) -> KeySet:
        """Return the token issuers' keys. Listeners with the same key source share the keys."""
        from kafka_compat.security.oauth.key_set import KeySet

        return self._key_sets.setdefault(source, KeySet(source, self._clock.monotonic_ms))

    def _tokens(self, endpoint: TokenEndpoint) -> TokenSource:
        from kafka_compat.security.oauth.login import TokenSource

        source = TokenSource(endpoint, self._clock.now_ms)
        self._token_sources.append(source)
        return source

    def _credential(self, name: str, mechanism: str) -> Credential | None:
        return None if self._users is None else self._users.credential(name, mechanism)

    def _delegation_token(self, token_id: str, mechanism: str) -> Found | None:
        tokens = self.delegation_tokens
        return None if tokens is None else tokens.find(token_id, mechanism)


async def _open(source: TokenSource | KeySet, what: str, setting: str) -> None:
    from kafka_compat.http_client import Unreachable

    try:
        await source.open()
    except Unreachable as error:
        raise StartupError(f"cannot fetch {what}: {error} ({setting})") from error


log = logging.getLogger(__name__)

LOOK_S: Final = 10.0


class ListenerTls:
    """The certificates of one listener, with reloads while the broker runs (KIP-226).

    New certificates apply to new connections only. The files are checked when settings are altered, as in
    Kafka, and every LOOK_S seconds, because renewal tools replace files without notice. If new certificates
    are unusable, the problem is logged and the old certificates stay in use.
    """

    def __init__(self, config: BrokerConfig, listener: Listener, *, between_brokers: bool) -> None:
        """Load the certificates. Raises ConfigError if they are missing or unusable."""
        self._config = config
        self._listener = listener
        settings = TlsSettings.of(config, listener)
        if settings.key_store is None:
            raise ConfigError(
                f"listener.name.{listener.name.lower()}.ssl.keystore.location",
                None,
                f"listener {listener.name} uses TLS but has no certificate",
                "set the path of a keystore here or in ssl.keystore.location",
            )
        self._mapper = PrincipalMapper(
            settings.principal_mapping_rules, settings.named("ssl.principal.mapping.rules")
        )
        self.current = TlsContext(settings, between_brokers=between_brokers)
        """The TLS context for new connections."""
        self._refused: str | None = None
        self._revision = config.revision

    def server(self) -> ssl.SSLContext:
        """Return the TLS context for an accepted connection."""
        return self.current.server

    def client(self) -> ssl.SSLContext:
        """Return the TLS context for a connection to another broker."""
        return self.current.client

    def refusal(self, connection: ssl.SSLObject) -> str | None:
        """Return the reason to reject a connection after the handshake, or None to accept it."""
        suite = self.current.suite_refused(connection)
        return f"the client supports only {suite}, which is not in ssl.cipher.suites" if suite else None

    def invalid(self) -> str | None:
        """Return why clients reject the listener's certificate now, such as its expiry, or None."""
        return self.current.invalid()

    def principal(self, certificate: bytes) -> Principal | None:
        """Return a certificate's principal, or None if no rule of ssl.principal.mapping.rules matches."""
        try:
            return self._mapper.principal(certificate)
        except (NoMatchingRule, ValueError) as error:
            log.info("Rejected a client certificate on listener %s: %s", self._listener.name, error)
            return None

    async def check(self, config: BrokerConfig) -> None:
        """Raise ConfigError, as in Kafka, unless this listener can use the new certificates."""
        with _as_validation_failure():
            settings = TlsSettings.of(config, self._listener)
            if self._names_others(settings):
                await asyncio.to_thread(self.current.renewed, settings)

    async def check_files(self, config: BrokerConfig) -> None:
        """Raise ConfigError if files were replaced under unchanged paths and the new files are unusable."""
        with _as_validation_failure():
            settings = TlsSettings.of(config, self._listener)
            if not self._names_others(settings) and self.current.changed():
                await asyncio.to_thread(self.current.renewed, settings)

    def _names_others(self, settings: TlsSettings) -> bool:
        current = self.current.settings
        return (settings.key_store, settings.trust_store) != (current.key_store, current.trust_store)

    async def look(self) -> None:
        """Load new certificates if the files or the settings have changed."""
        current = self.current
        if self._config.revision == self._revision and not current.changed():
            return
        self._revision = self._config.revision
        try:
            renewed = await asyncio.to_thread(current.renewed, TlsSettings.of(self._config, self._listener))
        except ConfigError as error:
            if str(error) != self._refused:
                self._refused = str(error)
                log.error("Listener %s kept its old certificates: %s", self._listener.name, error.in_full)
            return
        self._refused = None
        if renewed is not current and self.current is current:
            self.current = renewed
            log.info("Listener %s loaded new certificates", self._listener.name)


@contextmanager
def _as_validation_failure() -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        reason = f"Validation of dynamic config update of SSLFactory failed: {error}"
        raise ConfigError(error.name, error.value, reason, error.expected, whole=True) from error
