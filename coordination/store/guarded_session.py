"""A session that may write only as long as a certain node keeps its version. When the node changes, the
session behaves as if it had expired, so that its owner opens a new one.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import (
    Event,
    MetadataStore,
    MetadataStoreError,
    Operation,
    SessionState,
    Stat,
    StoreSession,
    TransactionFailed,
    Watch,
)

LINGER_S: Final = 0.5
"""How long the ephemeral nodes of a session outlive it after a change of the node, in seconds. Other sessions
notice the same change meanwhile, rather than the loss of these nodes."""


class GuardedSession(StoreSession):
    """`session`, guarded by the version of the node `guard`. `tree_id` identifies the tree of the store."""

    def __init__(self, session: MetadataStore, guard: str, version: int, tree_id: str) -> None:
        super().__init__(session.session_id, session.state)
        self._inner = session
        self._check = stores.Check(guard, version)
        self._tree_id = tree_id
        self._closing: asyncio.Task[None] | None = None
        session.on_state(self._inner_changed)

    @property
    def tree_id(self) -> str:
        return self._tree_id

    @property
    def session_id(self) -> int:
        return self._inner.session_id

    async def begin(self) -> None:
        """Verify with a write that the guard holds, and watch it. Raises SessionExpired if it does not."""
        await self._watch()
        await self.multi([])

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        self._check_alive()
        return await self._inner.get(path, watch and self._passed_on(watch))

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        self._check_alive()
        return await self._inner.exists(path, watch and self._passed_on(watch))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        self._check_alive()
        return await self._inner.children(path, watch and self._passed_on(watch))

    async def multi(self, operations: Sequence[Operation]) -> list[str | Stat | None]:
        self._check_alive()
        try:
            return (await self._inner.multi([*operations, self._check]))[:-1]
        except TransactionFailed as failed:
            if failed.index < len(operations):
                raise
        self._guard_broken()
        raise stores.SessionExpired(f"{self._check.path} has changed: the metadata is in another store")

    async def close(self) -> None:
        if self._state in (SessionState.CONNECTED, SessionState.SUSPENDED):
            self._change_state(SessionState.CLOSED)
        if self._closing is not None:
            self._closing.cancel()
        await self._inner.close()

    def _check_alive(self) -> None:
        if self._state not in (SessionState.CONNECTED, SessionState.SUSPENDED):
            raise stores.SessionExpired(f"session {self.session_id} is {self._state.value}")

    def _passed_on(self, watch: Watch) -> Watch:
        def fire(event: Event) -> None:
            if self._state in (SessionState.CONNECTED, SessionState.SUSPENDED):
                watch(event)

        return fire

    async def _watch(self) -> None:
        stat = await self._inner.exists(self._check.path, self._guard_changed)
        if stat is None or stat.version != self._check.version:
            self._guard_broken()

    def _guard_changed(self, event: Event) -> None:
        self._guard_broken()

    def _guard_broken(self) -> None:
        if self._state not in (SessionState.CONNECTED, SessionState.SUSPENDED):
            return
        self._closing = asyncio.get_running_loop().create_task(self._close_inner())
        self._change_state(SessionState.EXPIRED)

    async def _close_inner(self) -> None:
        await asyncio.sleep(LINGER_S)
        try:
            await self._inner.close()
        except MetadataStoreError:
            return

    def _inner_changed(self, state: SessionState) -> None:
        if self._state in (SessionState.CONNECTED, SessionState.SUSPENDED) and state is not self._state:
            self._change_state(state)
