"""What the brokers of one process serve over HTTP, beside what they serve to clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from kafka_compat.config import BrokerConfig
from kafka_compat.errors import StartupError

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.cluster.session import ConnectStore
    from kafka_compat.control.side import ControlSide
    from kafka_compat.coordination.embedded import EmbeddedSession
    from kafka_compat.http.listener import HttpListener
    from kafka_compat.metrics.routes import Metrics

_LISTENER = "kafka.compat.http.listener"
_CONTROL = "kafka.compat.control.enable"


def http_side(config: BrokerConfig) -> HttpSide | None:
    """None where the settings name no listener. StartupError. On the event loop of the brokers."""
    if config.str(_LISTENER):
        from kafka_compat.http.listener import HttpListener

        return HttpSide(HttpListener(config), controlled=config.bool(_CONTROL))
    if config.bool(_CONTROL):
        raise StartupError(
            f"{_CONTROL}=true needs a listener to be asked at: set {_LISTENER}=http://127.0.0.1:8080 "
            "(port 0: any that is free)"
        )
    return None


class HttpSide:
    """The listener, and what its control API controls."""

    def __init__(self, listener: HttpListener, *, controlled: bool) -> None:
        self._listener = listener
        self._control: ControlSide | None = None
        if controlled:
            from kafka_compat.control.side import ControlSide

            self._control = ControlSide()
        self._metrics: Metrics | None = None
        self._serving: asyncio.Future[None] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._listener.url

    @property
    def handed_in(self) -> dict[str, Any]:
        """What brokers are to be made with, beside their settings."""
        return {} if self._control is None else self._control.handed_in

    def store(self, config: BrokerConfig, connect: Callable[[], Awaitable[EmbeddedSession]]) -> ConnectStore:
        """The way of a broker to the store that it shares with others of this process."""
        if self._control is None:
            return connect
        return self._control.faults.links.through(config, connect, self._control.travel.scheduler)

    def serve(self, brokers: Sequence[Broker[Any]]) -> None:
        """Answer, as soon as what answers is imported."""
        from kafka_compat.metrics.health import Health
        from kafka_compat.metrics.routes import Metrics

        self._metrics = Metrics(brokers)
        routes = [*Health(brokers).routes(), *self._metrics.routes()]
        if self._control is not None:
            from kafka_compat.control.api import ControlApi

            routes += ControlApi(brokers, self._control).routes()
        self._serving = asyncio.ensure_future(self._listener.serve(routes))

    async def close(self) -> None:
        """Answer no more."""
        if self._metrics is not None:
            self._metrics.close()
        if self._serving is not None:
            self._serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._serving
        await self._listener.close()
