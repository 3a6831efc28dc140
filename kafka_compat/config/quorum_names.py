"""Names of the settings of a metadata quorum, and whether a node belongs to one. Every broker loads this
module, and only the nodes of a quorum load `quorum`.
"""

from collections.abc import Collection, Mapping
from typing import Final

ROLES: Final = "process.roles"
AUTO_JOIN: Final = "controller.quorum.auto.join.enable"
VOTERS: Final = "controller.quorum.voters"
BOOTSTRAP_SERVERS: Final = "controller.quorum.bootstrap.servers"
MIGRATION: Final = "zookeeper.metadata.migration.enable"
LISTENER_NAMES: Final = "controller.listener.names"
PROTOCOLS: Final = "listener.security.protocol.map"

_PREFIXES = (
    "controller.quorum.",
    "metadata.log.",
    "metadata.max.",
    "broker.heartbeat.",
    "broker.session.",
)
_NAMES = frozenset({ROLES, LISTENER_NAMES, "initial.broker.registration.timeout.ms"})


def is_of_quorum(name: str) -> bool:
    """Return whether the setting applies only to the nodes of a quorum."""
    return name.startswith(_PREFIXES) or name in _NAMES


def wants_quorum(static: Mapping[str, str]) -> bool:
    """Return whether a node with these settings belongs to a quorum. In contrast to Kafka, a broker with
    zookeeper.connect does so only during a migration, so that a cluster with ZooKeeper keeps its metadata.
    """
    roles = static.get(ROLES, "").strip()
    uses_zookeeper = bool(static.get("zookeeper.connect", "").strip())
    return bool(roles) and (roles == "controller" or not uses_zookeeper or is_migrating(static))


def is_migrating(static: Mapping[str, str]) -> bool:
    """Return whether a broker with these settings belongs to a quorum and also uses ZooKeeper."""
    return (
        bool(static.get("zookeeper.connect", "").strip())
        and static.get(MIGRATION, "").strip().lower() == "true"
        and static.get(ROLES, "").strip() not in ("", "controller")
    )


def controller_names(text: str | None) -> list[str]:
    """Parse controller.listener.names."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def implied_protocols(static: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Return the security protocols of controller listeners that the default of
    listener.security.protocol.map lacks. They are PLAINTEXT, unless a listener is named after another
    protocol.
    """
    used = [item.partition("://")[0].strip().upper() for item in static.get("listeners", "").split(",")]
    if PROTOCOLS in static or any(name.startswith(("SSL", "SASL_")) for name in (*names, *used)):
        return {}
    return {name: "PLAINTEXT" for name in names}
