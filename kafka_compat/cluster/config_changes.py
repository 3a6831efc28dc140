"""Changes of settings, told to all brokers by nodes under /config/changes (Kafka's ConfigHandlers).

A notice names what changed; who hears of it reads the settings themselves, so that a notice heard twice, or
one heard late, does no harm. Whoever hears also clears away notices older than 15 minutes. A notice that
cannot be read, or a change that cannot be made, costs that change.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from functools import partial

from kafka_compat.coordination import znodes
from kafka_compat.coordination.malformed_nodes import MalformedNode, MalformedNodes
from kafka_compat.coordination.metadata_store import (
    Event,
    MetadataStore,
    MetadataStoreError,
    NoNode,
    SessionExpired,
    Watch,
)
from kafka_compat.tasks import Background, OnFailure, Tasks

log = logging.getLogger(__name__)

NOTICE_MAX_AGE_MS = 15 * 60 * 1000
RETRY_S = 0.1
FAILURE_PAUSE_S = 1.0
_NOTICE = re.compile(r"config_change_\d{10}")


async def announce(store: MetadataStore, entity_path: str) -> None:
    """Tell all brokers that the settings of `topics/T` or `brokers/N` changed."""
    await store.create(znodes.CONFIG_CHANGE_PREFIX, znodes.encode_config_change(entity_path), sequential=True)


class ConfigChanges:
    """Calls `changed` with the path of every entity whose settings changed, in order."""

    def __init__(
        self,
        tasks: Tasks,
        changed: Callable[[str], Awaitable[None]],
        now_ms: Callable[[], int],
        malformed: MalformedNodes | None = None,
    ) -> None:
        self._tasks = tasks
        self._malformed = malformed or MalformedNodes()
        self._changed = changed
        self._now_ms = now_ms
        self._heard = ""
        self._listening: Background | None = None

    async def start(self, store: MetadataStore) -> None:
        """Listen in this session. Notices that are there at the first start are of changes known by then."""
        if not self._heard:
            self._heard = max(await self._notices(store), default="")
        self._listening = self._tasks.spawn(
            "listening for changed settings", partial(self._listen, store), OnFailure.RESTART
        )

    async def stop(self) -> None:
        if self._listening is not None:
            await self._listening.stop()

    async def _listen(self, store: MetadataStore) -> None:
        while True:
            something = asyncio.Event()

            def changed(event: Event, something: asyncio.Event = something) -> None:
                something.set()

            try:
                for name in await self._notices(store, changed):
                    await self._hear(store, name)
                await something.wait()
            except SessionExpired:
                return
            except MetadataStoreError as error:
                log.info("listening for changed settings: %r", error)
                await asyncio.sleep(RETRY_S)
            except Exception:
                log.exception("listening for changed settings failed; it is tried again")
                await asyncio.sleep(FAILURE_PAUSE_S)

    async def _notices(self, store: MetadataStore, watch: Watch | None = None) -> list[str]:
        """The names of the notices there are. Another name would sort before or after all of them."""
        names = await store.children(znodes.CONFIG_CHANGES, watch)
        return [name for name in names if _NOTICE.fullmatch(name)]

    async def _hear(self, store: MetadataStore, name: str) -> None:
        path = f"{znodes.CONFIG_CHANGES}/{name}"
        try:
            data, stat = await store.get(path)
            if name > self._heard:
                await self._obey(path, data)
                self._heard = name
            if self._now_ms() - stat.ctime_ms > NOTICE_MAX_AGE_MS:
                await store.delete(path)
        except NoNode:
            return

    async def _obey(self, path: str, data: bytes | None) -> None:
        try:
            await self._changed(znodes.decode_config_change(path, data))
        except MalformedNode as error:
            self._malformed.tell_of_notice(error)
        except MetadataStoreError:
            raise
        except Exception:
            log.exception("the change that %s tells of cannot be made", path)
