"""Settings of the nodes of a metadata quorum (process.roles, controller.quorum.*), with Kafka's checks."""

import os
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from kafka_compat.config.keys import ConfigError, TypedValues
from kafka_compat.config.listeners import Listener, check_advertised
from kafka_compat.config.quorum_names import (
    AUTO_JOIN,
    BOOTSTRAP_SERVERS,
    LISTENER_NAMES,
    PROTOCOLS,
    ROLES,
    VOTERS,
    controller_names,
)

Address = tuple[str, int]

_HOST_AND_PORT = re.compile(
    r"(?:[A-Za-z_]+://)?(?:\[(?P<ipv6>[0-9a-fA-F:.%\w]+)\]|(?P<host>[^\[\]:/\s]+)):(?P<port>\d+)"
)
_EXPECTED_VOTERS = "expected ID@HOST:PORT, separated by commas, for example 1@kafka-1:9093,2@kafka-2:9093"
_EXPECTED_SERVERS = "expected HOST:PORT, separated by commas, for example kafka-1:9093,kafka-2:9093"


class QuorumConfig(NamedTuple):
    """The settings of one node of a quorum. Times are in milliseconds, sizes in bytes."""

    node_id: int
    is_broker: bool
    is_controller: bool
    voters: Mapping[int, Address]
    """The addresses in controller.quorum.voters by node ID. Empty if the log names the voters (KIP-853)."""
    bootstrap_servers: tuple[Address, ...]
    listeners: tuple[Listener, ...]
    """The controller listeners that this node binds. Empty if the node is not a controller."""
    advertised: Mapping[str, Address]
    """The advertised addresses of `listeners`, by listener name. For a missing one, other nodes connect to
    the node's address in `voters`, or else to its host name and the bound port."""
    listener_name: str
    """The name of the listener for connections to controllers: the first of controller.listener.names."""
    security_protocol: str
    """The security protocol of `listener_name`."""
    sasl_mechanism: str
    election_timeout_ms: int
    fetch_timeout_ms: int
    election_backoff_max_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    append_linger_ms: int
    session_timeout_ms: int
    metadata_log_dir: str
    snapshot_max_new_record_bytes: int
    snapshot_max_interval_ms: int
    """Age of the last snapshot at which a new one is written, or 0 if age does not matter."""
    segment_bytes: int
    segment_ms: int
    max_retention_bytes: int
    """Size of the log above which it is deleted up to the latest snapshot. Negative: unlimited."""
    max_retention_ms: int
    """Age of the oldest records above which the log is deleted up to the latest snapshot. Negative:
    unlimited."""
    auto_join: bool
    """Whether this controller joins the voters in the metadata log by itself."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the node, in Kafka's order."""
        return tuple(
            name for name, has in (("broker", self.is_broker), ("controller", self.is_controller)) if has
        )

    @property
    def is_static(self) -> bool:
        """Whether controller.quorum.voters defines the voters."""
        return bool(self.voters)

    @property
    def sole_address(self) -> Address | None:
        """The address of this controller if the settings name no other one, or else None. Without
        controller.quorum.voters, this is an address of the loopback interface with the port of this node, as
        in the server.properties of Apache Kafka. Other brokers may nevertheless belong to the cluster.
        """
        if not self.is_controller:
            return None
        if self.voters:
            return self.voters.get(self.node_id) if len(self.voters) == 1 else None
        address = self.bootstrap_servers[0]
        is_own = len(self.bootstrap_servers) == 1 and address[1] in (each.port for each in self.listeners)
        return address if is_own and is_loopback(address[0]) else None


def is_loopback(host: str) -> bool:
    """Return whether a host of the settings is one of the loopback interface."""
    import ipaddress  # Imported here, because few brokers need it at startup.

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def parse_voters(text: str) -> dict[int, Address]:
    """Parse controller.quorum.voters. Raises ConfigError if an entry is invalid."""
    voters = {}
    for item in text.split(",") if text.strip() else []:
        entry = item.strip()
        node_id, at, address = entry.partition("@")
        if not at:
            raise _invalid(
                VOTERS,
                text,
                f"Invalid configuration value for {VOTERS}. Each entry should be in the form "
                "`{id}@{host}:{port}`.",
                _EXPECTED_VOTERS,
            )
        if not re.fullmatch(r"[+-]?\d+", node_id):
            raise _invalid(
                VOTERS, text, f"Failed to parse voter ID as an integer from {node_id}", _EXPECTED_VOTERS
            )
        parsed = _address(address)
        if parsed is None:
            raise _invalid(
                VOTERS,
                text,
                f"Failed to parse host name from entry {entry} for the configuration {VOTERS}. Each entry "
                "should be in the form `{id}@{host}:{port}`.",
                _EXPECTED_VOTERS,
            )
        if parsed[0] == "0.0.0.0":
            raise _invalid(VOTERS, text, f"Host string ({parsed[0]}) is not routeable", _EXPECTED_VOTERS)
        if not 0 < parsed[1] < 65536:
            raise _invalid(VOTERS, text, f"port out of range:{parsed[1]}", "expected a port from 1 to 65535")
        voters[int(node_id)] = parsed
    return voters


