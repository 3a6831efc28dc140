"""The Kerberos settings of a listener: sasl.kerberos.*, and the options of Java's Krb5LoginModule."""

from collections.abc import Callable, Mapping
from typing import Final

from kafka_compat.config import ConfigError
from kafka_compat.config.listener_config import PREFIX, ListenerConfig
from kafka_compat.security.jaas import LoginModule
from kafka_compat.security.kerberos_names import ShortNamer
from kafka_compat.security.sasl import gssapi
from kafka_compat.security.sasl.gssapi import Unusable

_SERVICE: Final = "sasl.kerberos.service.name"
_RULES: Final = "sasl.kerberos.principal.to.local.rules"
_MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
_EXPECTED: Final = (
    f'expected {_MODULE} required useKeyTab=true storeKey=true keyTab="/path/to/keytab" '
    'principal="kafka/HOST@REALM";'
)


def server_of(settings: ListenerConfig, module: LoginModule | None) -> tuple[gssapi.Acceptor, ShortNamer]:
    """Return a listener's credentials and its name mapping. Raises ConfigError if a setting is invalid."""
    identity = _identity(settings, module)
    _service(settings, module)
    try:
        found = gssapi.acceptor(identity)
    except Unusable as error:
        raise ConfigError(_jaas(settings), "[hidden]", str(error)) from None
    rules = settings.list(_RULES)
    try:
        return found, ShortNamer(found.default_realm, rules)
    except ValueError as error:
        expected = "expected for example RULE:[1:$1@$0](.*@REALM)s/@.*//,DEFAULT"
        raise ConfigError(settings.named(_RULES), ",".join(rules), str(error), expected) from None


def client_of(settings: ListenerConfig, module: LoginModule | None) -> Callable[[str], gssapi.GssapiClient]:
    """Return a function that creates a host's GSSAPI client. Raises ConfigError if a setting is invalid."""
    options = module.options if module else {}
    has_tickets = _is_true(options, "useTicketCache") and not _is_true(options, "useKeyTab")
    identity = None if has_tickets else _identity(settings, module)
    service = _service(settings, module)
    try:
        if identity is None:
            tickets = gssapi.fetched_before(options.get("principal"), options.get("ticketCache"))
        else:
            tickets = gssapi.by_key_table(identity)
    except Unusable as error:
        raise ConfigError(_jaas(settings), "[hidden]", str(error)) from None
    return lambda host: gssapi.GssapiClient(tickets, service, host)


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


def _jaas(settings: ListenerConfig) -> str:
    return f"{PREFIX}{settings.listener_name.lower()}.gssapi.sasl.jaas.config"


def _identity(settings: ListenerConfig, module: LoginModule | None) -> gssapi.Identity:
    options = module.options if module else {}
    principal, key_table = options.get("principal"), options.get("keyTab")
    if not principal or not key_table or not _is_true(options, "useKeyTab"):
        problem = f"listener {settings.listener_name} offers GSSAPI but has no principal with a keytab"
        raise ConfigError(_jaas(settings), None, problem, _EXPECTED)
    return gssapi.Identity(principal, key_table)


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
