"""Requests from this broker to the controller, retried if another broker becomes controller."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.cluster.controller_service import NOBODY, ControllerService
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.security.broker_security import NONE, BrokerSecurity

log = logging.getLogger(__name__)

RETRY_S = 0.05
MALFORMED_PAUSE_S = 1.0
"""Backoff in seconds after an unreadable response, because the next response may also be unreadable."""
_ELSEWHERE = (ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_CONTROLLER_EPOCH)

Address = tuple[str, int]


class ControllerLink:
    """A connection to the active controller, which is the broker registered in /controller."""

    def __init__(
        self,
        client_id: str,
        service: ControllerService,
        address_of: Callable[[int], Awaitable[Address | None]],
        request_timeout_ms: int,
        security: BrokerSecurity = NONE,
    ) -> None:
        self._client_id = client_id
        self._service = service
        self._address_of = address_of
        self._request_timeout_ms = request_timeout_ms
        self._security = security
        self._client: BrokerClient | None = None
        self._connecting = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        service.on_controller_changed.append(self._moved)

    def _moved(self) -> None:
        """Stop waiting for responses from the former controller, which may be paused or unreachable."""
        client, self._client = self._client, None
        if client is not None:
            task = asyncio.get_running_loop().create_task(client.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def send(self, api_key: ApiKey, version: int, request: Any) -> Any:
        """Send a request until the active controller responds, and return the response."""
        while True:
            controller_id = self._service.controller_id
            response = await self.send_once(api_key, version, request)
            if response is not None:
                return response
            await self._changed_or_later(controller_id)

    async def send_once(self, api_key: ApiKey, version: int, request: Any) -> Any | None:
        """Send a request once. Return the response, or None if the active controller did not respond."""
        controller_id = self._service.controller_id
        client = await self._to(controller_id)
        if client is None:
            return None
        try:
            response = await client.send(api_key, version, request)
        except ConnectionError:
            return None
        except MalformedRequest as error:
            log.error("Invalid %s response from controller %d: %s", api_key.name, controller_id, error)
            await asyncio.sleep(MALFORMED_PAUSE_S)
            return None
        return None if response.error_code in _ELSEWHERE else response

    async def _changed_or_later(self, controller_id: int) -> None:
        changed = self._service.controller_changed
        if self._service.controller_id != controller_id:
            return
        changed.clear()
        try:
            async with asyncio.timeout(RETRY_S):
                await changed.wait()
        except TimeoutError:
            return

    async def _to(self, controller_id: int) -> BrokerClient | None:
        if controller_id == NOBODY:
            return None
        address = await self._address_of(controller_id)
        if address is None:
            return None
        async with self._connecting:
            client = self._client
            if client is None or (client.host, client.port) != address:
                if client is not None:
                    await client.close()
                client = self._client = BrokerClient(
                    *address,
                    self._client_id,
                    request_timeout_ms=self._request_timeout_ms,
                    security=self._security,
                )
            return client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
