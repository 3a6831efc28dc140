"""Metadata store of a cluster with a metadata quorum: the quorum's node in this process, and its sessions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kafka_compat.cluster.shared_store import SharedStore
from kafka_compat.errors import StartupError

if TYPE_CHECKING:
    from kafka_compat.cluster.broker_context import StoreConnection
    from kafka_compat.cluster.quorum_participant import QuorumParticipant
    from kafka_compat.config import BrokerConfig
    from kafka_compat.storage.clock import Clock


_LEAVE_S: Final = 1.0
"""Maximum time in seconds that a stopping broker waits for the end of its session."""


class QuorumStore(SharedStore):
    """The shared store of a cluster with a metadata quorum. It runs the node of this process."""

    participant: QuorumParticipant

    def __init__(self, participant: QuorumParticipant) -> None:
        super().__init__(participant.connect)
        self.participant = participant

    def can_store_change(self) -> bool:
        """Return whether the store can be written, as far as this broker knows."""
        return self.participant.has_leader()

    async def open(
        self, config: BrokerConfig, clock: Clock, directory: str, stored_cluster_id: str | None
    ) -> StoreConnection:
        await self.participant.start()
        cluster_id = self.participant.node.local.cluster_id
        if stored_cluster_id not in (None, cluster_id):
            raise StartupError(
                f"{directory} belongs to cluster {stored_cluster_id}, but the metadata log to cluster "
                f"{cluster_id}: choose other log.dirs or another metadata.log.dir"
            )
        return await super().open(config, clock, directory, cluster_id)

    async def leave(self) -> None:
        # Without a majority, the end of the session cannot be committed; the next process ends it.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await super().leave()

    async def close(self) -> None:
        await self.participant.stop()
