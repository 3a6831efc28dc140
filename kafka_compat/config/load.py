"""Settings from properties files, from the environment if requested, and from the command line, which takes
precedence. For the environment, the conventions of Kafka's container images also apply: secrets in files,
implied listeners and Java options.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kafka_compat.config.broker_config import BrokerConfig
from kafka_compat.config.keys import ConfigError
from kafka_compat.config.listeners import PUBLISHED
from kafka_compat.config.properties import parse_properties
from kafka_compat.config.quorum_names import (
    BOOTSTRAP_SERVERS,
    LISTENER_NAMES,
    ROLES,
    VOTERS,
    controller_names,
    wants_quorum,
)

SECRETS: Final = "/etc/kafka/secrets"
"""Directory that contains the secret files of Kafka's container images."""

_SECRET_FILES = {
    "ssl.keystore.filename": "ssl.keystore.location",
    "ssl.truststore.filename": "ssl.truststore.location",
}
_PASSWORD_FILES = {
    "ssl.keystore.credentials": "ssl.keystore.password",
    "ssl.key.credentials": "ssl.key.password",
    "ssl.truststore.credentials": "ssl.truststore.password",
}
_FIRST_UNPRIVILEGED_PORT = 1024


def with_secrets(settings: Mapping[str, str], secrets: str = SECRETS) -> dict[str, str]:
    """Convert the secret files of container images to Kafka's settings. For example, ssl.keystore.credentials
    names a file that contains ssl.keystore.password. Raises OSError if a file cannot be read.
    """
    found = {}
    for name, value in settings.items():
        if name in _SECRET_FILES:
            found[_SECRET_FILES[name]] = f"{secrets}/{value}"
        elif name in _PASSWORD_FILES:
            with open(f"{secrets}/{value}", encoding="utf-8") as file:
                found[_PASSWORD_FILES[name]] = file.read().rstrip("\r\n")
        else:
            found[name] = value
    return found


def with_listeners(settings: Mapping[str, str], bound: str | None) -> dict[str, str]:
    """Return settings from the environment, with the listeners that they imply.

    `bound` is the `listeners` setting in the files. If advertised.listeners is set but listeners is not, each
    advertised listener is bound to its port, as in Confluent's image. If the files bind listeners with
    exactly the same names, as in Bitnami's image, clients may use either the advertised ports or the ports in
    the files, so both are bound.
    """
    found = dict(settings)
    if "listeners" in found or not found.get("advertised.listeners", "").strip():
        return found
    advertised = _ports(found["advertised.listeners"])
    given = _ports(bound or "")
    if set(advertised) != set(given):
        found["listeners"] = ",".join(f"{name}://:{port}" for name, port in advertised.items())
        return found
    listeners, public, protocols = [bound or ""], [found["advertised.listeners"]], []
    for item in found["advertised.listeners"].split(","):
        name, _, address = item.strip().partition("://")
        port = advertised[name]
        if port not in given.values() and port.isdigit() and int(port) >= _FIRST_UNPRIVILEGED_PORT:
            listeners.append(f"{name}_{port}://:{port}")
            public.append(f"{name}_{port}://{address}")
            protocols.append(f"{name}_{port}:{_protocol(found, name)}")
    if protocols:
        given_map = found.get("listener.security.protocol.map")
        names = [given_map] if given_map else [f"{name}:{name}" for name in given]
        found["listener.security.protocol.map"] = ",".join([*names, *protocols])
        found["listeners"], found["advertised.listeners"] = ",".join(listeners), ",".join(public)
    return found


