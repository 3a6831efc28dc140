"""Fetch from leaders, for the partitions that this broker follows. Each leader has `num.replica.fetchers`
tasks, each with its own connection.

Rules
1. A fetcher has at most one request in flight.
2. After its connection is lost, a fetcher reconnects to the leader's current address.
3. As in Kafka, the topic name and partition number determine the fetcher. When the number of fetchers
   changes, partitions are redistributed.
4. The callback for a response sends the next Fetch request, because producers with acks=all wait for its
   fetch offset. If there is nothing to fetch, or after a failure, the fetcher's task sends the next request.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol
from uuid import UUID

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.replication.follower import Follower, FollowerSettings
from kafka_compat.replication.follower_requests import SentFetch
from kafka_compat.replication.partition import Partition
from kafka_compat.replication.replication_quota import ReplicationQuota
from kafka_compat.storage.clock import Clock
from kafka_compat.tasks import Tasks

log = logging.getLogger(__name__)

_INT_MAX: Final = 2**31 - 1
_INT_MASK: Final = 2**32 - 1
_RATE_WINDOW_S: Final = 60


class Client(Protocol):
    """Interface of a client for one broker."""

    async def send(self, api_key: ApiKey, version: int, request: Any) -> Any:
        """Send a request and return the response. Raises ConnectionError if the connection fails."""

    async def connect(self) -> None:
        """Open a connection for `ask`, unless one is open. Raises ConnectionError if this fails."""

    def ask(self, api_key: ApiKey, version: int, request: Any, on_response: Callable[[Any], None]) -> None:
        """Send a request, and later call `on_response` with the response or the exception. Byte fields of the
        response are valid until `on_response` returns.
        """

    async def close(self) -> None: ...


Connect = Callable[[int], Client | None]
"""A function that returns a new client for a broker, or None while the broker's address is unknown."""


def fetcher_of(topic: str, partition: int, count: int) -> int:
    """Return the index, from 0 to `count` - 1, of the fetcher for a partition. Kafka uses the same hash."""
    code = 0
    units = topic.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & _INT_MASK
    code = (31 * code + partition) & _INT_MASK
    magnitude = code if code <= _INT_MAX else _INT_MASK + 1 - code
    return (0 if magnitude > _INT_MAX else magnitude) % count


class ReplicaFetchers:
    """The fetchers for all partitions that this broker follows. Implements `replica_manager.Fetching`."""

    def __init__(
        self,
        local_id: int,
        settings: FollowerSettings,
        connect: Connect,
        clock: Clock,
        *,
        fetchers_per_leader: int = 1,
        quota: ReplicationQuota | None = None,
    ) -> None:
        self._local_id = local_id
        self._settings = settings
        self._connect = connect
        self._clock = clock
        self._count = fetchers_per_leader
        self._quota = quota if quota is not None else ReplicationQuota()
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        """Maps (leader ID, fetcher index) to fetchers."""
        self._tasks = Tasks()
        self._endings = Tasks()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._fetchers)

    def running(self) -> "list[tuple[int, int, ReplicaFetcher]]":
        """Return the leader ID, index and fetcher of each active fetcher."""
        return [(leader, number, fetcher) for (leader, number), fetcher in self._fetchers.items()]

    def start(self, partition: Partition, topic_id: UUID) -> None:
        """Fetch from `partition.leader_id` in `partition.leader_epoch`, instead of any earlier epoch.

        Does nothing after `close`, because a controller request may still be in progress when a broker stops.
        """
        if self._is_closed:
            return
        key = (partition.leader_id, fetcher_of(partition.topic, partition.partition, self._count))
        self._stop(partition, but=key)
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            fetcher = ReplicaFetcher(
                self._local_id, key[0], self._settings, self._connect, self._clock, self._quota, self._tasks
            )
            self._fetchers[key] = fetcher
        fetcher.follower.add(partition, topic_id)

    def stop(self, partition: Partition) -> None:
        """Stop fetching the partition. After this call, fetchers no longer write to its log."""
        self._stop(partition, but=None)

    def resize(self, fetchers_per_leader: int) -> None:
        """Apply a new value of num.replica.fetchers."""
        if fetchers_per_leader == self._count:
            return
        self._count = fetchers_per_leader
        moved = [item for fetcher in self._fetchers.values() for item in fetcher.follower.remove_all()]
        for partition, topic_id in moved:
            self.start(partition, topic_id)
        self._end_idle()

    def _stop(self, partition: Partition, but: tuple[int, int] | None) -> None:
        for key, fetcher in self._fetchers.items():
            if key != but:
                fetcher.follower.remove(partition)
        self._end_idle(but)

    def _end_idle(self, but: tuple[int, int] | None = None) -> None:
        for key, fetcher in list(self._fetchers.items()):
            if key != but and not len(fetcher.follower):
                del self._fetchers[key]
                self._endings.spawn(f"closing the fetcher of broker {key[0]}", fetcher.close)

    async def close(self) -> None:
        """Stop fetching for all partitions."""
        self._is_closed = True
        fetchers, self._fetchers = list(self._fetchers.values()), {}
        await asyncio.gather(*(fetcher.close() for fetcher in fetchers))
        await self._endings.finish()


