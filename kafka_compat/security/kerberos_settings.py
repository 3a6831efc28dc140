"""What a listener's settings say of Kerberos: sasl.kerberos.*, and the options of Java's Krb5LoginModule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka_compat.config import ConfigError
from kafka_compat.config.listener_config import PREFIX, ListenerConfig
from kafka_compat.security.jaas import LoginModule
from kafka_compat.security.kerberos_names import ShortNamer
from kafka_compat.security.sasl.gssapi import Acceptor, Identity, Unusable, acceptor
from kafka_compat.security.sasl.gssapi_client import GssapiClient, ticket_cache

_SERVICE: Final = "sasl.kerberos.service.name"
_RULES: Final = "sasl.kerberos.principal.to.local.rules"
_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
_EXPECTED: Final = (
    f'expected {_MODULE} required useKeyTab=true storeKey=true keyTab="/path/to/keytab" '
    'principal="kafka/HOST@REALM";'
)


def server_of(settings: ListenerConfig, module: LoginModule | None) -> tuple[Acceptor, ShortNamer]:
    """What clients' tickets are accepted with, and who they are then. Raises ConfigError."""
    identity = _identity(settings, module)
    _service(settings, module)
    try:
        found = acceptor(identity)
    except Unusable as error:
        raise ConfigError(_jaas(settings), "[hidden]", str(error)) from None
    rules = settings.list(_RULES)
    try:
        return found, ShortNamer(found.default_realm, rules)
    except ValueError as error:
        expected = "expected for example RULE:[1:$1@$0](.*@REALM)s/@.*//,DEFAULT"
        raise ConfigError(settings.named(_RULES), ",".join(rules), str(error), expected) from None


def client_of(settings: ListenerConfig, module: LoginModule | None) -> Callable[[str], GssapiClient]:
    """How this broker logs in at others, by the host of each. Raises ConfigError."""
    identity, service = _identity(settings, module), _service(settings, module)
    try:
        cache = ticket_cache(identity)
    except Unusable as error:
        raise ConfigError(_jaas(settings), "[hidden]", str(error)) from None
    return lambda host: GssapiClient(identity, cache, service, host)


def _jaas(settings: ListenerConfig) -> str:
    return f"{PREFIX}{settings.listener_name.lower()}.gssapi.sasl.jaas.config"


def _identity(settings: ListenerConfig, module: LoginModule | None) -> Identity:
    options = module.options if module else {}
    principal, key_table = options.get("principal"), options.get("keyTab")
    if not principal or not key_table or options.get("useKeyTab", "").lower() != "true":
        problem = (
            f"the listener {settings.listener_name} offers GSSAPI, and has no principal with a key table"
        )
        raise ConfigError(_jaas(settings), None, problem, _EXPECTED)
    return Identity(principal, key_table)


def _service(settings: ListenerConfig, module: LoginModule | None) -> str:
    own, of_module = settings.str(_SERVICE), module.options.get("serviceName") if module else None
    found = own or of_module
    if not found:
        raise ConfigError(
            settings.named(_SERVICE), None, "No serviceName defined in either JAAS or Kafka config"
        )
    if own and of_module and own != of_module:
        problem = (
            f"Conflicting serviceName values found in JAAS and Kafka configs value in JAAS file {of_module}"
        )
        raise ConfigError(settings.named(_SERVICE), own, problem)
    return found
