"""The HTTP services of the brokers of one process: metrics, health, control API, page, and pushed metrics."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from kafka_compat.config import BrokerConfig
from kafka_compat.errors import StartupError

if TYPE_CHECKING:
    from kafka_compat.broker import Broker, BrokerHooks
    from kafka_compat.cluster.shared_store import ConnectStore
    from kafka_compat.control.hooks import ControlHooks
    from kafka_compat.control.snapshots import SharedTree
    from kafka_compat.coordination.store.embedded import EmbeddedSession
    from kafka_compat.decoding.registry import Registry
    from kafka_compat.http.listener import HttpListener
    from kafka_compat.metrics.scraper import Scraper
    from kafka_compat.otlp.exporter import OtlpExporter
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
_OTLP = ("kafka.compat.otlp.endpoint", "kafka.compat.otlp.headers")


def http_services(config: BrokerConfig) -> HttpServices | None:
    """None where the settings name no listener, and nobody to push to. StartupError. On the event loop of the
    brokers.
    """
    exporter = _exporter(config)
    if config.str(LISTENER):
        from kafka_compat.http.listener import HttpListener

        principal = page_principal(config)
        served = Served(HttpListener(config), config, principal, page_registry(config))
        return HttpServices(_pushed(config), served, exporter)
    for setting in (_CONTROL, _PAGE):
        if config.bool(setting):
            raise StartupError(
                f"{setting}=true needs a listener to be asked at: set {LISTENER}=http://127.0.0.1:8080 "
                "(port 0: any that is free)"
            )
    return None if exporter is None else HttpServices(_pushed(config), None, exporter)


def _exporter(config: BrokerConfig) -> OtlpExporter | None:
    """What pushes metrics, if the settings say to whom. StartupError."""
    endpoint, headers = _OTLP
    if not config.str(endpoint):
        if config.str(headers):
            raise StartupError(f"{headers} is set, and {endpoint} is not: set it to the collector's address")
        return None
    from kafka_compat.otlp.exporter import OtlpExporter
    from kafka_compat.otlp.settings import otlp_settings

    return OtlpExporter(otlp_settings(config))


def hooks_of(services: HttpServices | None) -> BrokerHooks | None:
    """What brokers are created with, where there may be no HTTP services."""
    return None if services is None else services.hooks


def page_principal(config: BrokerConfig) -> Principal | None:
    """Who the page is to the authorizer; None without a page. StartupError."""
    if not config.bool(_PAGE):
        return None
    from kafka_compat.security.acls.bindings import parse_principal

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
    from kafka_compat.telemetry.pushed import PushedMetrics, has_otlp

    if not has_otlp():
        log.info("clients may not push their metrics: pip install kafka-compat[telemetry]")
        return None
    return PushedMetrics(config.int("kafka.compat.client.metrics.series.max"))


class HttpServices:
    """All of it."""

    def __init__(
        self, pushed: PushedMetrics | None, served: Served | None, exporter: OtlpExporter | None
    ) -> None:
        """`pushed` is where what clients push goes, if they may; `served` the listener, and `exporter` what
        pushes metrics, if there are to be such.
        """
        self._pushed = pushed
        self._served = served
        self._exporter = exporter
        self._scraper: Scraper | None = None

    @property
    def url(self) -> str | None:
        """Where it listens."""
        return None if self._served is None else self._served.url

    @property
    def hooks(self) -> BrokerHooks:
        """What brokers are created with, besides their settings."""
        from kafka_compat.broker import BrokerHooks

        if self._served is None or self._served.control is None:
            return BrokerHooks(pushed=self._pushed)
        return self._served.control.for_broker(self._pushed)

    def store(self, config: BrokerConfig, connect: Callable[[], Awaitable[EmbeddedSession]]) -> ConnectStore:
        """The way of a broker to the store that it shares with others of this process."""
        return connect if self._served is None else self._served.store(config, connect)

    def serve(self, brokers: Sequence[Broker], tree: SharedTree | None = None) -> None:
        """Answer, as soon as what answers is imported, and push. Brokers that have started; `tree`: the
        metadata that they alone share.
        """
        from kafka_compat.metrics.scraper import Scraper

        self._scraper = Scraper(brokers, self._pushed)
        if self._served is not None:
            self._served.serve(brokers, self._scraper, tree)
        if self._exporter is not None:
            self._exporter.start(self._scraper)

    async def close(self) -> None:
        """Answer and push no more."""
        if self._exporter is not None:
            await self._exporter.close()
        if self._scraper is not None:
            self._scraper.close()
        if self._served is not None:
            await self._served.close()


class Served:
    """The listener, and what its control API controls."""

    def __init__(
        self,
        listener: HttpListener,
        config: BrokerConfig,
        principal: Principal | None,
        registry: Registry | None,
    ) -> None:
        """`principal` is the page's, if there is to be one, and `registry` what it asks for schemas."""
        self._registry = registry
        self._listener = listener
        self._principal = principal
        self._page_may_write = config.bool(_WRITE)
        self.control: ControlHooks | None = None
        self._watching: asyncio.Future[None] | None = None
        if config.bool(_CONTROL):
            from kafka_compat.control.hooks import ControlHooks

            self.control = ControlHooks()
        self._serving: asyncio.Future[None] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._listener.url

    def store(self, config: BrokerConfig, connect: Callable[[], Awaitable[EmbeddedSession]]) -> ConnectStore:
        """See HttpServices."""
        if self.control is None:
            return connect
        return self.control.faults.links.through(config, connect, self.control.travel.scheduler)

    def serve(self, brokers: Sequence[Broker], scraper: Scraper, tree: SharedTree | None) -> None:
        """Answer, as soon as what answers is imported."""
        from kafka_compat.metrics.health import Health
        from kafka_compat.metrics.routes import metrics_routes

        routes = [*Health(brokers).routes(), *metrics_routes(scraper)]
        if self.control is not None:
            from kafka_compat.control.api import ControlApi

            routes += ControlApi(brokers, self.control, tree).routes()
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
        for task in (self._watching, self._serving):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await self._listener.close()
