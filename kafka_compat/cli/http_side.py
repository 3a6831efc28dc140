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
    from kafka_compat.decoding.registry import Registry
    from kafka_compat.http.listener import HttpListener
    from kafka_compat.metrics.routes import Metrics
    from kafka_compat.security.principal import Principal
    from kafka_compat.telemetry.pushed import PushedMetrics

log = logging.getLogger(__name__)

LISTENER = "kafka.compat.http.listener"
_CONTROL = "kafka.compat.control.enable"
_PAGE = "kafka.compat.http.page.enable"
_PRINCIPAL = "kafka.compat.http.page.principal"
_WRITE = "kafka.compat.http.page.write.enable"
_REGISTRY = "kafka.compat.schema.registry.url"
_REGISTRY_USER = "kafka.compat.schema.registry.basic.auth.user.info"


def http_side(config: BrokerConfig) -> HttpSide | None:
    """None where the settings name no listener. StartupError. On the event loop of the brokers."""
    if config.str(LISTENER):
        from kafka_compat.http.listener import HttpListener

        principal = page_principal(config)
        return HttpSide(HttpListener(config), config, principal, page_registry(config), _pushed(config))
    for setting in (_CONTROL, _PAGE):
        if config.bool(setting):
            raise StartupError(
                f"{setting}=true needs a listener to be asked at: set {LISTENER}=http://127.0.0.1:8080 "
                "(port 0: any that is free)"
            )
    return None


def handed_in_by(side: HttpSide | None) -> dict[str, Any]:
    """What brokers are to be made with, beside their settings, where there may be no side."""
    return {} if side is None else side.handed_in


def page_principal(config: BrokerConfig) -> Principal | None:
    """Who the page is to the authorizer; None without a page. StartupError."""
    if not config.bool(_PAGE):
        return None
    from kafka_compat.security.acls.model import parse_principal

    text = config.str(_PRINCIPAL) or ""
    try:
        return parse_principal(text)
    except ValueError:
        raise StartupError(f"{_PRINCIPAL}={text}: expected a type and a name, as User:alice") from None


def page_registry(config: BrokerConfig) -> Registry | None:
    """The schema registry that the page asks, if there is a page and one is set. StartupError."""
    if not (config.bool(_PAGE) and (config.str(_REGISTRY) or config.str(_REGISTRY_USER))):
        return None
    from kafka_compat.decoding.registry import registry_of

    return registry_of(config)


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
        self,
        listener: HttpListener,
        config: BrokerConfig,
        principal: Principal | None,
        registry: Registry | None,
        pushed: PushedMetrics | None,
    ) -> None:
        """`principal` is the page's, if there is to be one, and `registry` what it asks for schemas;
        `pushed` is where what clients push goes, if they may."""
        self._registry = registry
        self._pushed = pushed
        self._listener = listener
        self._principal = principal
        self._page_may_write = config.bool(_WRITE)
        self._control: ControlSide | None = None
        self._watching: asyncio.Future[None] | None = None
        if config.bool(_CONTROL):
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

        self._metrics = Metrics(brokers, self._pushed)
        routes = [*Health(brokers).routes(), *self._metrics.routes()]
        if self._control is not None:
            from kafka_compat.control.api import ControlApi

            routes += ControlApi(brokers, self._control).routes()
        if self._principal is not None:
            from kafka_compat.page.site import Site

            site = Site(
                brokers, self._listener, self._principal, self._registry, may_write=self._page_may_write
            )
            routes += site.routes()
            self._watching = asyncio.ensure_future(site.watch())
        self._serving = asyncio.ensure_future(self._listener.serve(routes))

    async def close(self) -> None:
        """Answer no more."""
        if self._metrics is not None:
            self._metrics.close()
        for task in (self._watching, self._serving):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await self._listener.close()
