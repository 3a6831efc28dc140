"""The controller's requests to brokers: one queue for each, sent one by one and in order.

A request that gets no answer is sent again, until the broker's registration is gone or the controller
resigns: the fences of the receiver (controller epoch, leader epochs) make a second copy harmless.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_compat.cluster.broker_client import BrokerClient
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo
from kafka_compat.long_work import LongWork
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.security.broker_security import NONE, BrokerSecurity
from kafka_compat.tasks import OnFailure, Tasks

log = logging.getLogger(__name__)


class ControllerRequest(NamedTuple):
    """A request and what is to be done with its answer. `make` makes it when its turn has come: one of all
    partitions takes its time."""

    api_key: ApiKey
    version: int
    make: Callable[[], Any]
    answered: Callable[[Any], None] | None = None


class BrokerChannels:
    """The channels to the brokers that are registered now."""

    def __init__(
        self,
        client_id: str,
        listener: str,
        request_timeout_ms: int,
        long_work: LongWork,
        security: BrokerSecurity = NONE,
        answered: Callable[[int, float], None] = lambda broker_id, took_ms: None,
    ) -> None:
        """`answered` hears of each answer: of which broker, and how long it took."""
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
        """Open channels to new brokers, and close those of brokers that left or came back."""
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
            if broker_id not in self._channels and endpoint is not None:
                client = BrokerClient(
                    endpoint.host,
                    endpoint.port,
                    self._client_id,
                    request_timeout_ms=self._request_timeout_ms,
                    security=self._security,
                )
                self._channels[broker_id] = _Channel(
                    broker, client, self._tasks, self._long_work, self._answered
                )

    def send(self, broker_id: int, broker_epoch: int, request: ControllerRequest) -> None:
        """Queue a request; dropped when the broker of that epoch is no more."""
        channel = self._channels.get(broker_id)
        if channel is not None and channel.broker.epoch == broker_epoch:
            channel.queue.put_nowait(request)

    @property
    def unsent(self) -> dict[int, int]:
        """How many requests wait to be sent to each broker."""
        return {broker_id: channel.queue.qsize() for broker_id, channel in self._channels.items()}

    async def drained(self) -> None:
        """Wait until everything that was sent so far is answered."""
        await asyncio.gather(*(channel.queue.join() for channel in self._channels.values()))

    async def close(self) -> None:
        """Drop what is queued and close all connections."""
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()
        await self._endings.finish()


class _Channel:
    """The queue of one broker in one of its lives."""

    def __init__(
        self,
        broker: BrokerInfo,
        client: BrokerClient,
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
            f"the controller's requests to broker {broker.broker_id}", self._send_all, OnFailure.RESTART
        )

    async def _send_all(self) -> None:
        while True:
            # No local keeps the last request while the next is waited for.
            await self._send_one(await self.queue.get())

    async def _send_one(self, item: ControllerRequest) -> None:
        began_s = time.monotonic()
        try:
            response = await self._send(item)
            self._answered(self.broker.broker_id, (time.monotonic() - began_s) * 1000)
            if item.answered is not None and response is not None:
                item.answered(response)
        except Exception:
            # The requests behind it are about something else.
            log.exception("%s to broker %d failed", item.api_key.name, self.broker.broker_id)
        finally:
            self.queue.task_done()

    async def _send(self, item: ControllerRequest) -> Any:
        await self._long_work.begin()
        request = item.make()
        while True:
            try:
                return await self._client.send(item.api_key, item.version, request)
            except ConnectionError as error:
                log.info("%s to broker %d: %s", item.api_key.name, self.broker.broker_id, error)
            except MalformedRequest as error:
                log.error("%s to broker %d: its answer: %s", item.api_key.name, self.broker.broker_id, error)
                return None

    async def close(self) -> None:
        await self._sending.stop()
        await self._client.close()
