"""Compose files of clusters in KRaft mode as people publish them, reduced to their Kafka services.

Each is written anew after the named file: the roles, IDs, addresses and listeners are those of the source,
which is in the dialect of apache/kafka, confluentinc/cp-kafka (or confluent-local) or bitnami/kafka. Left out
are services other than Kafka, volumes, JVM options, and settings that do not concern the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import dedent
from typing import Final, NamedTuple

CLUSTER_ID: Final = "4L6g3nShT-eMCtK--X86sw"


class ComposeFile(NamedTuple):
    """One compose file. `services` maps each service, which is also the host name of its container, to its
    environment.
    """

    name: str
    source: str
    """Repository and path of the file after which it is modelled."""
    dialect: str
    """The image for which it was written: "apache", "confluent" or "bitnami"."""
    services: Mapping[str, Mapping[str, str]]
    properties: str | None = None
    """The content of server.properties that is mounted in /mnt/shared/config."""
    command: str | None = None
    """A shell command of the services instead of the image's own."""
    uses_host_network: bool = False
    """Whether the nodes share the network of their host, and so name each other localhost."""

    @property
    def brokers(self) -> list[str]:
        """The services that are brokers."""
        return [name for name, each in self.services.items() if "broker" in roles_of(each, self.properties)]


def roles_of(environment: Mapping[str, str], properties: str | None = None) -> list[str]:
    """Return the roles of a service."""
    for name in ("KAFKA_PROCESS_ROLES", "KAFKA_CFG_PROCESS_ROLES"):
        if name in environment:
            return environment[name].split(",")
    assert properties is not None
    return properties.partition("process.roles=")[2].partition("\n")[0].split(",")


def services(nodes: Mapping[str, int], text: str, ports: Sequence[int] = ()) -> dict[str, dict[str, str]]:
    """Return the environment of each node. In the lines of `text`, {name}, {id} and {port} stand for the name
    of the service, its ID and the port that it publishes, {n} for its place in `nodes`, {blank} for a space.
    """
    found = {}
    for index, (name, node_id) in enumerate(nodes.items()):
        port = ports[index] if ports else 0
        lines = (
            dedent(text).strip().format(name=name, id=node_id, port=port, n=index + 1, blank=" ").splitlines()
        )
        found[name] = dict(line.split("=", 1) for line in lines)
    return found
