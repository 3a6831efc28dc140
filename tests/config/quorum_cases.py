"""Settings of quorum nodes with Apache Kafka's error messages, or None where it accepts them."""

from __future__ import annotations

from typing import Final, NamedTuple

COMBINED: Final[dict[str, str | None]] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": "/tmp/kafka-logs",
}
BROKER: Final = {**COMBINED, "process.roles": "broker", "node.id": "4", "listeners": "PLAINTEXT://:9092"}
CONTROLLER: Final = {
    **COMBINED,
    "process.roles": "controller",
    "listeners": "CONTROLLER://:9093",
    "advertised.listeners": None,
}

_NO_NODE_ID = (
    "Missing configuration `node.id` which is required when `process.roles` is defined (i.e. when running in "
    "KRaft mode)."
)
_NO_VOTERS = (
    "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap "
    "controllers or controller.quorum.voters must contain a parseable set of controllers."
)
_NOT_BOUND = (
    "controller.listener.names must contain at least one value appearing in the 'listeners' configuration "
    "when running the KRaft controller role"
)
_NO_NAMES = (
    "controller.listener.names must contain at least one value when running KRaft with just the broker role"
)
_NAMES_BOUND = (
    "controller.listener.names must not contain a value appearing in the 'listeners' configuration when "
    "running KRaft with just the broker role"
)
_ONLY_CONTROLLERS = (
    "The listeners config must only contain KRaft controller listeners from controller.listener.names when "
    "process.roles=controller"
)
_ALL_CONTROLLERS = (
    "There must be at least one broker advertised listener. Perhaps all listeners appear in "
    "controller.listener.names?"
)


def _unmapped(name: str) -> str:
    return (
        f"Controller listener with name {name} defined in controller.listener.names not found in "
        "listener.security.protocol.map  (an explicit security mapping for each controller listener is "
        "required if listener.security.protocol.map is non-empty, or if there are security protocols other "
        "than PLAINTEXT in use)"
    )


_NOT_A_VOTER = (
    "If process.roles contains the 'controller' role, the node id 2 must be included in the set of voters "
    "controller.quorum.voters=Set(1)"
)
_VOTES = (
    "If process.roles contains just the 'broker' role, the node id 1 must not be included in the set of "
    "voters controller.quorum.voters=Set(1)"
)
_NOT_AN_ENTRY = (
    "Invalid configuration value for controller.quorum.voters. Each entry should be in the form "
    "`{id}@{host}:{port}`."
)


def _no_host(entry: str) -> str:
    return (
        f"Failed to parse host name from entry {entry} for the configuration controller.quorum.voters. Each "
        "entry should be in the form `{id}@{host}:{port}`."
    )


def _no_server(entry: str) -> str:
    return (
        f"Failed to parse host name from {entry} for the configuration controller.quorum.bootstrap.servers. "
        'Each entry should be in the form "{host}:{port}"'
    )


class Case(NamedTuple):
    """Settings, and the error message of Kafka 3.9.1, unless `since` names the version that rejects them."""

    name: str
    base: dict[str, str | None]
    changes: dict[str, str | None]
    message: str | None
    since: str = "3.9.1"

    @property
    def settings(self) -> dict[str, str]:
        merged = {**self.base, **self.changes}
        return {name: value for name, value in merged.items() if value is not None}


_SERVERS: Final[dict[str, str | None]] = {"controller.quorum.voters": None}
_BOTH_ADVERTISED = "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"
_OTHER = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,OTHER:SSL"


def _voters(text: str) -> dict[str, str | None]:
    return {"controller.quorum.voters": text}


def _servers(text: str) -> dict[str, str | None]:
    return {"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": text}