def parse_bootstrap_servers(text: str) -> tuple[Address, ...]:
    """Parse controller.quorum.bootstrap.servers. Raises ConfigError if an entry is invalid."""
    servers = []
    for item in text.split(",") if text.strip() else []:
        parsed = _address(item.strip())
        if parsed is None:
            raise _invalid(
                BOOTSTRAP_SERVERS,
                text,
                f"Failed to parse host name from {item.strip()} for the configuration {BOOTSTRAP_SERVERS}. "
                'Each entry should be in the form "{host}:{port}"',
                _EXPECTED_SERVERS,
            )
        if not 0 < parsed[1] < 65536:
            raise _invalid(
                BOOTSTRAP_SERVERS, text, f"port out of range:{parsed[1]}", "expected a port from 1 to 65535"
            )
        servers.append(parsed)
    return tuple(servers)


def quorum_config(
    config: TypedValues,
    static: Mapping[str, str],
    log_dir: str,
    listeners: tuple[Listener, ...],
    advertised: tuple[Listener, ...],
    protocols: Mapping[str, str],
) -> QuorumConfig:
    """Return the settings of this node of a quorum. Raises ConfigError if Kafka would reject them.

    `static` contains the values that are set, and `log_dir` is the first log directory. `listeners` are all
    listeners that the node binds, `advertised` those in advertised.listeners, and `protocols` the security
    protocols by listener name.
    """
    roles = config.list(ROLES)
    voters = parse_voters(static.get(VOTERS, ""))
    servers = parse_bootstrap_servers(static.get(BOOTSTRAP_SERVERS, ""))
    names = controller_names(config.str(LISTENER_NAMES))
    is_broker, is_controller = "broker" in roles, "controller" in roles
    _check_ids(config, static.get("node.id"), voters, servers, roles)
    _check_listeners(config, names, listeners, advertised, protocols)
    public = tuple(item for item in advertised if item.name in names)
    if config.bool(AUTO_JOIN) and not is_controller:
        raise _invalid(
            AUTO_JOIN,
            "true",
            f"{AUTO_JOIN} is only supported when {ROLES} contains the 'controller' role.",
            f"remove {AUTO_JOIN}, or add the role controller",
        )
    if is_controller:
        check_advertised(public, listeners, config.str("advertised.listeners") or "")
    metadata_log_dir = config.str("metadata.log.dir")
    return QuorumConfig(
        config.int("node.id"),
        is_broker,
        is_controller,
        voters,
        servers,
        tuple(item for item in listeners if item.name in names) if is_controller else (),
        {item.name: (item.host, item.port) for item in public},
        names[0],
        protocols[names[0]],
        config.str("sasl.mechanism.controller.protocol") or "GSSAPI",
        config.int("controller.quorum.election.timeout.ms"),
        config.int("controller.quorum.fetch.timeout.ms"),
        config.int("controller.quorum.election.backoff.max.ms"),
        config.int("controller.quorum.request.timeout.ms"),
        config.int("controller.quorum.retry.backoff.ms"),
        config.int("controller.quorum.append.linger.ms"),
        config.int("broker.session.timeout.ms"),
        os.path.abspath(os.path.expanduser(metadata_log_dir)) if metadata_log_dir else log_dir,
        config.int("metadata.log.max.record.bytes.between.snapshots"),
        config.int("metadata.log.max.snapshot.interval.ms"),
        config.int("metadata.log.segment.bytes"),
        config.int("metadata.log.segment.ms"),
        config.int("metadata.max.retention.bytes"),
        config.int("metadata.max.retention.ms"),
        config.bool(AUTO_JOIN) and not voters,
    )


