"""Changes of settings, told to all brokers by nodes under /config/changes (Kafka's ConfigHandlers).

A notice names what changed; who hears of it reads the settings themselves, so that a notice heard twice, or
one heard late, does no harm. Whoever hears also clears away notices older than 15 minutes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from coordination import znodes
from coordination.metadata_store import Event, MetadataStore, MetadataStoreError, NoNode, SessionExpired

log = logging.getLogger(__name__)

NOTICE_MAX_AGE_MS = 15 * 60 * 1000
RETRY_S = 0.1


async def announce(store: MetadataStore, entity_path: str) -> None:
    """Tell all brokers that the settings of `topics/T` or `brokers/N` changed."""
    await store.create(znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change(entity_path), sequential=True)


class ConfigChanges:
    """Calls `changed` with the path of every entity whose settings changed, in order."""

    def __init__(self, changed: Callable[[str], Awaitable[None]], now_ms: Callable[[], int]) -> None:
        self._changed = changed
        self._now_ms = now_ms
        self._heard = ""
        self._task: asyncio.Task[None] | None = None

    async def start(self, store: MetadataStore) -> None:
        """Listen in this session. Notices that are there at the first start are of changes known by then."""
        if not self._heard:
            self._heard = max(await store.children(znodes.CONFIG_CHANGES), default="")
        self._task = asyncio.get_running_loop().create_task(self._listen(store))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _listen(self, store: MetadataStore) -> None:
        while True:
            something = asyncio.Event()

            def changed(event: Event, something: asyncio.Event = something) -> None:
                something.set()

            try:
                names = await store.children(znodes.CONFIG_CHANGES, changed)
                for name in names:
                    await self._hear(store, name)
                await something.wait()
            except SessionExpired:
                return
            except MetadataStoreError as error:
                log.info("listening for changed settings: %r", error)
                await asyncio.sleep(RETRY_S)

    async def _hear(self, store: MetadataStore, name: str) -> None:
        path = f"{znodes.CONFIG_CHANGES}/{name}"
        try:
            data, stat = await store.get(path)
            if name > self._heard:
                await self._changed(znodes.decode_config_change(data))
                self._heard = name
            if self._now_ms() - stat.ctime_ms > NOTICE_MAX_AGE_MS:
                await store.delete(path)
        except NoNode:
            return
        except ValueError as error:
            log.warning("%s: %s", path, error)
            self._heard = max(self._heard, name)
