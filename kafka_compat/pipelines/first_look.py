"""Looks at the Kafka cluster before Spark starts: who mistyped a topic need not wait for a JVM to be told.

What it cannot tell within a moment (a cluster that wants TLS or a password, a slow network) is left to
`cluster.look`, which asks with the client and the properties that the job itself uses.
"""

import socket
from collections.abc import Iterable, Mapping

from .errors import NotStarted

CONNECT_S = 1.0
ANSWER_S = 2.0


def first_look(properties: Mapping[str, str], *, topics: Iterable[str] = ()) -> None:
    """NotStarted when nobody listens at any of the addresses, or a topic that was named does not exist (it
    is not created)."""
    servers = properties["bootstrap.servers"]
    refusals = [_refusal(address.strip()) for address in servers.split(",") if address.strip()]
    if refusals and all(refusals):
        raise NotStarted(
            f"The cluster at {servers} does not answer: {refusals[0]}",
            "Is the broker up, and the address right?",
        )
    if any(name.startswith(("security.", "sasl.", "ssl.")) for name in properties):
        return
    existing = _topics(servers)
    if existing is not None:
        check_topics(servers, set(topics), existing)


def check_topics(servers: str, wanted: set[str], existing: set[str]) -> None:
    """NotStarted unless all topics that are wanted exist."""
    if wanted - existing:
        raise NotStarted(
            f"No such topic on {servers}: {', '.join(sorted(wanted - existing))}.",
            f"Topics there: {', '.join(sorted(existing)[:20]) or 'none'}.",
        )


def _refusal(address: str) -> str | None:
    """Why nobody can be reached there; None where somebody is, or may be."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except TimeoutError:
        return None
    except (OSError, ValueError) as error:
        return str(error)
    return None


def _topics(servers: str) -> set[str] | None:
    """All topics; None when that cannot be told now."""
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        return None
    try:
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        return set(admin.list_topics(timeout=ANSWER_S).topics)
    except KafkaException:
        return None
