"""Finalized features of the cluster (KIP-584).

The levels that an operator has set are in the node /kafka_compat/feature_levels. They are not in /feature,
because a Kafka 3.9 broker shuts down if that node contains a feature that it does not support. In a cluster,
the controller creates /feature, as in Kafka 3.9 with ZooKeeper. If /feature contains a feature, another
program has written it, and the broker must not join the cluster.

ApiVersions reports an epoch that increases with each change of either node, because clients ignore features
with an older epoch.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.coordination.nodes import malformed_nodes, znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode, MalformedNodes
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import Event, MetadataStore, MetadataStoreError
from kafka_compat.error_mapping import store_errors_mapped
from kafka_compat.metadata.features import (
    FeatureUpdate,
    check_updates,
    effective_levels,
    unsupported_levels,
)
from kafka_compat.tasks import Background, CannotGoOn, Tasks

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig
    from kafka_compat.metadata.cache import MetadataCache

log = logging.getLogger(__name__)

RETRY_S = 0.1
NO_EPOCH = -1

Watch = Callable[[Event], None]
PeerLevels = Callable[[], Awaitable[Mapping[int, Mapping[str, int]]]]
"""A function that returns the highest levels that each other broker supports. Raises KafkaError."""


class UnsupportedFeatures(CannotGoOn):
    """Raised if the cluster has finalized features that this broker does not support."""


class FinalizedFeatures:
    """The finalized features: a watcher of their nodes, which shuts down the broker if it does not support
    them, and the controller's changes.
    """

    def __init__(
        self,
        tasks: Tasks,
        config: "BrokerConfig",
        metadata: "MetadataCache",
        malformed: MalformedNodes,
        *,
        peer_levels: PeerLevels | None = None,
    ) -> None:
        """`peer_levels` is None if the broker is standalone. It then does not read /feature."""
        self._tasks = tasks
        self._config = config
        self._metadata = metadata
        self._malformed = malformed
        self._peer_levels = peer_levels
        self._following: Background | None = None

    async def start(self, store: MetadataStore) -> None:
        """Watch the nodes in this session. Raises UnsupportedFeatures or MetadataStoreError."""
        await self.read(store)
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
                await self.read(store, tell)
                await changed.wait()
            except stores.SessionExpired:
                return
            except MetadataStoreError as error:
                log.info("Could not read the finalized features: %r; retrying", error)
                await asyncio.sleep(RETRY_S)

    async def read(self, store: MetadataStore, watch: Watch | None = None) -> None:
        """Read the features, and publish changes. Raises UnsupportedFeatures or MetadataStoreError."""
        epoch = 0 if self._peer_levels is None else await self._feature_epoch(store, watch)
        stored, version = await self._stored(store, watch)
        unsupported = unsupported_levels(stored)
        if unsupported:
            raise UnsupportedFeatures(_problem(znodes.FEATURE_LEVELS, unsupported))
        change = self._metadata.change()
        change.set_features(
            NO_EPOCH if epoch == NO_EPOCH else epoch + version + 1, effective_levels(self._config, stored)
        )
        change.publish()

    async def _feature_epoch(self, store: MetadataStore, watch: Watch | None) -> int:
        if await store.exists(znodes.FEATURE, watch) is None:
            return NO_EPOCH
        try:
            data, stat = await store.get(znodes.FEATURE)
        except stores.NoNode:
            return NO_EPOCH
        try:
            enabled, levels = znodes.decode_feature(data)
        except MalformedNode as error:
            self._malformed.report(error, stat.version, malformed_nodes.MALFORMED_FEATURES)
            return NO_EPOCH
        if enabled and levels:
            raise UnsupportedFeatures(_problem(znodes.FEATURE, levels))
        return stat.version if enabled else NO_EPOCH

    async def _stored(self, store: MetadataStore, watch: Watch | None) -> tuple[dict[str, int], int]:
        """Return the levels that an operator has set, and the version of their node, or -1 if it does not
        exist. If the node is malformed, return the current levels.
        """
        if await store.exists(znodes.FEATURE_LEVELS, watch) is None:
            return {}, -1
        try:
            data, stat = await store.get(znodes.FEATURE_LEVELS)
        except stores.NoNode:
            return {}, -1
        try:
            return znodes.decode_feature_levels(data), stat.version
        except MalformedNode as error:
            self._malformed.report(error, stat.version, malformed_nodes.MALFORMED_FEATURE_LEVELS)
            return dict(self._metadata.feature_levels), stat.version

    async def update(
        self, store: MetadataStore, updates: Sequence[FeatureUpdate], *, validate_only: bool
    ) -> None:
        """Change levels, as the controller. Raises KafkaError if the store fails, or if an update is invalid.
        No level is then changed.
        """
        peers: Mapping[int, Mapping[str, int]] = {}
        if self._peer_levels is not None and any(update.level > 0 for update in updates):
            peers = await self._peer_levels()
        with store_errors_mapped():
            while not await self._try_update(store, updates, peers, validate_only):
                log.info("The feature levels have changed; trying again")

    async def _try_update(
        self,
        store: MetadataStore,
        updates: Sequence[FeatureUpdate],
        peers: Mapping[int, Mapping[str, int]],
        validate_only: bool,
    ) -> bool:
        """Return False if another broker has changed the levels at the same time."""
        stored, version = await self._stored(store, None)
        levels = effective_levels(self._config, stored)
        check_updates(levels, updates, self._metadata.local_id, peers)
        if validate_only or not updates:
            return True
        payload = znodes.encode_feature_levels(stored | {each.feature: each.level for each in updates})
        try:
            if version < 0:
                await store.ensure(znodes.FEATURE_LEVELS.rpartition("/")[0])
                await store.create(znodes.FEATURE_LEVELS, payload)
            else:
                await store.set(znodes.FEATURE_LEVELS, payload, version)
        except (stores.NodeExists, stores.BadVersion, stores.NoNode):
            return False
        for update in updates:
            if update.level != levels[update.feature]:
                log.info(
                    "Changed feature %s from level %d to %d",
                    update.feature,
                    levels[update.feature],
                    update.level,
                )
        await self.read(store)
        return True


def _problem(path: str, levels: Mapping[str, int]) -> str:
    named = ", ".join(f"{name} at level {level}" for name, level in sorted(levels.items()))
    return f"{path} has finalized features that this broker does not support: {named}"
