"""In-memory copies of metadata store nodes, read at the start of a session and updated by notifications.

Notifications are sequential child nodes that announce a change to all brokers, as in Kafka. A notification
contains only the path of the changed entity, which the receiver then reads, so a repeated or late
notification is harmless. As in Kafka, receivers also delete notifications older than 15 minutes.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStore, MetadataStoreError, SessionState
from kafka_compat.tasks import Tasks

log = logging.getLogger(__name__)

RETRY_S: Final = 0.1
RECONNECT_S: Final = 0.5
NOTICE_MAX_AGE_MS = 15 * 60 * 1000


class Notices:
    """The notifications under one path. `heard` gets the path and payload of new notifications, in order."""

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
        """Whether `pass_over` has been called."""

    async def pass_over(self, store: MetadataStore) -> None:
        """Ignore all notifications that already exist."""
        self._last = max(await self._names(store), default="")
        self.has_begun = True

    def forget(self) -> None:
        """Process all existing notifications next, because they are in another tree with other numbers."""
        self._last = ""

    async def hear(self, store: MetadataStore, watch: stores.Watch) -> None:
        """Process new notifications. `watch` is called when there may be further notifications. After a
        MetadataStoreError, the next call processes the remaining notifications.
        """
        names = sorted(await self._names(store, watch))
        for name in names:
            if name > self._last:
                path = f"{self._folder}/{name}"
                try:
                    data, _ = await store.get(path)
                except stores.NoNode:
                    continue
                await self._hears(path, data)
                self._last = name
        await self._delete_old(store, names)

    async def _delete_old(self, store: MetadataStore, names: Sequence[str]) -> None:
        """Delete obsolete notifications. Only the oldest ones are read, however many there are."""
        for name in names:
            path = f"{self._folder}/{name}"
            try:
                _, stat = await store.get(path)
                if self._now_ms() - stat.ctime_ms <= NOTICE_MAX_AGE_MS:
                    return
                await store.delete(path)
            except stores.NoNode:
                continue

    async def _names(self, store: MetadataStore, watch: stores.Watch | None = None) -> list[str]:
        """Read the names of the notifications. Ignore other nodes: their names would sort incorrectly."""
        return [name for name in await store.children(self._folder, watch) if self._name.fullmatch(name)]


class Following:
    """A task that calls `read_all` once per session, and then processes new notifications. After that, and
    after `wake`, it calls `read_again` to read nodes whose changes are not announced. `what` names the nodes
    in log messages. The parent nodes `paths` are created if they are missing.
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
        """Read all nodes, and then process changes in the background. Raises MetadataStoreError."""
        await self._begin()
        self._tasks.spawn(f"watching {self._what}", self._follow, restarts=True)

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
        """Request another call of `read_again`."""
        self._woken.set()

    def _wake(self, notices: Notices, event: stores.Event) -> None:
        self._unwatched.add(notices)
        self.wake()

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._session_id = None
            self.wake()

    async def _begin(self) -> None:
        """Read all nodes in a new session. Notifications of concurrent changes are processed later."""
        session_id = self._store.session_id
        self._store.on_state(self._session_changed)
        self._unwatched.update(self._notices)
        await self._store.ensure_all(self._paths)
        for notices in self._notices:
            await notices.pass_over(self._store)
        await self._read_all()
        if self._store.session_id == session_id:
            self._session_id = session_id
