"""The way of a command to the cluster: the flags that all of them have for it."""

from __future__ import annotations

import socket

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.connection_settings import WrongSettings, dialled, read_settings
from kafka_compat.tools.failure import Failure, log
from kafka_compat.tools.options import Options

_LOGGER = "org.apache.kafka.clients.NetworkClient"


def cluster_of(
    options: Options,
    *,
    bootstrap: str = "bootstrap-server",
    config: str = "command-config",
    properties: str = "command-property",
    client_id: str = "adminclient-1",
) -> Cluster:
    """Of the flags with these names: where to begin, a file with a client's settings, single settings. Raises
    Failure.
    """
    return connected(options.given(bootstrap), settings_of(options, config, properties), client_id)


def settings_of(
    options: Options, config: str = "command-config", properties: str = "command-property"
) -> dict[str, str]:
    """A client's settings: those of the file, then those on the command line. Raises Failure."""
    path = options.value(config)
    return ({} if path is None else settings_in(path)) | options.pairs(properties)


def settings_in(path: str) -> dict[str, str]:
    """A client's settings in a file. Raises Failure."""
    try:
        return read_settings(path)
    except FileNotFoundError:
        raise Failure("java.nio.file.NoSuchFileException", path) from None
    except (OSError, WrongSettings) as error:
        raise Failure("java.io.IOException", str(error)) from None


def connected(bootstrap: str, settings: dict[str, str], client_id: str = "adminclient-1") -> Cluster:
    """A cluster that is not dialled yet. Raises Failure as Kafka's admin client does."""
    try:
        _check_bootstrap(bootstrap)
        return Cluster(
            bootstrap,
            settings,
            client_id=client_id,
            warn=lambda text: log("WARN", f"[AdminClient clientId={client_id}] {text}", _LOGGER),
        )
    except WrongSettings as error:
        cause = Failure("org.apache.kafka.common.config.ConfigException", str(error))
        text = "Failed to create new KafkaAdminClient"
        raise Failure("org.apache.kafka.common.KafkaException", text, cause) from None


def _check_bootstrap(bootstrap: str) -> None:
    """Raises WrongSettings with the texts of Kafka's clients."""
    resolved = False
    for item in filter(None, (item.strip() for item in bootstrap.split(","))):
        host, _, port = item.rpartition(":")
        if not host or not port.isdecimal():
            raise WrongSettings(f"Invalid url in bootstrap.servers: {item}")
        try:
            socket.getaddrinfo(dialled(host.strip("[]")), int(port), type=socket.SOCK_STREAM)
            resolved = True
        except (OSError, UnicodeError):
            text = (
                f"Couldn't resolve server {item} from bootstrap.servers as DNS resolution failed for {host}"
            )
            log("WARN", text, "org.apache.kafka.clients.ClientUtils")
    if not resolved:
        raise WrongSettings("No resolvable bootstrap urls given in bootstrap.servers")


def valid_addresses(text: str) -> bool:
    """Whether all of a list have a host and a port, as Kafka's commands check it first."""
    items = text.split(",")
    return all(item.rpartition(":")[0] and item.rpartition(":")[2].isdecimal() for item in items)
