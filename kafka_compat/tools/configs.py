"""kafka-configs: describe and alter settings of topics and brokers, quotas, SCRAM credentials, loggers."""

import sys
from typing import Any, Final

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import show
from kafka_compat.tools.admin import connected, settings_of
from kafka_compat.tools.deserializers import java_double
from kafka_compat.tools.failure import (
    check,
    illegal_argument,
    in_background,
    invalid_configuration,
    java_int,
    of_client,
)
from kafka_compat.tools.options import Options

_MESSAGE_ALONE: Final = (
    "java.lang.IllegalArgumentException",
    "org.apache.kafka.common.errors.InvalidConfigurationException",
    "org.apache.kafka.common.errors.InvalidTopicException",
    "joptsimple.",
)
TYPES: Final = ("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", "broker-loggers")
_OF_ZOOKEEPER: Final = ("users", "brokers")
_FLAGS: Final = {
    "topic": "topics",
    "client": "clients",
    "user": "users",
    "broker": "brokers",
    "broker-logger": "broker-loggers",
    "ip": "ips",
    "client-metrics": "client-metrics",
    "group": "groups",
}
_DEFAULTS: Final = {
    "client-defaults": "clients",
    "user-defaults": "users",
    "broker-defaults": "brokers",
    "ip-defaults": "ips",
}
_WITHOUT_DEFAULTS: Final = {"topics", "client-metrics", "groups", "broker-loggers"}


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    try:
        options = Options(
            "configs",
            arguments,
            also="command-property= zookeeper= zk-tls-config-file= force",
            lists=("delete-config",),
        )
        options.exit_for_help()
        entities = _Entities(options)
        _check(options, entities)
        _run(options, entities)
        return 0
    except Exception as error:
        failure = of_client(error)
    if failure.kind.startswith(_MESSAGE_ALONE):
        print(failure.message, file=sys.stderr)
    else:
        line = " ".join(arguments)
        print(
            f"Error while executing config command with args '{line}'\n{failure.trace}",
            end="",
            file=sys.stderr,
        )
    return 1


class _Entities:
    """The types and names of the entities to describe or alter. The name "" means the default entity."""

    def __init__(self, options: Options) -> None:
        flags = {name: kind for name, kind in _FLAGS.items() if options.has(name)}
        defaults = [kind for name, kind in _DEFAULTS.items() if options.has(name)]
        self.by_flags = bool(flags or defaults)
        self.types = [*options.values("entity-type"), *flags.values(), *defaults]
        given = iter(options.values("entity-name"))
        self.names = [
            next(given) if flag == "entity-name" else ""
            for flag in options.order
            if flag in ("entity-name", "entity-default")
        ]
        self.names += [options.given(name) for name in flags]
        self.names += [""] * len(defaults)


def _check(options: Options, entities: _Entities) -> None:
    if options.has("alter") == options.has("describe"):
        options.usage_error("Specify one action: --describe or --alter")
    options.forbid("describe", "add-config", "delete-config")
    types = entities.types
    twice = [kind for index, kind in enumerate(types) if kind in types[:index]]
    if twice:
        raise illegal_argument(f"Duplicate entity type(s) specified: {','.join(twice)}")
    to_brokers = options.has("bootstrap-server") or options.has("bootstrap-controller")
    if not to_brokers and not options.has("zookeeper"):
        raise illegal_argument("Specify --bootstrap-server or --bootstrap-controller.")
    allowed = TYPES if to_brokers else _OF_ZOOKEEPER
    where = "--bootstrap-server or --bootstrap-controller" if to_brokers else "--zookeeper"
    for kind in types:
        if kind not in allowed:
            raise illegal_argument(
                f"Invalid entity type {kind}, expected one of {', '.join(allowed)} with {where}"
            )
    if not types:
        raise illegal_argument("Specify an entity type")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise illegal_argument("Several entity types can only be 'users' and 'clients'")
    generic = ("entity-name", "entity-type", "entity-default")
    if any(map(options.has, generic)) and entities.by_flags:
        raise illegal_argument(
            "--entity-{type,name,default} exclude the flags of individual types, such as --topic"
        )
    _check_connection(options)
    _check_names(options, entities)
    if options.has("alter"):
        _check_alter(options, entities)


