"""Metadata store of a standalone broker: a tree in this process, with its journal in the first log directory.
No other broker can use the store, so this broker is always the controller.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from kafka_compat.cluster.broker_context import StoreConnection
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.store.embedded import EmbeddedMetadataStore
from kafka_compat.coordination.store.journal import JOURNAL_NAME, CorruptJournal, Journal
from kafka_compat.errors import StartupError
from kafka_compat.metadata.topic_nodes import new_id
from kafka_compat.storage.directories.directory_claim import why_unusable

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig
    from kafka_compat.coordination.store.metadata_store import MetadataStore
    from kafka_compat.storage.clock import Clock

NewTree = Callable[[str, Callable[[], int]], EmbeddedMetadataStore]
"""A function that opens the tree at a path. Its second argument returns the current time in milliseconds."""


def new_unsynced_tree(path: str, now_ms: Callable[[], int]) -> EmbeddedMetadataStore:
    """Open a tree whose changes survive the process, but not a crash of the machine."""
    return EmbeddedMetadataStore(path, now_ms, Journal(path, syncs=False))


class OwnStore:
    is_shared: Literal[False] = False
    participant: Final = None

    def __init__(self, new_tree: NewTree = EmbeddedMetadataStore) -> None:
        self._new_tree = new_tree
        self._tree: EmbeddedMetadataStore | None = None
        self._store: MetadataStore | None = None
        self.is_new = False
        """Whether the store was created by this startup, or by a startup that did not finish recovery."""

    async def open(
        self, config: BrokerConfig, clock: Clock, directory: str, stored_cluster_id: str | None
    ) -> StoreConnection:
        path = os.path.join(directory, JOURNAL_NAME)
        try:
            tree = self._tree = self._new_tree(path, clock.now_ms)
        except OSError as error:
            reason = why_unusable(directory, error)
            raise StartupError(
                f"cannot use {directory}, the first of log.dirs, for the metadata journal: {reason}"
            ) from error
        except CorruptJournal as error:
            raise StartupError(f"cannot read the metadata journal {path}: {error}") from error
        store = self._store = tree.connect()
        self.is_new = await store.exists(znodes.CLUSTER_ID) is None
        if self.is_new:
            # Include the parent of the cluster ID, which otherwise is created in a transaction of its own.
            await store.ensure_all([*znodes.PERSISTENT_PATHS, znodes.CLUSTER_ID.rpartition("/")[0]])
            cluster_id = stored_cluster_id or new_id()
        else:
            data, _ = await store.get(znodes.CLUSTER_ID)
            try:
                cluster_id = znodes.decode_cluster_id(data)
            except MalformedNode as error:
                raise StartupError(f"in the metadata journal {path}: {error}") from error
        return StoreConnection(store, cluster_id, may_lack_topics=self.is_new or tree.tail_was_cut)

    async def finish_recovery(self, cluster_id: str) -> None:
        """Record that the store contains all topics found on disk. If a crash prevents this, the next startup
        adopts topics again.
        """
        if self.is_new:
            assert self._store is not None
            await self._store.put(znodes.CLUSTER_ID, znodes.encode_cluster_id(cluster_id))
            self.is_new = False

    def snapshot(self) -> dict[str, bytes]:
        """Return the contents of the metadata files in the first log directory, keyed by file name."""
        assert self._tree is not None
        return {JOURNAL_NAME: self._tree.snapshot()}

    async def leave(self) -> None:
        """Do nothing, because the store is needed until the broker has stopped."""

    async def close(self) -> None:
        tree, self._tree = self._tree, None
        if tree is not None:
            await tree.close()