def with_quorum(settings: Mapping[str, str], files: Mapping[str, str]) -> dict[str, str]:
    """Return settings from the environment, with those of a quorum that container images imply.

    `files` are the settings in files. The controllers' listener is called CONTROLLER, and has the port of
    this node in controller.quorum.voters, or 9093. A node with both roles and no other nodes in its settings
    has the ID 1 (unless set), and is the only voter.
    """
    found = dict(settings)
    static = {**files, **found}
    if ROLES not in found or not wants_quorum(static):
        return found
    names = static.get(LISTENER_NAMES) or found.setdefault(LISTENER_NAMES, "CONTROLLER")
    roles = found[ROLES].replace(" ", "").split(",")
    if "controller" not in roles:
        return found
    known = static.get(VOTERS) or static.get(BOOTSTRAP_SERVERS)
    node_id = static.get("node.id", static.get("broker.id"))
    if node_id is None and not known:
        node_id = found["node.id"] = "1"
    bound = static.get("listeners", "")
    ports = _ports(bound)
    name = names.split(",")[0].strip()
    if name not in ports:
        entries = (item.strip().partition("@") for item in static.get(VOTERS, "").split(","))
        port = next((address.rpartition(":")[2] for voter, _, address in entries if voter == node_id), "9093")
        own = [bound] if bound and "broker" in roles else []
        if own and "listeners" not in found:
            # The listeners of the environment would replace these addresses of the files.
            for setting in ("advertised.listeners", PUBLISHED):
                if files.get(setting):
                    found.setdefault(setting, files[setting])
        found["listeners"] = ",".join([*own, f"{name}://:{port}"])
        ports[name] = port
    if not known:
        found[VOTERS] = f"{node_id}@localhost:{ports[name]}"
    return found


def _with_port(static: Mapping[str, str], port: int) -> str:
    """Return the listener of --port, and the controller listeners in `static`."""
    controllers = controller_names(static.get(LISTENER_NAMES)) if wants_quorum(static) else ()
    items = [item.strip() for item in static.get("listeners", "").split(",")]
    kept = [item for item in items if item.partition("://")[0].upper() in controllers]
    return ",".join([f"PLAINTEXT://127.0.0.1:{port}", *kept])


def _ports(listeners: str) -> dict[str, str]:
    """Return the port for each listener name, without checks: parse_listeners rejects malformed listeners."""
    found = {}
    for item in filter(None, (item.strip() for item in listeners.split(","))):
        name, _, address = item.partition("://")
        found[name] = address.rpartition(":")[2]
    return found


def _protocol(settings: Mapping[str, str], name: str) -> str:
    for item in settings.get("listener.security.protocol.map", "").split(","):
        mapped, _, protocol = item.strip().partition(":")
        if mapped == name:
            return protocol
    return name


_JAAS_FILES = ("kafka.compat.sasl.jaas.file", "kafka.compat.zookeeper.sasl.jaas.file")
_SETTINGS = {
    "java.security.auth.login.config": _JAAS_FILES,
    "zookeeper.client.secure": ("zookeeper.ssl.client.enable",),
    "zookeeper.clientCnxnSocket": ("zookeeper.clientCnxnSocket",),
    "zookeeper.sasl.client": ("kafka.compat.zookeeper.sasl.enable",),
    "zookeeper.sasl.clientconfig": ("kafka.compat.zookeeper.sasl.jaas.section",),
    "zookeeper.ssl.ciphersuites": ("zookeeper.ssl.cipher.suites",),
    "zookeeper.ssl.crl": ("zookeeper.ssl.crl.enable",),
    "zookeeper.ssl.enabledProtocols": ("zookeeper.ssl.enabled.protocols",),
    "zookeeper.ssl.hostnameVerification": ("zookeeper.ssl.endpoint.identification.algorithm",),
    "zookeeper.ssl.keyStore.location": ("zookeeper.ssl.keystore.location",),
    "zookeeper.ssl.keyStore.password": ("zookeeper.ssl.keystore.password",),
    "zookeeper.ssl.keyStore.type": ("zookeeper.ssl.keystore.type",),
    "zookeeper.ssl.ocsp": ("zookeeper.ssl.ocsp.enable",),
    "zookeeper.ssl.protocol": ("zookeeper.ssl.protocol",),
    "zookeeper.ssl.trustStore.location": ("zookeeper.ssl.truststore.location",),
    "zookeeper.ssl.trustStore.password": ("zookeeper.ssl.truststore.password",),
    "zookeeper.ssl.trustStore.type": ("zookeeper.ssl.truststore.type",),
}
"""Maps properties of Java and its ZooKeeper client to the equivalent settings."""