def _check_connection(options: Options) -> None:
    servers, controllers = options.has("bootstrap-server"), options.has("bootstrap-controller")
    if servers and controllers and not options.has("zookeeper"):
        raise illegal_argument("--bootstrap-server and --bootstrap-controller exclude each other")
    if (servers or controllers) and options.has("zookeeper"):
        raise illegal_argument(
            "--bootstrap-server, --bootstrap-controller and --zookeeper exclude each other"
        )
    if options.has("all") and options.has("zookeeper"):
        raise illegal_argument("--bootstrap-server must be specified for --all")
    if options.has("zk-tls-config-file") and not options.has("zookeeper"):
        raise illegal_argument("--zk-tls-config-file requires --zookeeper.")
    if options.has("zookeeper"):
        raise illegal_argument("--zookeeper is not supported by this command: give --bootstrap-server")


def _check_names(options: Options, entities: _Entities) -> None:
    kind = entities.types[0]
    named = any(entities.names)
    if named and {"brokers", "broker-loggers"} & {*entities.types}:
        for flag in ("entity-name", "broker", "broker-logger"):
            if options.has(flag) and not options.given(flag).removeprefix("-").isdecimal():
                raise illegal_argument(
                    f"The entity name for {kind} must be a broker's ID, an integer, but it is: "
                    f"{options.given(flag)}"
                )
    if named and "ips" in entities.types:
        import socket

        for flag in ("entity-name", "ip"):
            if options.has(flag):
                try:
                    socket.getaddrinfo(options.given(flag), None)
                except (OSError, UnicodeError):
                    raise illegal_argument(
                        f"The entity name for {kind} must be an IP address or resolvable, but it is: "
                        f"{options.given(flag)}"
                    ) from None
    if options.has("describe") and options.has("entity-default") and _WITHOUT_DEFAULTS & {*entities.types}:
        raise illegal_argument(f"--describe of {','.join(entities.types)} excludes --entity-default")
    if options.has("describe") and "broker-loggers" in entities.types and not named:
        raise illegal_argument(f"--describe requires an entity name for {','.join(entities.types)}")


def _check_alter(options: Options, entities: _Entities) -> None:
    if {"users", "clients", "brokers", "ips"} & {*entities.types}:
        if not entities.names:
            raise illegal_argument(
                "--alter requires an entity name or the defaults for users, clients, brokers or ips"
            )
    elif not any(entities.names):
        raise illegal_argument(f"--alter requires an entity name for {','.join(entities.types)}")
    if options.has("add-config") and options.has("add-config-file"):
        raise illegal_argument("--add-config and --add-config-file exclude each other")
    if not any(map(options.has, ("add-config", "add-config-file", "delete-config"))):
        raise illegal_argument("--alter requires --delete-config, --add-config or --add-config-file")


def _run(options: Options, entities: _Entities) -> None:
    where = "bootstrap-server" if options.has("bootstrap-server") else "bootstrap-controller"
    settings = settings_of(options)
    cluster = connected(options.given(where), settings)
    if options.has("alter") and len(entities.types) != len(entities.names):
        raise illegal_argument("Specify a name for each entity type")
    with cluster:
        if options.has("describe"):
            _describe(cluster, options, entities)
        else:
            _alter(cluster, options, entities)


def _describe(cluster: Any, options: Options, entities: _Entities) -> None:
    kind = entities.types[0]
    if kind in ("users", "clients", "ips"):
        describe_quotas(cluster, options, entities.types, entities.names)
    else:
        from kafka_compat.tools.config_resources import describe_resources

        describe_resources(cluster, options, kind, entities.names)


def _alter(cluster: Any, options: Options, entities: _Entities) -> None:
    kind, name = entities.types[0], entities.names[0]
    added = added_configs(options)
    deleted = [item.strip() for item in options.values("delete-config")]
    if kind in ("users", "clients", "ips"):
        alter_quotas(cluster, entities.types, entities.names, added, deleted)
    else:
        from kafka_compat.tools.config_resources import alter_resource

        alter_resource(cluster, kind, name, added, deleted)
    if options.as_json:
        show.as_json({"type": kind, "name": name, "added": sorted(added), "deleted": deleted})
    elif name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind}.")


