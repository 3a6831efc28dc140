"""Connections to another node of the quorum, with the API versions that the node reports.

Rules
1. Requests of one lane share a connection, and are sent and answered in order. A fetch may wait at the other
   node, so it has a lane of its own; otherwise, votes would wait behind it.
2. ApiVersions is the first request of each connection, so the versions fit the process that responds, also
   after an upgrade.
3. A request without a response fails. The caller decides whether to repeat it, because the other node may
   have processed it.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from kafka_compat.security.broker_security import BrokerSecurity

_API_VERSIONS_VERSION: Final = 3
_RECONNECT_BACKOFF_MAX_MS: Final = 100
"""A node that restarts is reached again sooner than with the backoff between brokers, because an election may
wait for its vote.
"""

Done = Callable[[Any], None]
"""A callback that receives the response or an exception. The bytes of a response are valid until it returns.
"""


class Lane(Enum):
    """Requests that share a connection."""

    CONTROL = "control"
    FETCH = "fetch"
    APPEND = "append"
    SNAPSHOT = "snapshot"
    FORWARDED = "forwarded"


class NotSupported(Exception):
    """The other node supports no common version of an API."""


class _Queued(NamedTuple):
    api_key: ApiKey
    versions: tuple[int, int]
    make: Callable[[int], Any]
    done: Done


class PeerConnections:
    """The connections to one address."""

    def __init__(
        self, host: str, port: int, client_id: str, request_timeout_ms: int, security: BrokerSecurity
    ) -> None:
        self._new_client = partial(
            BrokerClient,
            host,
            port,
            client_id,
            request_timeout_ms=request_timeout_ms,
            connect_timeout_ms=request_timeout_ms,
            reconnect_backoff_max_ms=_RECONNECT_BACKOFF_MAX_MS,
            security=security,
        )
        self._lanes: dict[Lane, _Connection] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def send(
        self,
        lane: Lane,
        api_key: ApiKey,
        versions: tuple[int, int],
        make: Callable[[int], Any],
        done: Done,
    ) -> None:
        """Send a request in the highest common version. `make` returns the request of a version.

        `done` is called later with the response, or with ConnectionError, MalformedRequest or NotSupported.
        """
        connection = self._lanes.get(lane)
        if connection is None:
            connection = self._lanes[lane] = _Connection(self._new_client())
        connection.send(_Queued(api_key, versions, make, done))

    def drop(self, lane: Lane) -> None:
        """Close the connection of a lane. Its requests fail, and later requests use a new connection."""
        connection = self._lanes.pop(lane, None)
        if connection is not None:
            task = asyncio.get_running_loop().create_task(connection.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close the connections. Requests without a response fail."""
        for lane in list(self._lanes):
            self.drop(lane)
        for task in list(self._closing):
            await asyncio.wait([task])


class _Connection:
    def __init__(self, client: BrokerClient) -> None:
        self._client = client
        self._versions: Mapping[int, tuple[int, int]] | None = None
        """The versions that the other node reported on the present connection, or None before."""
        self._queue: deque[_Queued] = deque()
        self._opening: asyncio.Task[None] | None = None

    def send(self, queued: _Queued) -> None:
        if self._opening is None and self._versions is not None and self._ask(queued, self._versions):
            return
        self._queue.append(queued)
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        try:
            self._versions = None
            await self._client.connect()
            request = ApiVersionsRequest(client_software_name="kafka-compat", client_software_version="1")
            response = await self._client.send(ApiKey.API_VERSIONS, _API_VERSIONS_VERSION, request)
            if response.error_code != ErrorCode.NONE:
                raise ConnectionError(f"ApiVersions failed: {known_code(response.error_code).name}")
            versions = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        except (ConnectionError, MalformedRequest) as error:
            self._opening = None
            self._fail(error)
            return
        self._versions, self._opening = versions, None
        while self._queue:
            if not self._ask(self._queue[0], versions):
                self._fail(ConnectionError("the connection was lost"))
                return
            self._queue.popleft()

    def _ask(self, queued: _Queued, versions: Mapping[int, tuple[int, int]]) -> bool:
        """Send a request over the open connection. Return False if there is none."""
        low, high = versions.get(queued.api_key, (0, -1))
        version = min(high, queued.versions[1])
        if version < max(low, queued.versions[0]):
            problem = NotSupported(f"{queued.api_key.name} {queued.versions} of {low, high}")
            asyncio.get_running_loop().call_soon(queued.done, problem)
            return True
        try:
            self._client.ask(queued.api_key, version, queued.make(version), queued.done)
        except ConnectionError:
            return False
        return True

    def _fail(self, error: Exception) -> None:
        queue, self._queue = self._queue, deque()
        for queued in queue:
            queued.done(error)

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
            self._opening = None
        await self._client.close()
        self._fail(ConnectionError("the client was closed"))


def is_refused(error: object) -> bool:
    """Return whether nothing listens at the address, so that the other process is not running."""
    cause = error.__cause__ if isinstance(error, Exception) else None
    return isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED
