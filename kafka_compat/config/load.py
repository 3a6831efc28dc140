"""Where settings come from: properties files, the environment when asked, and the command line, the last
winning."""

from collections.abc import Mapping, Sequence

from kafka_compat.config.broker_config import BrokerConfig
from kafka_compat.config.environment import settings_from_environment, topics_from_environment
from kafka_compat.config.images import with_listeners, with_secrets
from kafka_compat.config.java_options import settings_from_java_options
from kafka_compat.config.keys import ConfigError
from kafka_compat.config.properties import parse_properties


class ConfigFileError(Exception):
    """A configuration that cannot be read or holds a wrong value; the text says where, what, and what would
    be right."""


def load(
    paths: Sequence[str] = (), overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> BrokerConfig:
    """The settings of the files at `paths`, the last winning, over them those of `environment` (None: not
    asked), over them `overrides` (each `name=value`). Raises ConfigFileError and touches nothing.
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
            # Neither value is told: it may be a password.
            if in_utf8 is None:
                ambiguous.pop(name, None)
            else:
                ambiguous[name] = f"{name} ({path}, line {line})"
    if environment is not None:
        try:
            told = with_secrets(settings_from_environment(environment))
        except OSError as error:
            raise ConfigFileError(
                f"environment: cannot read {error.filename}: {error.strerror or error}"
            ) from error
        told = with_listeners(told, static.get("listeners"))
        _forget_advertised(static, told)
        for name, value in told.items():
            static[name] = value
            origin[name] = "environment"
        for name, value in settings_from_java_options(environment.get("KAFKA_OPTS", "")).items():
            # As in Kafka, properties of the JVM count where no setting says otherwise.
            if name not in static:
                static[name] = value
                origin[name] = "KAFKA_OPTS"
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals or not name.strip():
            raise ConfigFileError(f"--override {override}: expected name=value, for example num.partitions=3")
        static[name.strip()] = value
        origin[name.strip()] = "--override"
    try:
        config = BrokerConfig(static)
        config.ambiguous = tuple(ambiguous[name] for name in ambiguous if origin[name] in ambiguous[name])
        if environment is not None:
            config.create_topics = topics_from_environment(environment)
    except ConfigError as error:
        where = origin.get(error.name)
        raise ConfigFileError((f"{where}: " if where else "") + error.in_full) from error
    except ValueError as error:
        raise ConfigFileError(str(error)) from error
    return config


def _forget_advertised(static: dict[str, str], over: Mapping[str, object]) -> None:
    """Those of a file before, such as a container image's, were for the listeners that are replaced now."""
    if "listeners" in over:
        static.pop("advertised.listeners", None)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
