"""The pump between `follower` and the leaders: one task and one connection for each broker that is followed.

Rules
1. One request is under way to a leader at a time.
2. After a lost connection a new one is made, to where the leader listens then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol
from uuid import UUID

from kafka_compat.clock import Clock
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.replication.follower import LIST_OFFSETS_VERSION, Follower, FollowerSettings
from kafka_compat.replication.partition import Partition

log = logging.getLogger(__name__)


class Client(Protocol):
    """A connection to a broker."""

    async def send(self, api_key: ApiKey, version: int, request: Any) -> Any:
        """The response; raises ConnectionError."""

    async def close(self) -> None: ...


Connect = Callable[[int], Client | None]
"""A new client for a broker, None as long as nobody knows where it listens."""


class ReplicaFetchers:
    """Fetches for every partition that follows; see `replica_manager.Fetching`."""

    def __init__(self, local_id: int, settings: FollowerSettings, connect: Connect, clock: Clock) -> None:
        self._local_id = local_id
        self._settings = settings
        self._connect = connect
        self._clock = clock
        self._fetchers: dict[int, ReplicaFetcher] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def start(self, partition: Partition, topic_id: UUID) -> None:
        """Fetch from `partition.leader_id` in `partition.leader_epoch` from now on, in place of before."""
        leader_id = partition.leader_id
        self._stop(partition, but=leader_id)
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            fetcher = ReplicaFetcher(self._local_id, leader_id, self._settings, self._connect, self._clock)
            self._fetchers[leader_id] = fetcher
        fetcher.follower.add(partition, topic_id)

    def stop(self, partition: Partition) -> None:
        """Fetch no more for it. When this returns, nothing more is written to its log."""
        self._stop(partition, but=None)

    def _stop(self, partition: Partition, but: int | None) -> None:
        for leader_id, fetcher in list(self._fetchers.items()):
            if leader_id == but:
                continue
            fetcher.follower.remove(partition)
            if not len(fetcher.follower):
                del self._fetchers[leader_id]
                task = asyncio.get_running_loop().create_task(fetcher.close())
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Stop fetching for all."""
        fetchers, self._fetchers = list(self._fetchers.values()), {}
        await asyncio.gather(*(fetcher.close() for fetcher in fetchers), *self._ending)


class ReplicaFetcher:
    """Fetches from one leader."""

    def __init__(
        self, local_id: int, leader_id: int, settings: FollowerSettings, connect: Connect, clock: Clock
    ) -> None:
        self._leader_id = leader_id
        self._connect = connect
        self._clock = clock
        self._client: Client | None = None
        self._woken = asyncio.Event()
        self.follower = Follower(local_id, settings, self._woken.set)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._disconnect()

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                if not await self._exchange():
                    await self._rest()
            except (ConnectionError, MalformedRequest) as error:
                log.info("fetching from broker %d: %s", self._leader_id, error)
                self.follower.lost(self._clock.now_ms())
                await self._disconnect()
            except Exception:
                # A fetcher that died would leave its partitions behind for ever.
                log.exception("fetching from broker %d failed", self._leader_id)
                self.follower.lost(self._clock.now_ms())

    async def _exchange(self) -> bool:
        """One request and its answer; False when there is nothing to ask."""
        follower = self.follower
        lookup = follower.next_lookup(self._clock.now_ms())
        if lookup is not None:
            response = await self._send(ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, lookup.request)
            follower.looked_up(lookup, response, self._clock.now_ms())
            return True
        fetch = follower.next_fetch(self._clock.now_ms())
        if fetch is None:
            return False
        response = await self._send(ApiKey.FETCH, fetch.version, fetch.request)
        follower.fetched(fetch, response, self._clock.now_ms())
        return True

    async def _send(self, api_key: ApiKey, version: int, request: Any) -> Any:
        if self._client is None:
            self._client = self._connect(self._leader_id)
            if self._client is None:
                raise ConnectionError("nobody knows where it listens")
        return await self._client.send(api_key, version, request)

    async def _rest(self) -> None:
        wait_ms = self.follower.wait_ms(self._clock.now_ms())
        try:
            async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
