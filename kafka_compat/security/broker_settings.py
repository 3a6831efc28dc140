"""Settings for connections to other brokers (security.inter.broker.protocol)."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from kafka_compat.config import BrokerConfig, ConfigError
from kafka_compat.config.listener_config import ListenerConfig
from kafka_compat.security.broker_security import BrokerSecurity, SaslLogin
from kafka_compat.security.sasl.client import ClientMechanism, PlainClient, ScramClient
from kafka_compat.security.sasl.exchange import GSSAPI
from kafka_compat.security.sasl.offer import login_module
from kafka_compat.security.scram_credential import MECHANISMS

if TYPE_CHECKING:
    from kafka_compat.security.oauth.login import TokenEndpoint, TokenSource

_BETWEEN_BROKERS: Final = "sasl.mechanism.inter.broker.protocol"
_TO_CONTROLLERS: Final = "sasl.mechanism.controller.protocol"


class Login(NamedTuple):
    """The listener of other brokers or controllers to which this process connects. `mechanism_setting` names
    the setting with the SASL mechanism.
    """

    listener_name: str
    security_protocol: str
    mechanism_setting: str

    @classmethod
    def between_brokers(cls, config: BrokerConfig) -> Self:
        """Return the listener for connections to other brokers."""
        return cls(config.inter_broker_listener, config.inter_broker_security_protocol, _BETWEEN_BROKERS)

    @classmethod
    def to_controllers(cls, listener_name: str, security_protocol: str) -> Self:
        """Return the listener for connections to the controllers of a quorum."""
        return cls(listener_name, security_protocol, _TO_CONTROLLERS)


def connection_security(
    config: BrokerConfig,
    login: Login,
    tls: Callable[[], ssl.SSLContext] | None,
    tokens: Callable[[TokenEndpoint], TokenSource],
    now_ms: Callable[[], int],
) -> BrokerSecurity:
    """Return the TLS and SASL configuration for connections to a listener. `tls` returns the TLS context,
    and `tokens` the token source for a token endpoint. Raises ConfigError if a setting is invalid.
    """
    if not login.security_protocol.startswith("SASL"):
        return BrokerSecurity(tls, None)
    settings = config.for_listener(login.listener_name)
    return BrokerSecurity(tls, _login(settings, login.mechanism_setting, tokens, now_ms))


def _login(
    settings: ListenerConfig,
    mechanism_setting: str,
    tokens: Callable[[TokenEndpoint], TokenSource],
    now_ms: Callable[[], int],
) -> SaslLogin:
    mechanism = settings.str(mechanism_setting) or ""
    if mechanism == "OAUTHBEARER":
        from kafka_compat.security.oauth.settings import client_of

        login = login_module(settings, mechanism)
        make_token = client_of(settings, login.options if login else {}, tokens, now_ms)
        return SaslLogin(mechanism, lambda _: make_token())
    if mechanism == GSSAPI:
        from kafka_compat.security import kerberos_settings

        by_ticket = kerberos_settings.client_of(settings, login_module(settings, mechanism))
        return SaslLogin(mechanism, by_ticket, asks_others=True)
    make = _client_of(mechanism)
    if make is None:
        raise ConfigError(
            settings.named(mechanism_setting),
            mechanism,
            f"this broker cannot authenticate to other brokers with {mechanism}",
            f"expected PLAIN, OAUTHBEARER, GSSAPI, {' or '.join(MECHANISMS)}",
        )
    module = login_module(settings, mechanism)
    name = module.options.get("username") if module else None
    password = module.options.get("password") if module else None
    if not name or not password:
        raise ConfigError(
            f"listener.name.{settings.listener_name.lower()}.{mechanism.lower()}.sasl.jaas.config",
            None,
            "brokers authenticate to each other, but this one has no name and password",
            'expected username="NAME" password="PASSWORD" among its options',
        )
    return SaslLogin(mechanism, lambda _: make(name, password))


def _client_of(mechanism: str) -> Callable[[str, str], ClientMechanism] | None:
    if mechanism == "PLAIN":
        return PlainClient
    if mechanism in MECHANISMS:
        return lambda name, password: ScramClient(mechanism, name, password)
    return None
