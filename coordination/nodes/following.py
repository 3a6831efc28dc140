"""In-memory copies of metadata store nodes, read at the start of a session and updated by change notices.

Notices are sequential child nodes through which one broker announces a change to all brokers. A notice names
the changed entity, and the receiver reads the entity itself, so a repeated or late notice is harmless.
Receivers also delete notices older than 15 minutes, as Kafka's brokers do.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore, MetadataStoreError, SessionState
from kafka_compat.tasks import OnFailure, Tasks

log = logging.getLogger(__name__)

RETRY_S: Final = 0.1
RECONNECT_S: Final = 0.5
NOTICE_MAX_AGE_MS = 15 * 60 * 1000


class Notices:
    """The notices under one path. `heard` is called with the path and payload of each notice, in order."""

    def __init__(
        self,
        folder: str,
        prefix: str,
        heard: Callable[[str, bytes | None], Awaitable[None]],
        now_ms: Callable[[], int],
    ) -> None:
        self._folder = folder
        self._name = re.compile(rf"{re.escape(prefix)}\d{{10}}")
        self._hears = heard
        self._now_ms = now_ms
        self._last = ""
        self.has_begun = False
        """Whether the set of known notices is initialized."""

    async def pass_over(self, store: MetadataStore) -> None:
        """Skip the notices that exist already."""
        self._last = max(await self._names(store), default=self._last)
        self.has_begun = True

    async def hear(self, store: MetadataStore, watch: stores.Watch) -> None:
        """Process new notices. `watch` is called when there may be more notices. After a MetadataStoreError,
        the unprocessed notices are still new.
        """
        for name in await self._names(store, watch):
            path = f"{self._folder}/{name}"
            try:
                data, stat = await store.get(path)
                if name > self._last:
                    await self._hears(path, data)
                    self._last = name
                if self._now_ms() - stat.ctime_ms > NOTICE_MAX_AGE_MS:
                    await store.delete(path)
            except stores.NoNode:
                continue

    async def _names(self, store: MetadataStore, watch: stores.Watch | None = None) -> list[str]:
        """The names of the notices. Other nodes are ignored, because their names would sort incorrectly."""
        names = await store.children(self._folder, watch)
        return [name for name in names if self._name.fullmatch(name)]


class Following:
    """Calls `read_all`, then processes changes: each new notice with `notices`, and then `read_again`, which
    rereads nodes without notices and is also called after `wake`. `what` is the name in the log. The parent
    nodes `paths` are created if they are missing.
    """

    def __init__(
        self,
        what: str,
        store: MetadataStore,
        paths: Sequence[str],
        read_all: Callable[[], Awaitable[None]],
        notices: Sequence[Notices],
        tasks: Tasks,
        read_again: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._what = what
        self._store = store
        self._paths = paths
        self._read_all = read_all
        self._notices = notices
        self._tasks = tasks
        self._read_again = read_again
        self._unwatched = set(notices)
        self._woken = asyncio.Event()
        self._session_id: int | None = None

    async def start(self) -> None:
        """Read all nodes and follow changes. Raises MetadataStoreError."""
        await self._begin()
        self._tasks.spawn(f"watching {self._what}", self._follow, OnFailure.RESTART)

    async def _follow(self) -> None:
        while True:
            try:
                await self._listen()
            except stores.SessionExpired:
                await asyncio.sleep(RECONNECT_S)
            except MetadataStoreError as error:
                log.info("Could not read %s: %r; retrying", self._what, error)
                await asyncio.sleep(RETRY_S)

    async def _listen(self) -> None:
        """Process notices until the store fails or its session ends."""
        while True:
            self._woken.clear()
            if self._store.session_id != self._session_id:
                await self._begin()
            for notices in list(self._unwatched):
                self._unwatched.discard(notices)
                try:
                    await notices.hear(self._store, partial(self._wake, notices))
                except BaseException:
                    self._unwatched.add(notices)
                    raise
            if self._read_again is not None:
                await self._read_again()
            await self._woken.wait()

    def wake(self) -> None:
        """Request another `read_again`."""
        self._woken.set()

    def _wake(self, notices: Notices, event: stores.Event) -> None:
        self._unwatched.add(notices)
        self.wake()

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._session_id = None
            self.wake()

    async def _begin(self) -> None:
        """Read all nodes in a new session. The notices of concurrent changes are processed later."""
        session_id = self._store.session_id
        self._store.on_state(self._session_changed)
        self._unwatched.update(self._notices)
        await self._store.ensure_all(self._paths)
        for notices in self._notices:
            await notices.pass_over(self._store)
        await self._read_all()
        if self._store.session_id == session_id:
            self._session_id = session_id
