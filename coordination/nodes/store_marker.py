"""The marker of a metadata store whose content can move to another one: whether it is the store of record."""

from enum import Enum
from typing import Final, NamedTuple

from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.node_json import NodeObject, encode_json
from kafka_compat.coordination.store.metadata_store import MetadataStore, NoNode

MARKER: Final = "/kafka_compat/metadata_store"
MIGRATION: Final = "/kafka_compat/migration"
"""Parent of the nodes that exist only during a migration."""
READY_BROKERS: Final = "/kafka_compat/migration/brokers"
"""Parent of a node for each broker that is connected to both stores."""
COPIER: Final = "/kafka_compat/migration/copier"
"""The node of the broker that moves the metadata, in the store that is being filled."""


class StoreName(Enum):
    """The stores between which metadata can move, as in kafka.compat.metadata.store."""

    ZOOKEEPER = "zookeeper"
    QUORUM = "quorum"

    @property
    def in_text(self) -> str:
        """The store's name in messages."""
        return "ZooKeeper" if self is StoreName.ZOOKEEPER else "the metadata quorum"


class StoreState(Enum):
    """The state of one store (docs/design/quorum.md)."""

    ACTIVE = "active"
    LEAVING = "leaving"
    FILLING = "filling"
    INACTIVE = "inactive"


class Marker(NamedTuple):
    """The content of the marker."""

    state: StoreState
    move: int
    """The number of moves so far, including a move that is not complete."""
    brokers: tuple[int, ...] = ()
    """The brokers that were registered when the last move began."""
    aborted_at: int = -1
    """The version of the brokers' default settings at which the last move was aborted, or -1. The next move
    begins after these settings have changed."""

    def encoded(self) -> bytes:
        """Return the payload of the node."""
        values: dict[str, object] = {
            "version": 1,
            "state": self.state.value,
            "move": self.move,
            "brokers": list(self.brokers),
        }
        if self.aborted_at >= 0:
            values["aborted_at"] = self.aborted_at
        return encode_json(values)


def decode_marker(data: bytes | None) -> Marker:
    """Decode the marker. Raises MalformedNode."""
    values = NodeObject.parse(MARKER, data)
    try:
        state = StoreState(values.text("state"))
    except ValueError:
        raise MalformedNode(MARKER, f"unknown state {values.text('state')!r:.60}") from None
    aborted_at = values.integer("aborted_at", -1, low=-1)
    return Marker(state, values.integer("move"), values.brokers("brokers"), aborted_at)


async def read_marker(store: MetadataStore) -> tuple[Marker | None, int]:
    """Return the marker and the version of its node, or (None, -1). Raises MalformedNode."""
    try:
        data, stat = await store.get(MARKER)
    except NoNode:
        return None, -1
    return decode_marker(data), stat.version
