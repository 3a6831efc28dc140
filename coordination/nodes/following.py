"""What a broker keeps in memory of the metadata store: read at the start, and again in each new session; in
between notices tell what is another, whoever changed it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from kafka_compat.coordination.nodes.notices import Notices
from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore, MetadataStoreError, SessionState
from kafka_compat.tasks import OnFailure, Tasks

log = logging.getLogger(__name__)

RETRY_S: Final = 0.1
RECONNECT_S: Final = 0.5


class Following:
    """Calls `read_all`, then has `notices` heard as they come, and after them each time calls `read_again`:
    what has no notices is read there, when `wake` says so. `what` is its name in the log; `paths` are the
    nodes that everything else finds its parent in.
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
        """Read everything, and follow it from now on. MetadataStoreError."""
        await self._begin()
        self._tasks.spawn(f"following {self._what}", self._follow, OnFailure.RESTART)

    async def _follow(self) -> None:
        while True:
            try:
                await self._listen()
            except stores.SessionExpired:
                await asyncio.sleep(RECONNECT_S)
            except MetadataStoreError as error:
                log.info("following %s: %r", self._what, error)
                await asyncio.sleep(RETRY_S)

    async def _listen(self) -> None:
        """Until the store fails, or its session ends."""
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
        """There is something to read again."""
        self._woken.set()

    def _wake(self, notices: Notices, event: stores.Event) -> None:
        self._unwatched.add(notices)
        self.wake()

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._session_id = None
            self.wake()

    async def _begin(self) -> None:
        """Read everything in a session that is new. What changes meanwhile has a notice, heard later."""
        session_id = self._store.session_id
        self._store.on_state(self._session_changed)
        self._unwatched.update(self._notices)
        await self._store.ensure_all(self._paths)
        for notices in self._notices:
            await notices.pass_over(self._store)
        await self._read_all()
        if self._store.session_id == session_id:
            self._session_id = session_id