def added_configs(options: Options) -> dict[str, str]:
    """Parse the settings in --add-config and --add-config-file. Raises Failure if they are malformed."""
    import re

    found: dict[str, str] = {}
    if options.has("add-config-file"):
        found |= settings_of(options, "add-config-file", "")
    text = options.value("add-config")
    if text is not None:
        outside = r"(?=[^\]]*(?:\[|$))"
        pairs = [re.split(rf"\s*=\s*{outside}", item) for item in re.split(f",{outside}", text) if item]
        if any(len(pair) != 2 for pair in pairs) or not pairs:
            raise illegal_argument(
                'requirement failed: Invalid --add-config: expected "key=value", '
                'or "key=[value1,value2]" for values that contain commas.'
            )
        found |= {name.strip(): re.sub(r"\[?\]?", "", value).strip() for name, value in pairs}
    for name in found:
        if re.fullmatch("[a-zA-Z0-9._-]*", name) is None:
            raise illegal_argument(f"Invalid character found for config key: {name}")
    return found


# --- users, clients and addresses: quotas, and SCRAM credentials


_ENTITIES: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
_TITLES: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_QUOTAS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
_OF_ADDRESSES: Final = ("connection_creation_rate",)
_MECHANISMS: Final = ("UNKNOWN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_ITERATIONS: Final = 4096
_SALT_BYTES: Final = 20
_NAMED, _DEFAULT, _ANY = 0, 1, 2


def describe_quotas(cluster: Any, options: Options, types: list[str], names: list[str]) -> None:
    """Run --describe for quotas and SCRAM credentials. Raises Failure if a request fails."""
    entries = _quotas(cluster, types, names)
    users = []
    if types[0] != "ips" and "clients" not in types and "" not in names:
        users = _credentials(cluster, names)
    if options.as_json:
        show.as_json(
            {
                "quotas": [
                    {
                        "entity": {one.entity_type: one.entity_name for one in entry.entity},
                        "quotas": {one.key: one.value for one in entry.values},
                    }
                    for entry in entries
                ],
                "scram": {
                    user.user: {_MECHANISMS[one.mechanism]: one.iterations for one in user.credential_infos}
                    for user in users
                },
            }
        )
        return
    for entry in entries:
        found = {one.entity_type: one.entity_name for one in entry.entity}
        whose = ", ".join(
            f"the default {title}" if found[kind] is None else f"{title} '{found[kind]}'"
            for kind, title in _TITLES.items()
            if kind in found
        )
        values = {one.key: one.value for one in entry.values}
        order = show.java_order(values, show.java_hash, sized=True)
        quotas = ", ".join(f"{key}={java_double(values[key])}" for key in order)
        print(f"Quota configs for {whose} are {quotas}")
    for user in users:
        infos = ", ".join(
            f"{_MECHANISMS[one.mechanism]}=iterations={one.iterations}" for one in user.credential_infos
        )
        print(f"SCRAM credential configs for user-principal '{user.user}' are {infos}")


def _quotas(cluster: Any, types: list[str], names: list[str]) -> list[Any]:
    from kafka_compat.protocol.messages.describe_client_quotas import ComponentData

    if len(names) > len(types):
        raise illegal_argument("More entity names specified than entity types")
    components = []
    for index, kind in enumerate(types):
        name = names[index] if index < len(names) else None
        match_type = _ANY if name is None else _NAMED if name else _DEFAULT
        components.append(
            ComponentData(entity_type=_ENTITIES[kind], match_type=match_type, match=name or None)
        )
    with in_background():
        answer = cluster.ask(
            ApiKey.DESCRIBE_CLIENT_QUOTAS, "describeClientQuotas", components=components, strict=True
        )
    check(answer)
    return list(answer.entries or ())


def _credentials(cluster: Any, names: list[str]) -> list[Any]:
    from kafka_compat.protocol.messages.describe_user_scram_credentials import UserName

    with in_background():
        answer = cluster.ask(
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            "describeUserScramCredentials",
            users=[UserName(name=name) for name in names],
        )
    check(answer)
    for result in answer.results:
        if result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            check(result)
    return [result for result in answer.results if not result.error_code]


def alter_quotas(
    cluster: Any, types: list[str], names: list[str], added: dict[str, str], deleted: list[str]
) -> None:
    """Run --alter for quotas and SCRAM credentials. Raises Failure on invalid settings or failed requests."""
    if types[0] == "ips":
        unknown = [name for name in [*added, *deleted] if name not in _OF_ADDRESSES]
        if unknown:
            raise illegal_argument(
                f"Settings of 'ips' can only be connection quotas. Unexpected settings: {','.join(unknown)}"
            )
        _set_quotas(cluster, types, names, added, deleted)
        return
    _check_kinds(types, names, added, deleted)
    if any(name in _QUOTAS for name in [*added, *deleted]):
        _set_quotas(cluster, types, names, added, deleted)
    else:
        _set_credentials(cluster, names[0], added, deleted)


def _check_kinds(types: list[str], names: list[str], added: dict[str, str], deleted: list[str]) -> None:
    new = sorted(name for name in added if name not in _QUOTAS and name not in _MECHANISMS)
    old = [name for name in deleted if name not in _QUOTAS and name not in _MECHANISMS]
    scram_new = [name for name in added if name in _MECHANISMS]
    scram_old = [name for name in deleted if name in _MECHANISMS]
    if types[0] == "clients" or len(types) == 2:
        kinds, whose = "quota", "clients"
        new, old = new + scram_new, old + scram_old
    else:
        kinds, whose = "quota and SCRAM credential", "users"
    for names_, verb, title in ((new, "added", "Set"), (old, "deleted", "ArrayBuffer")):
        if names_:
            raise illegal_argument(
                f"Only {kinds} configs can be {verb} for '{whose}' using --bootstrap-server. "
                f"Unexpected config names: {title}({', '.join(names_)})"
            )
    if scram_new or scram_old:
        if "" in names:
            raise illegal_argument(
                "SCRAM credentials belong to one user: --entity-default and --user-defaults are not allowed."
            )
        if any(name in _QUOTAS for name in [*added, *deleted]):
            raise illegal_argument("Change quotas and SCRAM credentials of 'users' in separate commands.")


def _set_quotas(
    cluster: Any, types: list[str], names: list[str], added: dict[str, str], deleted: list[str]
) -> None:
    from kafka_compat.protocol.messages.alter_client_quotas import EntityData, EntryData, OpData

    entries = _quotas(cluster, types, names)
    old = {one.key for one in entries[0].values} if entries else set()
    missing = [name for name in deleted if name not in old]
    if missing:
        raise invalid_configuration(f"Invalid config(s): {','.join(missing)}")
    changes = [OpData(key=name, value=_number(name, text)) for name, text in added.items()]
    changes += [OpData(key=name, value=0.0, remove=True) for name in deleted]
    entity = [
        EntityData(entity_type=_ENTITIES[kind], entity_name=name or None)
        for kind, name in zip(types, names, strict=True)
    ]
    with in_background():
        answer = cluster.ask_controller(
            ApiKey.ALTER_CLIENT_QUOTAS, "alterClientQuotas", entries=[EntryData(entity=entity, ops=changes)]
        )
    check(*answer.entries)


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise illegal_argument(f"Cannot parse quota configuration value for {name}: {text}") from None


def _set_credentials(cluster: Any, user: str, added: dict[str, str], deleted: list[str]) -> None:
    from kafka_compat.protocol.messages import alter_user_scram_credentials as wire

    new = []
    for mechanism, text in added.items():
        iterations, password = _credential(mechanism, text)
        salt, salted = _salted(mechanism, password, iterations)
        new.append(
            wire.ScramCredentialUpsertion(
                name=user,
                mechanism=_MECHANISMS.index(mechanism),
                iterations=iterations,
                salt=salt,
                salted_password=salted,
            )
        )
    old = [wire.ScramCredentialDeletion(name=user, mechanism=_MECHANISMS.index(name)) for name in deleted]
    with in_background():
        answer = cluster.ask_controller(
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "alterUserScramCredentials", deletions=old, upsertions=new
        )
    check(*answer.results)


def _credential(mechanism: str, text: str) -> tuple[int, str]:
    import re

    match = re.fullmatch(r"(?:iterations=(-?[0-9]*),)?password=(.*)", text)
    if match is None:
        raise illegal_argument(f"Invalid credential property {mechanism.replace('-', '_')}={text}")
    iterations = _ITERATIONS if match[1] in (None, "-1") else java_int(match[1])
    if iterations < _ITERATIONS:
        raise illegal_argument(f"Iterations {iterations} are too few: at least {_ITERATIONS} for {mechanism}")
    return iterations, match[2]


def _salted(mechanism: str, password: str, iterations: int) -> tuple[bytes, bytes]:
    import hashlib
    import secrets

    salt = secrets.token_bytes(_SALT_BYTES)
    digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    return salt, hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
