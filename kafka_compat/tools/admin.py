"""Connect a command to the cluster. All commands share the same connection flags."""

import socket
from collections.abc import Callable
from typing import Final, TypeVar

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.connection_settings import WrongSettings, dialled, read_settings
from kafka_compat.tools.failure import Failure, log
from kafka_compat.tools.options import Options

T = TypeVar("T")

TIMEOUT_MS: Final = 60_000
"""Maximum time for a broker to process a request, in milliseconds."""
_LOGGER = "org.apache.kafka.clients.NetworkClient"


def cluster_of(options: Options) -> Cluster:
    """Create a cluster client from the flags for bootstrap servers, a file with client settings, and
    individual settings. Raises Failure if a setting is invalid.
    """
    return connected(options.given("bootstrap-server"), settings_of(options))


def settings_of(
    options: Options, config: str = "command-config", properties: str = "command-property"
) -> dict[str, str]:
    """Return the file's client settings, overridden by flags. Raises Failure if the file is unreadable."""
    path = options.value(config)
    return ({} if path is None else settings_in(path)) | options.pairs(properties)


def settings_in(path: str) -> dict[str, str]:
    """Read client settings from a file. Raises Failure if the file cannot be read."""
    try:
        return read_settings(path)
    except FileNotFoundError:
        raise Failure("java.nio.file.NoSuchFileException", path) from None
    except (OSError, WrongSettings) as error:
        raise Failure("java.io.IOException", str(error)) from None


def parsed(parse: Callable[[dict[str, str]], T], settings: dict[str, str]) -> T:
    """Parse the settings of a producer, consumer or fetcher. Raises Failure if a value is invalid."""
    try:
        return parse(settings)
    except ValueError as error:
        raise Failure("org.apache.kafka.common.config.ConfigException", str(error)) from error


def dialling(bootstrap: str, settings: dict[str, str], client_id: str, who: str) -> Cluster:
    """Create an unconnected cluster client with the name `who` in logs. Raises WrongSettings if a setting is
    invalid.
    """
    return Cluster(
        bootstrap, settings, client_id=client_id, warn=lambda text: log("WARN", f"[{who}] {text}", _LOGGER)
    )


def consuming(bootstrap: str, settings: dict[str, str]) -> Cluster:
    """Create an unconnected cluster client for a consumer. Raises WrongSettings for invalid settings."""
    client_id = settings["client.id"]
    who = f"Consumer clientId={client_id}, groupId={settings.get('group.id', 'null')}"
    given = {"request.timeout.ms": "305000", "default.api.timeout.ms": "310000"} | settings
    return dialling(bootstrap, given, client_id, who)


def connected(bootstrap: str, settings: dict[str, str], client_id: str = "adminclient-1") -> Cluster:
    """Create an unconnected cluster client. Raises the admin client's Failure for invalid settings."""
    try:
        _check_bootstrap(bootstrap)
        return dialling(bootstrap, settings, client_id, f"AdminClient clientId={client_id}")
    except WrongSettings as error:
        cause = Failure("org.apache.kafka.common.config.ConfigException", str(error))
        text = "Failed to create new KafkaAdminClient"
        raise Failure("org.apache.kafka.common.KafkaException", text, cause) from None


def _check_bootstrap(bootstrap: str) -> None:
    """Raise WrongSettings, with the messages of Kafka's clients, if bootstrap.servers is invalid."""
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
        raise WrongSettings("No host in bootstrap.servers can be resolved")


def valid_addresses(text: str) -> bool:
    """Return whether all addresses have a host and a port. Kafka's commands check this first."""
    items = text.split(",")
    return all(item.rpartition(":")[0] and item.rpartition(":")[2].isdecimal() for item in items)
