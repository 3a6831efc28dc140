"""Notices: sequential nodes in a folder, by which one broker tells all of them that something changed.

A notice names what changed; who hears of it reads the thing itself, so that a notice heard twice, or one
heard late, does no harm. Whoever hears also clears away notices older than 15 minutes, as Kafka's brokers do.
"""

import re
from collections.abc import Awaitable, Callable

from kafka_compat.coordination.store.metadata_store import MetadataStore, NoNode, Watch

NOTICE_MAX_AGE_MS = 15 * 60 * 1000


class Notices:
    """The notices of one folder. `heard` is called with the path and the payload of each, in their order."""

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
        """Whether it is known which notices are new."""

    async def pass_over(self, store: MetadataStore) -> None:
        """What the notices that are there tell of is known already."""
        self._last = max(await self._names(store), default=self._last)
        self.has_begun = True

    async def hear(self, store: MetadataStore, watch: Watch) -> None:
        """Hear what is new; `watch` is called when there may be more. MetadataStoreError, and then those that
        were not heard are new still."""
        for name in await self._names(store, watch):
            path = f"{self._folder}/{name}"
            try:
                data, stat = await store.get(path)
                if name > self._last:
                    await self._hears(path, data)
                    self._last = name
                if self._now_ms() - stat.ctime_ms > NOTICE_MAX_AGE_MS:
                    await store.delete(path)
            except NoNode:
                continue

    async def _names(self, store: MetadataStore, watch: Watch | None = None) -> list[str]:
        """The names of the notices there are. Another name would sort before or after all of them."""
        names = await store.children(self._folder, watch)
        return [name for name in names if self._name.fullmatch(name)]
