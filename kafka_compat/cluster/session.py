"""The store over a broker's sessions: whoever holds it reads and writes in the session of the day.

What must not outlive its session (a controller's writes, watches that someone counts on) uses that session
itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore, Stat, Watch

ConnectStore = Callable[[], Awaitable[MetadataStore]]
"""A new session with the store. Raises MetadataStoreError when there is none to be had."""


class CurrentSession(MetadataStore):
    """Passes everything on to `session`, which its owner replaces when it has expired."""

    def __init__(self, session: MetadataStore) -> None:
        self.session = session

    @property
    def session_id(self) -> int:
        return self.session.session_id

    @property
    def state(self) -> stores.SessionState:
        return self.session.state

    def on_state(self, listener: stores.StateListener) -> None:
        self.session.on_state(listener)

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        return await self.session.get(path, watch)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        return await self.session.exists(path, watch)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        return await self.session.children(path, watch)

    async def multi(self, operations: Sequence[stores.Operation]) -> list[str | Stat | None]:
        return await self.session.multi(operations)

    async def close(self) -> None:
        await self.session.close()
