"""OAUTHBEARER settings of a listener, and the token validator and clients that they configure.

Kafka's class names select built-in implementations. No code is loaded by name.
"""

import logging
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, cast

from kafka_compat.config import ConfigError
from kafka_compat.config.listener_config import PREFIX, ListenerConfig
from kafka_compat.http_client import Place, place
from kafka_compat.security.key_stores import StoreError, load_trust_store
from kafka_compat.security.oauth.key_set import KeySource
from kafka_compat.security.oauth.login import Client, RefreshWindow, TokenEndpoint, TokenSource
from kafka_compat.security.oauth.secured import Expected, Keys, SecuredValidator
from kafka_compat.security.oauth.tokens import Validator
from kafka_compat.security.oauth.unsecured import UnsecuredRules, UnsecuredValidator, unsecured_token
from kafka_compat.security.sasl.oauthbearer import OAuthBearerClient, compose_message
from kafka_compat.security.tls_settings import Secret, TrustStoreSettings

log = logging.getLogger(__name__)

MECHANISM: Final = "OAUTHBEARER"
_PREFIX: Final = "oauthbearer."
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
_HANDLER: Final = "sasl.server.callback.handler.class"
_SECURED: Final = (
    f"{_PACKAGE}OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}secured.OAuthBearerValidatorCallbackHandler",
)
_UNSECURED: Final = f"{_PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
_LOGIN_HANDLER: Final = "sasl.login.callback.handler.class"
_SECURED_LOGIN: Final = (
    f"{_PACKAGE}OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}secured.OAuthBearerLoginCallbackHandler",
)
_UNSECURED_LOGIN: Final = f"{_PACKAGE}internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
_ENDPOINT: Final = "sasl.oauthbearer.jwks.endpoint"


def validator_of(
    settings: ListenerConfig, options: Mapping[str, str], keys: Callable[[KeySource], Keys]
) -> Validator:
    """Return a listener's token validator. Raises ConfigError if its settings are invalid."""
    name = f"{PREFIX}{settings.listener_name.lower()}.{_PREFIX}{_HANDLER}"
    chosen = settings.str(f"{_PREFIX}{_HANDLER}") if settings.is_own(f"{_PREFIX}{_HANDLER}") else None
    if chosen in _SECURED:
        return SecuredValidator(keys(_key_source(settings, options)), _expected(settings))
    if chosen != _UNSECURED:
        raise ConfigError(
            name,
            chosen,
            "unknown class for the validation of tokens",
            f"expected {_SECURED[1]}, or for development {_UNSECURED}, which accepts any token",
        )
    try:
        rules = UnsecuredRules.of(options)
    except ValueError as error:
        raise ConfigError(f"{name.removesuffix(_HANDLER)}sasl.jaas.config", "[hidden]", str(error)) from None
    log.warning(
        "Listener %s accepts unsecured tokens, so clients can claim any identity. In production, set %s to "
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
        settings.listener_name,
        name,
    )
    return UnsecuredValidator(rules)


def named(settings: ListenerConfig, name: str) -> str:
    """Return the full name of a setting, with the listener and mechanism prefix under which it is set."""
    return settings.named(_PREFIX + name if settings.is_own(_PREFIX + name) else name)


def _own(settings: ListenerConfig, name: str) -> str:
    return _PREFIX + name if settings.is_own(_PREFIX + name) else name


def text(settings: ListenerConfig, name: str) -> str | None:
    """Return a setting's text, or None if it is unset or blank."""
    return (settings.str(_own(settings, name)) or "").strip() or None


def number(settings: ListenerConfig, name: str) -> int:
    return settings.int(_own(settings, name))


def decimal(settings: ListenerConfig, name: str) -> float:
    return cast(float, settings.get(_own(settings, name)))


def place_of(settings: ListenerConfig, name: str, options: Mapping[str, str]) -> Place:
    """Return the server and path of a URL in the settings. Raises ConfigError if the URL is invalid."""
    url = text(settings, name)
    try:
        if url is None:
            raise ValueError(f"The OAuth configuration option {name} value must be non-null")
        return place(url, partial(_trusting, options))
    except ValueError as error:
        expected = "expected a URL such as https://issuer.example/keys"
        raise ConfigError(named(settings, name), url, str(error), expected) from None


