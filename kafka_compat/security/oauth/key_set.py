"""The keys of one issuer in memory, fetched at the start, every so often, and when one is missing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from kafka_compat.http_client import Place, Unreachable, ask
from kafka_compat.security.oauth import jwks
from kafka_compat.security.oauth.early_refresh import EarlyRefresh
from kafka_compat.security.oauth.secured import Key

log = logging.getLogger(__name__)


class KeySource(NamedTuple):
    """Where the keys are, and when they are fetched: sasl.oauthbearer.jwks.endpoint.*, in ms."""

    place: Place
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int


class KeySet:
    """Answers from memory; `keep` is a task."""

    def __init__(self, source: KeySource, monotonic_ms: Callable[[], float]) -> None:
        self._source = source
        self._monotonic_ms = monotonic_ms
        self._keys: tuple[Key, ...] = ()
        self._early = EarlyRefresh()
        self._wanted = asyncio.Event()

    def all(self) -> tuple[Key, ...]:
        return self._keys

    def missed(self, kid: str) -> None:
        if self._early.missed(kid, self._monotonic_ms()):
            self._wanted.set()

    async def open(self) -> None:
        """Fetch them for the first time. Raises Unreachable, as the broker then cannot start."""
        await self._fetch()

    async def keep(self) -> None:
        """Fetch them again and again."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._source.refresh_ms / 1000):
                    await self._wanted.wait()
                    await asyncio.sleep(self._early.wait_ms(self._monotonic_ms()) / 1000)
            self._wanted.clear()
            await self._fetch_somehow()

    async def _fetch_somehow(self) -> None:
        """Until it works, or has been tried for as long as Kafka tries; the old keys stay meanwhile."""
        source = self._source
        pause_ms, waited_ms = source.retry_backoff_ms, 0
        while True:
            try:
                await self._fetch()
                return
            except Unreachable as error:
                problem = error
            if waited_ms + pause_ms > source.retry_backoff_max_ms:
                break
            await asyncio.sleep(pause_ms / 1000)
            waited_ms += pause_ms
            pause_ms = max(1, pause_ms * 2)
        log.warning("the keys of %s stay as they are: %s", source.place.url, problem)

    async def _fetch(self) -> None:
        self._early.fetching(self._monotonic_ms())
        content = await ask(self._source.place)
        try:
            keys = await asyncio.to_thread(jwks.parse, content)
        except ValueError as error:
            raise Unreachable(f"what it sends is not understood: {error}") from None
        self._early.fetched(key.kid for key in keys)
        if [key.kid for key in keys] != [key.kid for key in self._keys]:
            log.info("the issuer at %s has %d keys", self._source.place.url, len(keys))
        self._keys = keys
