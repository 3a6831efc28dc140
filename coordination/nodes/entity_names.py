"""Names of users, clients and addresses as Kafka writes them into paths under /config."""

from __future__ import annotations

from urllib.parse import quote, unquote

from kafka_compat.coordination.nodes.znodes import DEFAULT_ENTITY


def node_name(name: str | None) -> str:
    """The node of an entity; None is the one that stands for all without settings of their own."""
    return DEFAULT_ENTITY if name is None else quote(name, safe="").replace("~", "%7E")


def entity_name(node: str) -> str | None:
    """The entity of a node."""
    return None if node == DEFAULT_ENTITY else unquote(node)
