"""A broker's part in a migration between ZooKeeper and a metadata quorum.

It shows that the broker is connected to both stores, and moves the metadata if the setting
kafka.compat.metadata.store names the other store.

A move that cannot be completed is aborted after ABORT_AFTER_S, because the metadata cannot change meanwhile.
The next one begins when the settings of all brokers have changed again.

Any broker may begin or continue a move. A node in the store that is being filled prevents that several
brokers copy at the same time, which would be harmless, but slow: only the last one could write.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from kafka_compat.cluster.metadata_move import MetadataMove, NotReady, Side, deactivate
from kafka_compat.cluster.shared_store import ConnectStore
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.store_marker import (
    COPIER,
    MARKER,
    READY_BROKERS,
    Marker,
    StoreName,
    StoreState,
    read_marker,
)
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore, MetadataStoreError, SessionState

log = logging.getLogger(__name__)

SETTING: Final = "kafka.compat.metadata.store"
LOOK_S: Final = 0.5
RETRY_S: Final = 1.0
ABORT_AFTER_S: Final = 60.0
"""Time in seconds after which a move is aborted, if both stores respond. It usually takes a second."""
_ALIVE: Final = (SessionState.CONNECTED, SessionState.SUSPENDED)


class MetadataMigration:
    """The part of one broker. `connect` opens sessions with the stores."""

    def __init__(
        self,
        broker_id: int,
        connect: Mapping[StoreName, ConnectStore],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now_s` returns the time in seconds of a monotonic clock."""
        self._broker_id = broker_id
        self._now_s = now_s
        self._connect = connect
        self._sessions: dict[StoreName, MetadataStore] = {}
        self._problem = ""
        self._leaving = -1, 0.0
        """The number of the move whose end this broker waits for, and when it began to wait."""

    async def run(self) -> None:
        """Take part until canceled."""
        try:
            while True:
                try:
                    await self.look()
                    await asyncio.sleep(LOOK_S)
                except (MetadataStoreError, MalformedNode, NotReady) as error:
                    self._report(str(error) or type(error).__name__)
                    await asyncio.sleep(RETRY_S)
        finally:
            await self.disconnect()

    async def disconnect(self) -> None:
        """Close the sessions."""
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            log.warning("The metadata does not move: %s; trying again", problem)

    async def _stay_connected(self) -> None:
        """Open missing sessions, with the node that shows that this broker is connected."""
        for name, connect in self._connect.items():
            session = self._sessions.get(name)
            if session is not None and session.state in _ALIVE:
                continue
            session = self._sessions[name] = await connect()
        for session in self._sessions.values():
            path = f"{READY_BROKERS}/{self._broker_id}"
            stat = await session.exists(path)
            if stat is None:
                await session.ensure(READY_BROKERS)
                await session.create(path, ephemeral=True)

    async def look(self) -> None:
        """Connect to both stores, and begin, continue or abort a move if this is due. Raises
        MetadataStoreError, MalformedNode or NotReady.
        """
        await self._stay_connected()
        sides = {name: Side(name, session) for name, session in self._sessions.items()}
        markers: dict[StoreName, Marker | None] = {}
        for name, side in sides.items():
            markers[name], _ = await read_marker(side.session)
        active = [name for name, marker in markers.items() if marker and marker.state is StoreState.ACTIVE]
        leaving = [name for name, marker in markers.items() if marker and marker.state is StoreState.LEAVING]
        if active:
            source, target = sides[active[0]], sides[_other(active[0])]
            marker = markers[source.name]
            assert marker is not None
            if leaving:
                await deactivate(target.session, marker.move)
            if markers[target.name] is None:
                await _mark_empty(target)
            wanted, version = await _wanted(source.session)
            if wanted is target.name and version != marker.aborted_at:
                # Check this before anything is copied.
                await MetadataMove(source, target).check_ready()
                await self._move(source, target, marker.move + 1)
        elif leaving:
            left = markers[leaving[0]]
            assert left is not None
            source, target = sides[leaving[0]], sides[_other(leaving[0])]
            if self._waits_too_long(left.move):
                await self._abort(source, target, left.move)
            else:
                await self._move(source, target, left.move)

    def _waits_too_long(self, move: int) -> bool:
        now_s = self._now_s()
        if self._leaving[0] != move:
            self._leaving = move, now_s
        return now_s - self._leaving[1] >= ABORT_AFTER_S

    async def _abort(self, source: Side, target: Side, move: int) -> None:
        _, version = await _wanted(source.session)
        await MetadataMove(source, target).abort(move, version)
        log.warning(
            "Aborted the move of the metadata to %s, which was not complete after %.0f s: %s. The metadata "
            "stays in %s. To repeat the move, solve the problem, and set %s again",
            target.name.in_text,
            ABORT_AFTER_S,
            self._problem or "another broker was moving it",
            source.name.in_text,
            SETTING,
        )
        self._problem = ""

    async def _move(self, source: Side, target: Side, move: int) -> None:
        await target.session.ensure(COPIER.rpartition("/")[0])
        found = await target.session.exists(COPIER)
        if found is None:
            try:
                await target.session.create(COPIER, str(self._broker_id).encode(), ephemeral=True)
            except stores.NodeExists:
                return
        elif found.ephemeral_owner != target.session.session_id:
            return
        log.info("Moving the metadata of the cluster to %s", target.name.in_text)
        try:
            await MetadataMove(source, target).run(move)
            self._problem = ""
        finally:
            if target.session.state in _ALIVE:
                await target.session.delete(COPIER)


def _other(name: StoreName) -> StoreName:
    return StoreName.QUORUM if name is StoreName.ZOOKEEPER else StoreName.ZOOKEEPER


async def _wanted(store: MetadataStore) -> tuple[StoreName | None, int]:
    """Return the store that the setting names, and the version of the settings (-1: there are none)."""
    path = znodes.config_path("brokers", znodes.DEFAULT_ENTITY)
    try:
        data, stat = await store.get(path)
    except stores.NoNode:
        return None, -1
    text = znodes.decode_config(path, data).get(SETTING)
    return next((name for name in StoreName if name.value == text), None), stat.version


async def _mark_empty(side: Side) -> None:
    """Mark a store that has never contained metadata. Raises NotReady if it contains metadata."""
    if await side.session.exists(znodes.CLUSTER_ID) is not None:
        raise NotReady(
            f"{side.name.in_text} contains the metadata of another cluster ({znodes.CLUSTER_ID}). Check "
            "zookeeper.connect and the settings of the quorum"
        )
    await side.session.ensure(MARKER.rpartition("/")[0])
    try:
        await side.session.create(MARKER, Marker(StoreState.INACTIVE, 0).encoded())
    except stores.NodeExists:
        return