def settings_from_java_options(options: str) -> dict[str, str]:
    """Return the settings in a string of JVM options. Unknown options are ignored."""
    import shlex

    settings = {}
    try:
        words = shlex.split(options)
    except ValueError:
        # If a quotation mark is unmatched, split at spaces. Kafka's start script would fail here.
        words = options.split()
    for word in words:
        name, _, value = word.removeprefix("-D").partition("=")
        if not word.startswith("-D"):
            continue
        for setting in _SETTINGS.get(name, ()):
            if setting == "zookeeper.ssl.endpoint.identification.algorithm":
                value = "HTTPS" if value.lower() == "true" else ""
            settings[setting] = value
    return settings


class ConfigFileError(Exception):
    """Raised for an unreadable file or an invalid setting, with the location, the error and a valid value."""


def load(
    paths: Sequence[str] = (),
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    port: int | None = None,
) -> BrokerConfig:
    """Load settings from files, `environment` (None: not used) and `overrides` (each `name=value`). Later
    sources and files take precedence. If `port` is given, it replaces the listeners in files and environment,
    except for controller listeners. Raises ConfigFileError if a file or setting is invalid.
    """
    static: dict[str, str] = {}
    origin: dict[str, str] = {}
    ambiguous: dict[str, str] = {}
    for path in paths:
        try:
            properties = parse_properties(_read(path))
        except OSError as error:
            raise ConfigFileError(f"cannot read {path}: {error.strerror or error}") from error
        except ValueError as error:
            raise ConfigFileError(f"{path}: {error}") from error
        _forget_advertised(static, properties)
        for name, (value, line, in_utf8) in properties.items():
            static[name] = value
            origin[name] = f"{path}, line {line}"
            # Keep only the names of these settings for the message: their values may be passwords.
            if in_utf8 is None:
                ambiguous.pop(name, None)
            else:
                ambiguous[name] = f"{name} ({path}, line {line})"
    if environment is not None:
        from kafka_compat.config.environment import (
            cluster_id_from_environment,
            settings_from_environment,
            topics_from_environment,
        )

        try:
            given = with_secrets(settings_from_environment(environment))
        except OSError as error:
            raise ConfigFileError(
                f"environment: cannot read {error.filename}: {error.strerror or error}"
            ) from error
        given = with_listeners(given, static.get("listeners"))
        given = with_quorum(given, static)
        _forget_advertised(static, given)
        for name, value in given.items():
            static[name] = value
            origin[name] = "environment"
        for name, value in settings_from_java_options(environment.get("KAFKA_OPTS", "")).items():
            # As in Kafka, a JVM property does not override a setting from a file or the environment.
            if name not in static:
                static[name] = value
                origin[name] = "KAFKA_OPTS"
    if port is not None:
        # The advertised addresses of files and environment do not contain this port.
        addresses = ("listeners", _with_port(static, port)), ("advertised.listeners", ""), (PUBLISHED, "")
        for name, value in addresses:
            static[name], origin[name] = value, "--port"
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals or not name.strip():
            raise ConfigFileError(f"--override {override}: expected name=value, for example num.partitions=3")
        static[name.strip()] = value
        origin[name.strip()] = "--override"
    for name, value in static.items():
        _check_text(f"{origin[name]}: {name}", value)
    try:
        config = BrokerConfig(static)
        config.ambiguous = tuple(ambiguous[name] for name in ambiguous if origin[name] in ambiguous[name])
        if environment is not None:
            config.create_topics = topics_from_environment(environment)
            config.cluster_id = cluster_id_from_environment(environment)
    except ConfigError as error:
        where = origin.get(error.name)
        raise ConfigFileError((f"{where}: " if where else "") + error.in_full) from error
    except ValueError as error:
        raise ConfigFileError(str(error)) from error
    for path in config.log_dirs:
        _check_text("log.dirs", path)
    return config


def _check_text(what: str, value: str) -> None:
    """Raise ConfigFileError if a value is not UTF-8, because no response to a client could contain it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        shown = value.encode("utf-8", "backslashreplace").decode()
        raise ConfigFileError(f"{what}={shown} is not UTF-8") from None


def _forget_advertised(static: dict[str, str], over: Mapping[str, object]) -> None:
    """If the later source `over` sets listeners, drop the advertised and published addresses of earlier
    sources.
    """
    if "listeners" in over:
        static.pop("advertised.listeners", None)
        static.pop(PUBLISHED, None)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