class ReplicaFetcher:
    """A task that fetches from one leader, over one connection."""

    def __init__(
        self,
        local_id: int,
        leader_id: int,
        settings: FollowerSettings,
        connect: Connect,
        clock: Clock,
        quota: ReplicationQuota,
        tasks: Tasks,
    ) -> None:
        self._leader_id = leader_id
        self._connect = connect
        self._clock = clock
        self._list_offsets_version = settings.list_offsets_version
        self._client: Client | None = None
        self._woken = asyncio.Event()
        self._fetching: asyncio.Future[None] | None = None
        """A future that completes when the current sequence of fetches ends."""
        self.follower = Follower(local_id, settings, self._woken.set, quota)
        self.requests = 0
        """The number of Fetch requests that have been sent."""
        self._requests_by_second: deque[tuple[float, int]] | None = None
        self._running = tasks.spawn(f"fetching from broker {leader_id}", self._run, restarts=True)

    def sample_rate(self, now_s: float) -> None:
        """Record the number of Fetch requests for `rate`. Call this every second, with a monotonic time."""
        if self._requests_by_second is None:
            self._requests_by_second = deque(maxlen=_RATE_WINDOW_S + 1)
        self._requests_by_second.append((now_s, self.requests))

    def rate(self, now_s: float) -> float:
        """Return the Fetch requests per second over the last minute, or 0 before the first sample."""
        if not self._requests_by_second:
            return 0.0
        since_s, before = self._requests_by_second[0]
        return (self.requests - before) / (now_s - since_s) if now_s > since_s else 0.0

    async def close(self) -> None:
        await self._running.stop()
        self._fetching = None  # Break a reference cycle: the traceback of its error refers to this object.
        await self._disconnect()

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                if not await self._exchange():
                    await self._rest()
            except (ConnectionError, MalformedRequest) as error:
                log.info("Could not fetch from broker %d: %s; retrying", self._leader_id, error)
                self.follower.lost(self._clock.monotonic_ms())
                await self._disconnect()
            except Exception:
                # Continue after any error: otherwise, these partitions would no longer be fetched.
                log.exception("Could not fetch from broker %d; retrying", self._leader_id)
                self.follower.lost(self._clock.monotonic_ms())

    async def _exchange(self) -> bool:
        """Send one ListOffsets request, or a sequence of Fetch requests. Return False if none is needed."""
        follower = self.follower
        lookup = follower.next_lookup(self._clock.monotonic_ms())
        if lookup is not None:
            response = await self._connected().send(
                ApiKey.LIST_OFFSETS, self._list_offsets_version, lookup.request
            )
            follower.looked_up(lookup, response, self._clock.monotonic_ms())
            return True
        fetch = follower.next_fetch(self._clock.monotonic_ms())
        if fetch is None:
            return False
        client = self._connected()
        await client.connect()
        self._fetching = asyncio.get_running_loop().create_future()
        self._fetch(client, fetch)
        del fetch  # Release the memory of the request, because this coroutine may wait for a long time.
        await self._fetching
        return True

    def _fetch(self, client: Client, fetch: SentFetch) -> None:
        self.requests += 1
        client.ask(ApiKey.FETCH, fetch.version, fetch.request, partial(self._fetched, client, fetch))

    def _fetched(self, client: Client, fetch: SentFetch, response: Any) -> None:
        fetching = self._fetching
        if fetching is None or fetching.done():
            return  # The fetcher was closed.
        if isinstance(response, Exception):
            fetching.set_exception(response)
            return
        try:
            now_ms = self._clock.monotonic_ms()
            self.follower.fetched(fetch, response, now_ms)
            following = None
            if self.follower.next_lookup(now_ms) is None:
                following = self.follower.next_fetch(now_ms)
            if following is None:
                fetching.set_result(None)
            else:
                self._fetch(client, following)
        except Exception as error:
            fetching.set_exception(error)
        finally:
            # Delete the future to break a reference cycle: the traceback of its error refers to this frame.
            del fetching

    def _connected(self) -> Client:
        if self._client is None:
            self._client = self._connect(self._leader_id)
            if self._client is None:
                raise ConnectionError("its address is unknown")
        return self._client

    async def _rest(self) -> None:
        wait_ms = self.follower.wait_ms(self._clock.monotonic_ms())
        try:
            async with asyncio.timeout(None if wait_ms is None else wait_ms / 1000):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
