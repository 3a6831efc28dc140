"""Named listeners (KIP-103): the addresses that a broker binds and advertises."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from kafka_compat.config.keys import ConfigError

_LISTENER = re.compile(
    r"(?P<name>[^:/\s]+)://(?:\[(?P<ipv6>[0-9a-fA-F:.%\w]+)\]|(?P<host>[^\[\]:/\s]*)):(?P<port>-?\d+)"
)
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_EXPECTED = "expected NAME://HOST:PORT, separated by commas, for example PLAINTEXT://127.0.0.1:9092"


class Listener(NamedTuple):
    """The address of a listener. An empty host means all interfaces, and port 0 any free port."""

    name: str
    host: str
    port: int
    security_protocol: str


def parse_protocol_map(text: str) -> dict[str, str]:
    """Parse listener.security.protocol.map (`CLIENT:PLAINTEXT,…`), and return protocols by listener name."""
    protocols = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        name, colon, protocol = item.rpartition(":")
        if not colon or protocol.strip().upper() not in _PROTOCOLS:
            raise ConfigError(
                "listener.security.protocol.map",
                text,
                f"{item} does not name a security protocol",
                f"expected NAME:PROTOCOL, separated by commas; protocols: {', '.join(_PROTOCOLS)}",
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def parse_listeners(setting: str, text: str, protocols: dict[str, str]) -> tuple[Listener, ...]:
    """Parse the listeners in `text`. Raises ConfigError, which names `setting`, if `text` is invalid."""
    listeners = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        match = _LISTENER.fullmatch(item)
        if not match:
            raise ConfigError(setting, text, f"Unable to parse {item} to a broker endpoint", _EXPECTED)
        name, port = match["name"].upper(), int(match["port"])
        if not 0 <= port <= 65535:
            raise ConfigError(setting, text, f"{port} is not a port", "expected a port from 0 to 65535")
        if name not in protocols:
            raise ConfigError(
                setting,
                text,
                f"No security protocol defined for listener {name}",
                f"name its protocol in listener.security.protocol.map, for example {name}:PLAINTEXT",
            )
        listeners.append(Listener(name, match["ipv6"] or match["host"], port, protocols[name]))
    return tuple(listeners)


PUBLISHED: Final = "kafka.compat.published.listeners"
"""Setting with the addresses at which clients outside the broker's networks reach its listeners."""


def with_host_name(advertised: tuple[Listener, ...]) -> tuple[Listener, ...]:
    """Return the listeners with this machine's host name in place of an empty host, as Kafka advertises them
    in KRaft mode.
    """
    if all(listener.host for listener in advertised):
        return advertised
    import socket  # Imported here, because few brokers need it for their settings.

    own = socket.gethostname()
    return tuple(each if each.host else each._replace(host=own) for each in advertised)


def check_bound(listeners: Iterable[Listener], text: str) -> None:
    """Raise ConfigError unless a broker can bind all of these listeners."""
    names: set[str] = set()
    ports: dict[int, Listener] = {}
    for listener in listeners:
        if listener.name in names:
            raise ConfigError("listeners", text, "Each listener must have a different name", _EXPECTED)
        twin = ports.get(listener.port) if listener.port else None
        # An IPv4 address and an IPv6 address may have the same port (KIP-797).
        if twin and (":" in twin.host) == (":" in listener.host):
            raise ConfigError("listeners", text, "Each listener must have a different port", _EXPECTED)
        names.add(listener.name)
        ports[listener.port] = listener
    if not names:
        raise ConfigError("listeners", text, "At least one listener is needed", _EXPECTED)


def check_advertised(
    advertised: Iterable[Listener],
    bound: Iterable[Listener],
    text: str,
    setting: str = "advertised.listeners",
) -> None:
    """Raise ConfigError unless every advertised listener in `setting` is bound and has a usable address."""
    names = [listener.name for listener in bound]
    for listener in advertised:
        if listener.name not in names:
            raise ConfigError(
                setting,
                text,
                f"{listener.name} is not among the listeners",
                f"expected names of listeners: {', '.join(names)}",
            )
        if listener.host in ("", "0.0.0.0", "::"):
            raise ConfigError(
                setting,
                text,
                f"clients cannot connect to {listener.host or 'an empty host'}",
                "expected the host name or address at which clients reach this broker",
            )
        if listener.port == 0:
            raise ConfigError(setting, text, "clients cannot connect to port 0", _EXPECTED)
