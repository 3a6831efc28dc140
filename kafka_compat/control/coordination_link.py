"""A broker's way to the metadata store that the brokers of its process share, which a test may cut.

While it is cut, whatever the broker asks waits, and it hears of nothing. After zookeeper.session.timeout.ms
its session has expired for the others; the broker learns that when it reaches the store again, as with a
ZooKeeper.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.embedded import EmbeddedSession
from kafka_compat.coordination.store.metadata_store import MetadataStore, SessionState, Stat, Watch

if TYPE_CHECKING:
    from kafka_compat.coordinator_runtime.scheduler import Scheduler, TimerHandle


class CoordinationLink:
    """The sessions of one broker."""

    def __init__(
        self, connect: Callable[[], Awaitable[EmbeddedSession]], timeout_ms: int, scheduler: Scheduler
    ) -> None:
        self._connect = connect
        self._timeout_ms = timeout_ms
        self._scheduler = scheduler
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._expiry: TimerHandle | None = None
        self._session: LinkedSession | None = None
        self._unheard: list[Callable[[], None]] = []
        self._ending: asyncio.Future[None] | None = None

    @property
    def is_cut(self) -> bool:
        """Whether nothing passes now."""
        return not self._is_open.is_set()

    async def connect(self) -> MetadataStore:
        """A new session, as soon as the store can be reached."""
        await self.reach()
        self._session = LinkedSession(self, await self._connect())
        return self._session

    async def reach(self) -> None:
        """Wait until something passes."""
        await self._is_open.wait()

    def hear(self, call: Callable[[], None]) -> None:
        """Have the broker hear of something, as soon as something passes."""
        if self.is_cut:
            self._unheard.append(call)
        else:
            call()

    def cut(self) -> None:
        """Let nothing pass until `mend`."""
        if not self.is_cut:
            self._is_open.clear()
            self._expiry = self._scheduler.call_later(self._timeout_ms, self._expire)

    def mend(self) -> None:
        """Let everything pass again."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self._is_open.set()
        unheard, self._unheard = self._unheard, []
        for call in unheard:
            call()

    async def expire(self) -> None:
        """End the session of now, as if the store had not heard of the broker for too long."""
        if self._session is not None and self._session.held.state is SessionState.CONNECTED:
            await self._session.held.expire()

    def _expire(self) -> None:
        self._ending = asyncio.ensure_future(self.expire())


class LinkedSession(MetadataStore):
    """One of them."""

    def __init__(self, link: CoordinationLink, held: EmbeddedSession) -> None:
        self.held = held
        self._link = link

    @property
    def session_id(self) -> int:
        return self.held.session_id

    @property
    def state(self) -> SessionState:
        return SessionState.SUSPENDED if self._link.is_cut else self.held.state

    def on_state(self, listener: stores.StateListener) -> None:
        self.held.on_state(lambda state: self._link.hear(lambda: listener(state)))

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes | None, Stat]:
        await self._link.reach()
        return await self.held.get(path, self._heard(watch))

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        await self._link.reach()
        return await self.held.exists(path, self._heard(watch))

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        await self._link.reach()
        return await self.held.children(path, self._heard(watch))

    async def multi(self, operations: Sequence[stores.Operation]) -> list[str | Stat | None]:
        await self._link.reach()
        return await self.held.multi(operations)

    async def close(self) -> None:
        await self.held.close()

    def _heard(self, watch: Watch | None) -> Watch | None:
        if watch is None:
            return None

        def heard(event: stores.Event) -> None:
            self._link.hear(lambda: watch(event))

        return heard
