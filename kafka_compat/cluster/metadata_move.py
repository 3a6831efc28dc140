"""One move of the metadata from one store to another (rules: docs/design/quorum.md)."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from kafka_compat.cluster.config_changes import announce
from kafka_compat.cluster.moved_members import broker_ids
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.node_json import INT32_MAX
from kafka_compat.coordination.nodes.store_marker import (
    MARKER,
    MIGRATION,
    READY_BROKERS,
    Marker,
    StoreName,
    StoreState,
    read_marker,
)
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore, NoNode
from kafka_compat.coordination.store.tree_copy import TreeCopy
from kafka_compat.security.acls import bindings
from kafka_compat.security.tokens import delegation_token

log = logging.getLogger(__name__)

ROOTS: Final = (
    "/admin",
    "/brokers",
    "/cluster",
    "/config",
    "/consumers",
    "/controller_epoch",
    "/delegation_token",
    "/feature",
    "/isr_change_notification",
    "/kafka-acl",
    "/kafka-acl-changes",
    "/kafka-acl-extended",
    "/kafka-acl-extended-changes",
    "/kafka_compat",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
)
"""The trees that are copied: those of brokers. A ZooKeeper may contain others."""
_NOTIFICATIONS: Final = (
    znodes.CONFIG_CHANGES,
    znodes.ISR_CHANGES,
    znodes.LOG_DIR_EVENTS,
    *bindings.CHANGES.values(),
    delegation_token.CHANGES,
)
"""Their names are numbered by each store. ACLs and tokens are read again in each new session, and the first
controller in the new store learns the other changes from the states of partitions."""
NO_BROKER: Final = INT32_MAX
"""ID in the /controller of a store that is not the store of record."""


class NotReady(Exception):
    """Raised if a move cannot begin or continue. The message says what to do."""


class Side(NamedTuple):
    """One store, and a session in it that is not guarded."""

    name: StoreName
    session: MetadataStore


class MetadataMove:
    """A move, in which this broker writes. All methods raise MetadataStoreError, also if another broker has
    begun to write instead.
    """

    def __init__(self, source: Side, target: Side) -> None:
        self._source = source
        self._target = target
        self._guard: stores.Check

    async def run(self, move: int) -> None:
        """Move the metadata, as the move with this number. Raises NotReady, MalformedNode or
        MetadataStoreError. The move can then be repeated, with the same number.
        """
        source, target = self._source.session, self._target.session
        await self._mark_target(move)
        await self._copy()
        began_s = time.monotonic()
        brokers = await self._close_source(move)
        copied = await self._copy()
        await self._repeat_notifications()
        results = await target.multi(
            [
                stores.SetData(
                    MARKER, Marker(StoreState.ACTIVE, move, brokers).encoded(), self._guard.version
                ),
                *await _without_controller(target),
            ]
        )
        assert isinstance(results[0], stores.Stat)
        log.info(
            "Moved the metadata of the cluster from %s to %s: %d nodes. It could not change for %.1f s",
            self._source.name.in_text,
            self._target.name.in_text,
            copied.nodes,
            time.monotonic() - began_s,
        )
        await deactivate(source, move)

    async def abort(self, move: int, settings_version: int) -> None:
        """Make the source the store of record again. Raises NotReady if the move is already decided, or
        MetadataStoreError. `settings_version` is the version of the settings that requested the move.

        The order matters: a copier marks the target before it writes to the source. If it does both between
        the two writes of this method, the second one fails. Otherwise, the copier cannot complete the move.
        """
        source, target = self._source.session, self._target.session
        leaving, version = await read_marker(source)
        if leaving is None or leaving.state is not StoreState.LEAVING or leaving.move != move:
            raise NotReady(f"{self._source.name.in_text} is not being left: {MARKER} is {leaving}")
        marker, target_version = await read_marker(target)
        if marker is None or marker.state is StoreState.ACTIVE or marker.move > move:
            raise NotReady(f"the move to {self._target.name.in_text} is complete: {MARKER} is {marker}")
        await target.set(MARKER, Marker(StoreState.INACTIVE, move).encoded(), target_version)
        active = Marker(StoreState.ACTIVE, move, leaving.brokers, settings_version)
        await source.multi(
            [stores.SetData(MARKER, active.encoded(), version), *await _without_controller(source)]
        )

    async def _mark_target(self, move: int) -> None:
        target = self._target.session
        marker, version = await read_marker(target)
        if marker is None or marker.state is StoreState.ACTIVE or marker.move > move:
            raise NotReady(f"{self._target.name.in_text} cannot be filled: {MARKER} is {marker}")
        stat = await target.set(MARKER, Marker(StoreState.FILLING, move).encoded(), version)
        self._guard = stores.Check(MARKER, stat.version)

    async def _copy(self) -> TreeCopy:
        copy = TreeCopy(
            self._source.session,
            self._target.session,
            self._guard,
            roots=ROOTS,
            left_out=(MARKER, MIGRATION),
            childless=(znodes.BROKER_IDS, *_NOTIFICATIONS),
        )
        await copy.run()
        return copy

    async def _close_source(self, move: int) -> tuple[int, ...]:
        """Fence all writers of the source. Return the brokers that were registered in it."""
        source = self._source.session
        marker, version = await read_marker(source)
        if marker is not None and marker.state is StoreState.LEAVING and marker.move == move:
            # Another broker has closed it. A write brings this session up to date.
            leaving = marker
            stat = await source.set(MARKER, marker.encoded(), version)
        elif marker is not None and marker.state is StoreState.ACTIVE and marker.move < move:
            leaving = Marker(StoreState.LEAVING, move, tuple(sorted(await self.check_ready())))
            nobody = znodes.encode_controller(znodes.ControllerInfo(NO_BROKER, -1))
            results = await source.multi(
                [
                    stores.SetData(MARKER, leaving.encoded(), version),
                    *await _without_controller(source),
                    stores.Create(znodes.CONTROLLER, nobody),
                ]
            )
            assert isinstance(results[0], stores.Stat)
            stat = results[0]
        else:
            raise NotReady(f"{self._source.name.in_text} is not the store of record any more")
        try:
            await self.check_ready()
        except NotReady:
            # The state before this move.
            active = Marker(StoreState.ACTIVE, move - 1, leaving.brokers)
            await source.multi(
                [stores.SetData(MARKER, active.encoded(), stat.version), stores.Delete(znodes.CONTROLLER)]
            )
            raise
        return leaving.brokers

    async def check_ready(self) -> set[int]:
        """Return the registered brokers. Raises NotReady unless all are connected to both stores."""
        registered = await broker_ids(self._source.session, znodes.BROKER_IDS)
        for side in (self._source, self._target):
            missing = registered - await broker_ids(side.session, READY_BROKERS)
            if missing:
                raise NotReady(
                    f"brokers {', '.join(map(str, sorted(missing)))} are not connected to "
                    f"{side.name.in_text} with zookeeper.metadata.migration.enable=true"
                )
        return registered

    async def _repeat_notifications(self) -> None:
        """Announce the latest changes of settings again, because a broker may not have heard of them."""
        source, target = self._source.session, self._target.session
        entities: dict[str, None] = {}
        for name in await source.children(znodes.CONFIG_CHANGES):
            path = f"{znodes.CONFIG_CHANGES}/{name}"
            try:
                data, _ = await source.get(path)
                entities[znodes.decode_config_change(path, data)] = None
            except (NoNode, MalformedNode):
                continue
        for entity in entities:
            await announce(target, entity)


async def deactivate(store: MetadataStore, move: int) -> None:
    """Complete a move in the store that the metadata has left."""
    marker, version = await read_marker(store)
    if marker is not None and marker.state is StoreState.LEAVING and marker.move == move:
        try:
            await store.set(MARKER, Marker(StoreState.INACTIVE, move, marker.brokers).encoded(), version)
        except stores.BadVersion:
            return


async def _without_controller(store: MetadataStore) -> Sequence[stores.Operation]:
    """Return the operations that delete /controller."""
    return [stores.Delete(znodes.CONTROLLER)] if await store.exists(znodes.CONTROLLER) else []
