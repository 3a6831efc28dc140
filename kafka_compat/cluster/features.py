"""Finalized features of the cluster (KIP-584), in the node /feature, as in Kafka 3.9 with ZooKeeper.

The controller creates the node, and ApiVersions reports the node's version as the epoch. Neither Kafka 3.9
with ZooKeeper nor this broker has features that can be finalized. If the node contains a feature, another
program has written it, and a broker that does not support the feature must not join the cluster.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from kafka_compat.coordination.nodes import malformed_nodes, znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNodes
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import Event, MetadataStore, MetadataStoreError
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.tasks import Background, CannotGoOn, Tasks

log = logging.getLogger(__name__)

RETRY_S = 0.1
FAILURE_PAUSE_S = 1.0
NO_EPOCH = -1


class UnsupportedFeatures(CannotGoOn):
    """Raised if the cluster has finalized features that this broker does not support."""


class FinalizedFeatures:
    """A watcher of /feature that shuts down the broker if the node contains enabled features."""

    def __init__(
        self, tasks: Tasks, metadata: MetadataCache, malformed: MalformedNodes | None = None
    ) -> None:
        self._tasks = tasks
        self._metadata = metadata
        self._malformed = malformed or MalformedNodes()
        self._following: Background | None = None

    async def start(self, store: MetadataStore) -> None:
        """Watch the node in this session. Raises UnsupportedFeatures if it contains enabled features."""
        await self._read(store, lambda _: None)
        self._following = self._tasks.spawn(
            "watching the finalized features", partial(self._follow, store), restarts=True
        )

    async def stop(self) -> None:
        if self._following is not None:
            await self._following.stop()

    async def _follow(self, store: MetadataStore) -> None:
        while True:
            changed = asyncio.Event()

            def tell(event: Event, changed: asyncio.Event = changed) -> None:
                changed.set()

            try:
                await self._read(store, tell)
                await changed.wait()
            except stores.SessionExpired:
                return
            except MetadataStoreError as error:
                log.info("Could not read the finalized features: %r; retrying", error)
                await asyncio.sleep(RETRY_S)

    async def _read(self, store: MetadataStore, watch: Callable[[Event], None]) -> None:
        change = self._metadata.change()
        change.set_finalized_features_epoch(await self._epoch(store, watch))
        change.publish()

    async def _epoch(self, store: MetadataStore, watch: Callable[[Event], None]) -> int:
        if await store.exists(znodes.FEATURE, watch) is None:
            return NO_EPOCH
        try:
            data, stat = await store.get(znodes.FEATURE)
        except stores.NoNode:
            return NO_EPOCH
        try:
            enabled, levels = znodes.decode_feature(data)
        except malformed_nodes.MalformedNode as error:
            self._malformed.report(error, stat.version, malformed_nodes.MALFORMED_FEATURES)
            return NO_EPOCH
        if enabled and levels:
            raise UnsupportedFeatures(_problem(levels))
        return stat.version if enabled else NO_EPOCH


def _problem(levels: Mapping[str, int]) -> str:
    named = ", ".join(f"{name} at level {level}" for name, level in sorted(levels.items()))
    return f"{znodes.FEATURE} has finalized features that this broker does not support: {named}"
