"""Interface of the quorum node in this process, as the broker uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafka_compat.cluster.broker_context import BrokerContext
    from kafka_compat.coordination.store.metadata_store import MetadataStore
    from kafka_compat.quorum.node import QuorumNode
    from kafka_compat.security.authorizer import Authorizer


class QuorumParticipant(Protocol):
    """The node of the quorum in this process, with its listeners and its store."""

    node: QuorumNode
    """The node. Set by `start`."""

    async def start(self) -> None:
        """Start the node and its listeners. Raises StartupError."""

    async def connect(self) -> MetadataStore:
        """Open a session with the store, as soon as the quorum has a leader. Raises StartupError after
        `stop_waiting`.
        """

    def has_leader(self) -> bool:
        """Return whether this node hears a leader of the quorum."""

    def stop_waiting(self) -> None:
        """Let `connect` fail instead of waiting for a leader."""

    async def serve(self, context: BrokerContext, authorizer: Authorizer | None) -> None:
        """Use the users and the ACLs of the cluster for the controller listeners."""

    async def stop(self) -> None:
        """Stop the node and its listeners."""