def _trusting(options: Mapping[str, str]) -> ssl.SSLContext:
    """Return a TLS context that trusts the ssl.truststore.* options of a JAAS configuration, or the system's
    authorities. Raises ValueError if they are unusable.
    """
    location, certificates = (
        options.get("ssl.truststore.location"),
        options.get("ssl.truststore.certificates"),
    )
    if location is None and certificates is None:
        return ssl.create_default_context()
    password = options.get("ssl.truststore.password")
    store = TrustStoreSettings(
        options.get("ssl.truststore.type", "JKS"),
        location,
        Secret(password) if password else None,
        certificates,
    )
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        trusted = load_trust_store(store)
    except StoreError as error:
        raise ValueError(str(error)) from error
    return ssl.create_default_context(cadata=b"".join(one.public_bytes(Encoding.DER) for one in trusted))


def client_of(
    settings: ListenerConfig,
    options: Mapping[str, str],
    tokens: Callable[[TokenEndpoint], TokenSource],
    now_ms: Callable[[], int],
) -> Callable[[], OAuthBearerClient]:
    """Return a function that creates a client for each login. Raises ConfigError if settings are invalid."""
    name = f"{_PREFIX}{_LOGIN_HANDLER}"
    jaas = f"{PREFIX}{settings.listener_name.lower()}.{_PREFIX}sasl.jaas.config"
    chosen = settings.str(name) if settings.is_own(name) else _UNSECURED_LOGIN
    if chosen not in (*_SECURED_LOGIN, _UNSECURED_LOGIN):
        expected = f"expected {_SECURED_LOGIN[1]}, or for development {_UNSECURED_LOGIN}"
        raise ConfigError(settings.named(name), chosen, "unknown class for fetching tokens", expected)
    prefix = "unsecuredLoginExtension_" if chosen == _UNSECURED_LOGIN else "extension_"
    extensions = {
        option.removeprefix(prefix): value for option, value in options.items() if option.startswith(prefix)
    }
    try:
        compose_message("token", extensions)
        if chosen == _UNSECURED_LOGIN:
            unsecured_token(options, now_ms())
            return lambda: OAuthBearerClient(unsecured_token(options, now_ms()).text, extensions)
        for option in ("clientId", "clientSecret"):
            if not options.get(option, "").strip():
                raise ValueError(f"The OAuth configuration option {option} value must be non-null")
    except ValueError as error:
        raise ConfigError(jaas, "[hidden]", str(error)) from None
    source = tokens(_token_endpoint(settings, options))
    return lambda: OAuthBearerClient(source.token(), extensions)


def _token_endpoint(settings: ListenerConfig, options: Mapping[str, str]) -> TokenEndpoint:
    return TokenEndpoint(
        place_of(settings, "sasl.oauthbearer.token.endpoint.url", options),
        Client(
            options["clientId"].strip(),
            Secret(options["clientSecret"].strip()),
            options.get("scope", "").strip(),
        ),
        RefreshWindow(
            decimal(settings, "sasl.login.refresh.window.factor"),
            decimal(settings, "sasl.login.refresh.window.jitter"),
            number(settings, "sasl.login.refresh.min.period.seconds"),
            number(settings, "sasl.login.refresh.buffer.seconds"),
        ),
        number(settings, "sasl.login.retry.backoff.ms"),
        number(settings, "sasl.login.retry.backoff.max.ms"),
    )


def _key_source(settings: ListenerConfig, options: Mapping[str, str]) -> KeySource:
    refresh_ms = number(settings, f"{_ENDPOINT}.refresh.ms")
    if refresh_ms <= 0:
        name = named(settings, f"{_ENDPOINT}.refresh.ms")
        raise ConfigError(name, str(refresh_ms), "Value must be at least 1")
    return KeySource(
        place_of(settings, f"{_ENDPOINT}.url", options),
        refresh_ms,
        number(settings, f"{_ENDPOINT}.retry.backoff.ms"),
        number(settings, f"{_ENDPOINT}.retry.backoff.max.ms"),
    )


def _expected(settings: ListenerConfig) -> Expected:
    def claim(name: str) -> str:
        found = text(settings, name)
        if found is None:
            raise ConfigError(named(settings, name), "", "The value must not be blank")
        return found

    return Expected(
        text(settings, "sasl.oauthbearer.expected.issuer"),
        frozenset(settings.list(_own(settings, "sasl.oauthbearer.expected.audience"))),
        number(settings, "sasl.oauthbearer.clock.skew.seconds"),
        claim("sasl.oauthbearer.sub.claim.name"),
        claim("sasl.oauthbearer.scope.claim.name"),
    )
