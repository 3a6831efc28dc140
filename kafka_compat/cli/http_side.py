"""What the brokers of one process serve over HTTP, beside what they serve to clients."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
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
    from kafka_compat.telemetry.pushed import PushedMetrics

log = logging.getLogger(__name__)

_LISTENER = "kafka.compat.http.listener"
_CONTROL = "kafka.compat.control.enable"


def http_side(config: BrokerConfig) -> HttpSide | None:
    """None where the settings name no listener. StartupError. On the event loop of the brokers."""
    if config.str(_LISTENER):
        from kafka_compat.http.listener import HttpListener

        return HttpSide(HttpListener(config), controlled=config.bool(_CONTROL), pushed=_pushed(config))
    if config.bool(_CONTROL):
        raise StartupError(
            f"{_CONTROL}=true needs a listener to be asked at: set {_LISTENER}=http://127.0.0.1:8080 "
            "(port 0: any that is free)"
        )
    return None


def _pushed(config: BrokerConfig) -> PushedMetrics | None:
    """Where what clients push of their metrics goes; None without what reads it, the extra `telemetry`."""
    from kafka_compat.telemetry.pushed import OTLP, PushedMetrics

    if importlib.util.find_spec("opentelemetry") is None or importlib.util.find_spec(OTLP) is None:
        log.info("clients may not push their metrics: pip install kafka-compat[telemetry]")
        return None
    return PushedMetrics(config.int("kafka.compat.client.metrics.series.max"))


class HttpSide:
    """The listener, and what its control API controls."""

    def __init__(
        self, listener: HttpListener, *, controlled: bool, pushed: PushedMetrics | None = None
    ) -> None:
        """`pushed`: where what clients push goes."""
        self._listener = listener
        self._pushed = pushed
        self._control: ControlSide | None = None
        if controlled:
            from kafka_compat.control.side import ControlSide

            self._control = ControlSide()
        self._serving: asyncio.Future[None] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._listener.url

    @property
    def handed_in(self) -> dict[str, Any]:
        """What brokers are to be made with, beside their settings."""
        handed_in = {} if self._control is None else self._control.handed_in
        return handed_in if self._pushed is None else {**handed_in, "pushed": self._pushed}

    def store(self, config: BrokerConfig, connect: Callable[[], Awaitable[EmbeddedSession]]) -> ConnectStore:
        """The way of a broker to the store that it shares with others of this process."""
        if self._control is None:
            return connect
        return self._control.faults.links.through(config, connect, self._control.travel.scheduler)

    def serve(self, brokers: Sequence[Broker[Any]]) -> None:
        """Answer, as soon as what answers is imported."""
        from kafka_compat.metrics.health import Health
        from kafka_compat.metrics.routes import Metrics

        routes = [*Health(brokers).routes(), *Metrics(brokers, self._pushed).routes()]
        if self._control is not None:
            from kafka_compat.control.api import ControlApi

            routes += ControlApi(brokers, self._control).routes()
        self._serving = asyncio.ensure_future(self._listener.serve(routes))

    async def close(self) -> None:
        """Answer no more."""
        if self._serving is not None:
            self._serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._serving
        await self._listener.close()
