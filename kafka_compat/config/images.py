"""What Kafka's container images make of their environment besides settings by name: listeners that only
advertised.listeners tells, KRaft's controller listener, files with keys and passwords."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SECRETS: Final = "/etc/kafka/secrets"
"""Where the images look for files that are named without a folder."""

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
    """`settings` with what KAFKA_SSL_KEYSTORE_FILENAME and KAFKA_SSL_KEYSTORE_CREDENTIALS (a file with the
    password) and their like stand for. OSError when such a file cannot be read."""
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
    """`settings` of an environment with the listeners that they imply; `bound` is what files say of
    `listeners`.

    A node of KRaft's has a listener CONTROLLER without saying so, as in Bitnami's image. Where there is
    advertised.listeners but no listeners, each that is advertised is bound at its port, as in Confluent's. If
    they have the very names that files bind, either their ports were meant, as there, or the files'
    (published by another port, as with Bitnami's): both are then served.
    """
    found = dict(settings)
    if "process.roles" in found:
        found.setdefault("controller.listener.names", "CONTROLLER")
    if "listeners" in found or not found.get("advertised.listeners", "").strip():
        return found
    advertised = _ports(found["advertised.listeners"])
    given = _ports(bound or "")
    if set(advertised) != set(given):
        found["listeners"] = ",".join(f"{name}://:{port}" for name, port in advertised.items())
        return found
    listeners, told, protocols = [bound or ""], [found["advertised.listeners"]], []
    for item in found["advertised.listeners"].split(","):
        name, _, address = item.strip().partition("://")
        port = advertised[name]
        if port not in given.values() and port.isdigit() and int(port) >= _FIRST_UNPRIVILEGED_PORT:
            listeners.append(f"{name}_{port}://:{port}")
            told.append(f"{name}_{port}://{address}")
            protocols.append(f"{name}_{port}:{_protocol(found, name)}")
    if protocols:
        given_map = found.get("listener.security.protocol.map")
        names = [given_map] if given_map else [f"{name}:{name}" for name in given]
        found["listener.security.protocol.map"] = ",".join([*names, *protocols])
        found["listeners"], found["advertised.listeners"] = ",".join(listeners), ",".join(told)
    return found


def _ports(listeners: str) -> dict[str, str]:
    """Name to port, as far as the text is one of listeners; what is not is told by whoever parses it."""
    found = {}
    for item in filter(None, (item.strip() for item in listeners.split(","))):
        name, _, address = item.partition("://")
        found[name] = address.rpartition(":")[2]
    return found


def _protocol(settings: Mapping[str, str], name: str) -> str:
    """The security protocol of a listener of that name."""
    for item in settings.get("listener.security.protocol.map", "").split(","):
        mapped, _, protocol = item.strip().partition(":")
        if mapped == name:
            return protocol
    return name
