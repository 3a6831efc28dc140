"""kafka-configs: settings of topics and brokers, quotas, SCRAM credentials, loggers."""

from __future__ import annotations

import sys
from typing import Any, Final

from kafka_compat.tools.admin import connected, settings_of
from kafka_compat.tools.failure import illegal_argument, of_client
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


def run(arguments: list[str]) -> int:
    """The exit code."""
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
    """Whose settings: kinds, and names of which "" is the default of a kind."""

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
        options.usage_error("Command must include exactly one action: --describe, --alter")
    options.forbid("describe", "add-config", "delete-config")
    types = entities.types
    twice = [kind for index, kind in enumerate(types) if kind in types[:index]]
    if twice:
        raise illegal_argument(f"Duplicate entity type(s) specified: {','.join(twice)}")
    to_brokers = options.has("bootstrap-server") or options.has("bootstrap-controller")
    if not to_brokers and not options.has("zookeeper"):
        raise illegal_argument("Either --bootstrap-server or --bootstrap-controller must be specified.")
    allowed = TYPES if to_brokers else _OF_ZOOKEEPER
    where = "--bootstrap-server or --bootstrap-controller" if to_brokers else "--zookeeper"
    for kind in types:
        if kind not in allowed:
            raise illegal_argument(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(allowed)} "
                f"with a {where} argument"
            )
    if not types:
        raise illegal_argument("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise illegal_argument("Only 'users' and 'clients' entity types may be specified together")
    generic = ("entity-name", "entity-type", "entity-default")
    if any(map(options.has, generic)) and entities.by_flags:
        raise illegal_argument(
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags"
        )
    _check_connection(options)
    _check_names(options, entities)
    if options.has("alter"):
        _check_alter(options, entities)


def _check_connection(options: Options) -> None:
    servers, controllers = options.has("bootstrap-server"), options.has("bootstrap-controller")
    if servers and controllers and not options.has("zookeeper"):
        raise illegal_argument("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    if (servers or controllers) and options.has("zookeeper"):
        raise illegal_argument(
            "Only one of --bootstrap-server, --boostrap-controller, and --zookeeper can be specified"
        )
    if options.has("all") and options.has("zookeeper"):
        raise illegal_argument("--bootstrap-server must be specified for --all")
    if options.has("zk-tls-config-file") and not options.has("zookeeper"):
        raise illegal_argument(
            "Only the --zookeeper option can be used with the --zk-tls-config-file option."
        )
    if options.has("zookeeper"):
        raise illegal_argument("--zookeeper is not supported by this command: give --bootstrap-server")


def _check_names(options: Options, entities: _Entities) -> None:
    kind = entities.types[0]
    named = any(entities.names)
    if named and {"brokers", "broker-loggers"} & {*entities.types}:
        for flag in ("entity-name", "broker", "broker-logger"):
            if options.has(flag) and not is_integer(options.given(flag)):
                raise illegal_argument(
                    f"The entity name for {kind} must be a valid integer broker id, but it is: "
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
                        f"The entity name for {kind} must be a valid IP or resolvable host, but it is: "
                        f"{options.given(flag)}"
                    ) from None
    if options.has("describe") and "broker-loggers" in entities.types and not named:
        raise illegal_argument(
            f"An entity name must be specified with --describe of {','.join(entities.types)}"
        )


def _check_alter(options: Options, entities: _Entities) -> None:
    if {"users", "clients", "brokers", "ips"} & {*entities.types}:
        if not entities.names:
            raise illegal_argument(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers "
                "or ips"
            )
    elif not any(entities.names):
        raise illegal_argument(f"An entity name must be specified with --alter of {','.join(entities.types)}")
    if options.has("add-config") and options.has("add-config-file"):
        raise illegal_argument("Only one of --add-config or --add-config-file must be specified")
    if not any(map(options.has, ("add-config", "add-config-file", "delete-config"))):
        raise illegal_argument(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with "
            "--alter"
        )


def is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _run(options: Options, entities: _Entities) -> None:
    where = "bootstrap-server" if options.has("bootstrap-server") else "bootstrap-controller"
    settings = settings_of(options)
    cluster = connected(options.given(where), settings)
    if options.has("alter") and len(entities.types) != len(entities.names):
        raise illegal_argument("An entity name must be specified for every entity type")
    with cluster:
        if options.has("describe"):
            _describe(cluster, options, entities)
        else:
            _alter(cluster, options, entities)


def _describe(cluster: Any, options: Options, entities: _Entities) -> None:
    kind = entities.types[0]
    if kind in ("users", "clients", "ips"):
        from kafka_compat.tools.config_quotas import describe_quotas

        describe_quotas(cluster, options, entities.types, entities.names)
    else:
        from kafka_compat.tools.config_resources import describe_resources

        describe_resources(cluster, options, kind, entities.names)


def _alter(cluster: Any, options: Options, entities: _Entities) -> None:
    kind, name = entities.types[0], entities.names[0]
    added = added_configs(options)
    deleted = [item.strip() for item in options.values("delete-config")]
    if kind in ("users", "clients", "ips"):
        from kafka_compat.tools.config_quotas import alter_quotas

        alter_quotas(cluster, entities.types, entities.names, added, deleted)
    else:
        from kafka_compat.tools.config_resources import alter_resource

        alter_resource(cluster, kind, name, added, deleted)
    if options.as_json:
        from kafka_compat.tools import show

        show.as_json({"type": kind, "name": name, "added": sorted(added), "deleted": deleted})
    elif name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def added_configs(options: Options) -> dict[str, str]:
    """Those of --add-config and --add-config-file. Raises Failure."""
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
                "requirement failed: Invalid entity config: all configs to be added must be in the format "
                '"key=val" or  "key=[val1,val2]" to group values which contain commas.'
            )
        found |= {name.strip(): re.sub(r"\[?\]?", "", value).strip() for name, value in pairs}
    for name in found:
        if re.fullmatch("[a-zA-Z0-9._-]*", name) is None:
            raise illegal_argument(f"Invalid character found for config key: {name}")
    return found