CASES: Final = (
    Case("a combined node", COMBINED, {}, None),
    Case("a broker", BROKER, {}, None),
    Case("a controller", CONTROLLER, {}, None),
    Case("no node.id", COMBINED, {"node.id": None}, _NO_NODE_ID),
    Case("a negative node.id", COMBINED, {"node.id": "-1"}, _NO_NODE_ID),
    Case("a high node.id", COMBINED, {"node.id": "5000", **_voters("5000@localhost:9093")}, None),
    Case(
        "another broker.id",
        COMBINED,
        {"broker.id": "2"},
        "You must set `node.id` to the same value as `broker.id`.",
    ),
    Case("the same broker.id", COMBINED, {"broker.id": "1"}, None),
    Case("broker.id alone", COMBINED, {"node.id": None, "broker.id": "1"}, None),
    Case("no voters", COMBINED, {"controller.quorum.voters": None}, _NO_VOTERS),
    Case("empty voters", COMBINED, _voters(""), _NO_VOTERS),
    Case("empty servers", BROKER, _servers(""), _NO_VOTERS),
    Case("only servers", COMBINED, _servers("localhost:9093"), None),
    Case("two servers", BROKER, _servers("a:9093,b:9093"), None),
    Case("a combined node that is no voter", COMBINED, {"node.id": "2"}, _NOT_A_VOTER),
    Case("a controller that is no voter", CONTROLLER, {"node.id": "2"}, _NOT_A_VOTER),
    Case("a broker that is a voter", BROKER, {"node.id": "1"}, _VOTES),
    Case("a combined node without names", COMBINED, {"controller.listener.names": None}, _NOT_BOUND),
    Case("a combined node with empty names", COMBINED, {"controller.listener.names": ""}, _NOT_BOUND),
    Case("names in another case", COMBINED, {"controller.listener.names": "controller"}, _NOT_BOUND),
    Case("listeners in another case", COMBINED, {"listeners": "plaintext://:9092,controller://:9093"}, None),
    Case("a broker without names", BROKER, {"controller.listener.names": None}, _NO_NAMES),
    Case("a broker with empty names", BROKER, {"controller.listener.names": ""}, _NO_NAMES),
    Case("a controller without names", CONTROLLER, {"controller.listener.names": None}, _ONLY_CONTROLLERS),
    Case("no controller listener", COMBINED, {"listeners": "PLAINTEXT://:9092"}, _NOT_BOUND),
    Case("a combined node without listeners", COMBINED, {"listeners": None}, _NOT_BOUND),
    Case("a controller without listeners", CONTROLLER, {"listeners": None}, _ONLY_CONTROLLERS),
    Case(
        "a controller with a broker's listener",
        CONTROLLER,
        {"listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"},
        _ONLY_CONTROLLERS,
    ),
    Case(
        "a broker with a controller's listener",
        BROKER,
        {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"},
        _NAMES_BOUND,
    ),
    Case(
        "a broker whose listener is a controller's",
        BROKER,
        {"controller.listener.names": "PLAINTEXT"},
        _NAMES_BOUND,
    ),
    Case(
        "a broker with two names",
        BROKER,
        {"controller.listener.names": "CONTROLLER,OTHER", "listener.security.protocol.map": _OTHER},
        None,
    ),
    Case("an unmapped name", BROKER, {"controller.listener.names": "CONTROLLER,OTHER"}, _unmapped("OTHER")),
    Case("a broker without a map", BROKER, {"listener.security.protocol.map": None}, None),
    Case("a combined node without a map", COMBINED, {"listener.security.protocol.map": None}, None),
    Case(
        "a map without the controllers",
        BROKER,
        {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"},
        _unmapped("CONTROLLER"),
    ),
    Case(
        "the default map with TLS",
        BROKER,
        {
            "listener.security.protocol.map": None,
            "listeners": "SSL://:9092",
            "advertised.listeners": None,
            "inter.broker.listener.name": "SSL",
        },
        _unmapped("CONTROLLER"),
    ),
    Case("a broker that advertises controllers", BROKER, {"advertised.listeners": _BOTH_ADVERTISED}, None),
    Case("an advertised controller", COMBINED, {"advertised.listeners": _BOTH_ADVERTISED}, None),
    Case(
        "only an advertised controller",
        COMBINED,
        {"advertised.listeners": "CONTROLLER://localhost:9093"},
        _ALL_CONTROLLERS,
    ),
    Case("nothing advertised", COMBINED, {"advertised.listeners": None}, None),
    Case(
        "a controller that is advertised",
        CONTROLLER,
        {"advertised.listeners": "CONTROLLER://localhost:9093"},
        None,
    ),
    Case(
        "only controllers' listeners", COMBINED, {"controller.listener.names": "PLAINTEXT"}, _ALL_CONTROLLERS
    ),
    Case(
        "two controller listeners, one of them not bound",
        CONTROLLER,
        {"controller.listener.names": "CONTROLLER,OTHER", "listener.security.protocol.map": _OTHER},
        "controller.listener.names must only contain values appearing in the 'listeners' configuration when "
        "running the KRaft controller role",
    ),
    Case(
        "two controller listeners",
        CONTROLLER,
        {
            "controller.listener.names": "CONTROLLER,OTHER",
            "listener.security.protocol.map": _OTHER,
            "listeners": "CONTROLLER://:9093,OTHER://:9094",
        },
        None,
    ),
    Case(
        "an unknown role",
        COMBINED,
        {"process.roles": "broker,controller,x"},
        "Invalid value x for configuration process.roles: String must be one of: broker, controller",
    ),
    Case("a voter without a port", COMBINED, _voters("1@localhost"), _no_host("1@localhost")),
    Case("a voter with a text as port", COMBINED, _voters("1@localhost:x"), _no_host("1@localhost:x")),
    Case(
        "a voter with a text as ID",
        COMBINED,
        _voters("x@localhost:1"),
        "Failed to parse voter ID as an integer from x",
    ),
    Case("a voter without an ID", COMBINED, _voters("localhost:9093"), _NOT_AN_ENTRY),
    Case("an empty voter", COMBINED, _voters("1@a:9093,,2@b:9093"), _NOT_AN_ENTRY),
    Case("a space between voters", COMBINED, _voters("1@a:9093, 2@b:9093"), None),
    Case("a voter twice", COMBINED, _voters("1@a:9093,1@b:9093"), None),
    Case("an IPv6 voter", COMBINED, _voters("1@[::1]:9093"), None),
    Case("a voter with an underscore", COMBINED, _voters("1@kafka_1:9093"), None),
    Case("a voter with a protocol", COMBINED, _voters("1@SASL_SSL://a:9093"), None),
    Case("a high port", COMBINED, _voters("1@a:70000"), "port out of range:70000"),
    Case(
        "no routable voter",
        COMBINED,
        _voters("1@0.0.0.0:9093"),
        "Host string (0.0.0.0) is not routeable",
        "4.4.0",
    ),
    Case("a server without a port", BROKER, _servers("localhost"), _no_server("localhost")),
    Case("a server with a text as port", BROKER, _servers("a:x"), _no_server("a:x")),
    Case(
        "a negative timeout",
        COMBINED,
        {"controller.quorum.election.timeout.ms": "-1"},
        "Invalid value -1 for configuration controller.quorum.election.timeout.ms: Value must be at least 0",
        "4.4.0",
    ),
    Case("a heartbeat as long as the session", COMBINED, {"broker.heartbeat.interval.ms": "9000"}, None),
    Case("an unknown mechanism", COMBINED, {"sasl.mechanism.controller.protocol": "NOPE"}, None),
)