def _check_ids(
    config: TypedValues,
    given: str | None,
    voters: Mapping[int, Address],
    servers: tuple[Address, ...],
    roles: Collection[str],
) -> None:
    if given is None or config.int("node.id") < 0:
        raise _invalid(
            "node.id",
            given,
            f"Missing configuration `node.id` which is required when `{ROLES}` is defined "
            "(i.e. when running in KRaft mode).",
            "expected a whole number of at least 0 that no other node of the cluster has",
        )
    if config.int("broker.id") != config.int("node.id"):
        raise _invalid(
            "node.id",
            given,
            "You must set `node.id` to the same value as `broker.id`.",
            "remove broker.id: node.id replaces it",
        )
    if not voters and not servers:
        raise _invalid(
            VOTERS,
            None,
            f"If using {ROLES}, either {BOOTSTRAP_SERVERS} must contain the set of bootstrap controllers or "
            f"{VOTERS} must contain a parseable set of controllers.",
            _EXPECTED_VOTERS,
        )
    node_id = config.int("node.id")
    shown = f"{VOTERS}=Set({', '.join(map(str, voters))})"
    if voters and "controller" in roles and node_id not in voters:
        raise _invalid(
            VOTERS,
            None,
            f"If {ROLES} contains the 'controller' role, the node id {node_id} must be included in the set "
            f"of voters {shown}",
            f"add {node_id}@HOST:PORT to {VOTERS}, or remove the role controller",
        )
    if "controller" not in roles and node_id in voters:
        raise _invalid(
            VOTERS,
            None,
            f"If {ROLES} contains just the 'broker' role, the node id {node_id} must not be included in the "
            f"set of voters {shown}",
            f"choose another node.id, or set {ROLES}=broker,controller",
        )


def _check_listeners(
    config: TypedValues,
    names: list[str],
    listeners: tuple[Listener, ...],
    advertised: tuple[Listener, ...],
    protocols: Mapping[str, str],
) -> None:
    """Raise ConfigError unless each role has its listeners and no others."""
    roles = config.list(ROLES)
    bound = [listener.name for listener in listeners]
    text = config.str(LISTENER_NAMES)
    if "controller" not in roles:
        if not names:
            raise _invalid(
                LISTENER_NAMES,
                text,
                f"{LISTENER_NAMES} must contain at least one value when running KRaft with just the broker "
                "role",
                "expected the name of the controllers' listener, for example CONTROLLER",
            )
        if any(name in bound for name in names):
            raise _invalid(
                LISTENER_NAMES,
                text,
                f"{LISTENER_NAMES} must not contain a value appearing in the 'listeners' configuration when "
                "running KRaft with just the broker role",
                "remove the controllers' listener from listeners",
            )
    if "broker" not in roles and any(name not in names for name in bound):
        raise _invalid(
            "listeners",
            config.str("listeners"),
            f"The listeners config must only contain KRaft controller listeners from {LISTENER_NAMES} when "
            f"{ROLES}=controller",
            f"expected listeners named in {LISTENER_NAMES}={text or ''}",
        )
    if "controller" in roles:
        if not any(name in bound for name in names):
            raise _invalid(
                LISTENER_NAMES,
                text,
                f"{LISTENER_NAMES} must contain at least one value appearing in the 'listeners' "
                "configuration when running the KRaft controller role",
                f"add CONTROLLER://:9093 to listeners, and set {LISTENER_NAMES}=CONTROLLER",
            )
        if "broker" not in roles and any(name not in bound for name in names):
            raise _invalid(
                LISTENER_NAMES,
                text,
                f"{LISTENER_NAMES} must only contain values appearing in the 'listeners' configuration when "
                "running the KRaft controller role",
                f"expected names of listeners: {', '.join(bound)}",
            )
    for name in names if "controller" not in roles else names[:1]:
        if name not in protocols:
            raise _invalid(
                PROTOCOLS,
                config.str(PROTOCOLS),
                f"Controller listener with name {name} defined in {LISTENER_NAMES} not found in "
                f"{PROTOCOLS}  (an explicit security mapping for each controller listener is required if "
                f"{PROTOCOLS} is non-empty, or if there are security protocols other than PLAINTEXT in "
                "use)",
                f"add {name}:PLAINTEXT, or another protocol",
            )
    if "broker" in roles:
        public = [item.name for item in advertised or listeners]
        if all(name in names for name in public):
            raise _invalid(
                "advertised.listeners" if advertised else "listeners",
                config.str("advertised.listeners"),
                "There must be at least one broker advertised listener. Perhaps all listeners appear in "
                f"{LISTENER_NAMES}?",
                "add the clients' listener, for example PLAINTEXT://:9092",
            )


def _address(text: str) -> Address | None:
    """Parse HOST:PORT. The port may be out of range. Kafka permits a protocol before the host."""
    found = _HOST_AND_PORT.fullmatch(text)
    return (found["ipv6"] or found["host"], int(found["port"])) if found else None


def _invalid(name: str, value: str | None, message: str, expected: str) -> ConfigError:
    return ConfigError(name, value, message, expected, whole=True)
