"""Request queues from the controller to the brokers. Each broker has one queue, from which requests are sent
one at a time. Requests to the controller's own broker stay in the process.

A request without a response is sent again until the broker is no longer registered or the controller resigns.
Duplicates are harmless, because the receiver checks the controller epoch and leader epochs.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, Endpoint
from kafka_compat.long_work import LongWork
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.tasks import Tasks

if TYPE_CHECKING:
    from kafka_compat.cluster.broker_client import BrokerClient
    from kafka_compat.security.broker_security import BrokerSecurity

log = logging.getLogger(__name__)


class ControllerRequest(NamedTuple):
    """A request from the controller, and the handler of its response.

    `send` sends the request over a connection (None for the controller's own broker), and returns the
    response. It is called again after a ConnectionError, and builds the message only when called, because
    encoding all partitions takes time.
    """

    name: str
    send: Callable[[BrokerClient | None], Awaitable[Any]]
    answered: Callable[[Any], None] | None = None


class BrokerChannels:
    """The queues for requests to all registered brokers."""

    def __init__(
        self,
        client_id: str,
        listener: str,
        request_timeout_ms: int,
        long_work: LongWork,
        local_id: int,
        security: Callable[[], BrokerSecurity],
        answered: Callable[[int, float], None] = lambda broker_id, took_ms: None,
    ) -> None:
        """`local_id` is the ID of this process's broker. `answered` is called after each response, with the
        broker ID and the duration of the request in milliseconds.
        """
        self._local_id = local_id
        self._answered = answered
        self._client_id = client_id
        self._listener = listener
        self._request_timeout_ms = request_timeout_ms
        self._security = security
        self._long_work = long_work
        self._channels: dict[int, _Channel] = {}
        self._tasks = Tasks()
        self._endings = Tasks()

    def set_brokers(self, brokers: tuple[BrokerInfo, ...]) -> None:
        """Keep one queue for each of these brokers. A broker with a new epoch or address gets a new queue."""
        alive = {broker.broker_id: broker for broker in brokers}
        for broker_id, channel in list(self._channels.items()):
            known = alive.get(broker_id)
            if (
                known is None
                or known.epoch != channel.broker.epoch
                or known.endpoints != channel.broker.endpoints
            ):
                del self._channels[broker_id]
                self._endings.spawn(f"closing the channel to broker {broker_id}", channel.close)
        for broker_id, broker in alive.items():
            endpoint = broker.endpoint(self._listener)
            if broker_id not in self._channels and (endpoint is not None or broker_id == self._local_id):
                client = None if endpoint is None or broker_id == self._local_id else self._client(endpoint)
                self._channels[broker_id] = _Channel(
                    broker, client, self._tasks, self._long_work, self._answered
                )

    def _client(self, endpoint: Endpoint) -> BrokerClient:
        from kafka_compat.cluster.broker_client import BrokerClient

        return BrokerClient(
            endpoint.host,
            endpoint.port,
            self._client_id,
            request_timeout_ms=self._request_timeout_ms,
            security=self._security(),
        )

    def send(self, broker_id: int, broker_epoch: int, request: ControllerRequest) -> None:
        """Queue a request, or drop it if the broker is no longer registered with this epoch."""
        channel = self._channels.get(broker_id)
        if channel is not None and channel.broker.epoch == broker_epoch:
            channel.queue.put_nowait(request)

    @property
    def unsent(self) -> dict[int, int]:
        """The number of queued requests for each broker."""
        return {broker_id: channel.queue.qsize() for broker_id, channel in self._channels.items()}

    async def drained(self) -> None:
        """Wait until all requests queued so far have been processed."""
        await asyncio.gather(*(channel.queue.join() for channel in self._channels.values()))

    async def close(self) -> None:
        """Drop queued requests and close all connections."""
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()
        await self._endings.finish()


class _Channel:
    def __init__(
        self,
        broker: BrokerInfo,
        client: BrokerClient | None,
        tasks: Tasks,
        long_work: LongWork,
        answered: Callable[[int, float], None],
    ) -> None:
        self.broker = broker
        self.queue: asyncio.Queue[ControllerRequest] = asyncio.Queue()
        self._answered = answered
        self._client = client
        self._long_work = long_work
        self._sending = tasks.spawn(
            f"sending controller requests to broker {broker.broker_id}", self._send_all, restarts=True
        )

    async def _send_all(self) -> None:
        while True:
            # Do not keep the request in a variable: it would use memory until the next request arrives.
            await self._send_one(await self.queue.get())

    async def _send_one(self, item: ControllerRequest) -> None:
        began_s = time.monotonic()
        try:
            response = await self._send(item)
            self._answered(self.broker.broker_id, (time.monotonic() - began_s) * 1000)
            if item.answered is not None and response is not None:
                item.answered(response)
        except Exception:
            # Continue, because later requests do not depend on this request.
            log.exception("Could not send %s to broker %d", item.name, self.broker.broker_id)
        finally:
            self.queue.task_done()

    async def _send(self, item: ControllerRequest) -> Any:
        await self._long_work.begin()
        while True:
            try:
                return await item.send(self._client)
            except ConnectionError as error:
                log.info(
                    "Could not send %s to broker %d: %s; retrying", item.name, self.broker.broker_id, error
                )
            except MalformedRequest as error:
                log.error("Invalid %s response from broker %d: %s", item.name, self.broker.broker_id, error)
                return None

    async def close(self) -> None:
        await self._sending.stop()
        if self._client is not None:
            await self._client.close()
