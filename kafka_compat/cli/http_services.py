"""HTTP services of a process's brokers: metrics, health, control API, web console, and pushed metrics."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from kafka_compat.errors import StartupError

if TYPE_CHECKING:
    from kafka_compat.broker import Broker, BrokerHooks
    from kafka_compat.broker.quorum_process import QuorumProcess
    from kafka_compat.cluster.shared_store import ConnectStore
    from kafka_compat.config import BrokerConfig
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
_DIALECT = "kafka.compat.metrics.dialect"
_OTLP = ("kafka.compat.otlp.endpoint", "kafka.compat.otlp.headers")


def http_services(config: BrokerConfig) -> HttpServices | None:
    """Create the HTTP services that the settings enable, or return None if they enable none. Call this
    function on the brokers' event loop. Raises StartupError if a setting is invalid.
    """
    exporter = _exporter(config)
    if not config.str(LISTENER):
        for setting in (_CONTROL, _PAGE):
            if config.bool(setting):
                raise StartupError(
                    f"{setting}=true requires an HTTP listener: set {LISTENER}=http://127.0.0.1:8080 (port "
                    "0: any free port)"
                )
        if exporter is None:
            return None
    return HttpServices(config, exporter)


def _exporter(config: BrokerConfig) -> OtlpExporter | None:
    """Return the metrics exporter, if an endpoint is set. Raises StartupError for invalid settings."""
    endpoint, headers = _OTLP
    if not config.str(endpoint):
        if config.str(headers):
            raise StartupError(f"{headers} is set but {endpoint} is not: set it to the collector's address")
        return None
    from kafka_compat.otlp.exporter import OtlpExporter
    from kafka_compat.otlp.settings import otlp_settings

    return OtlpExporter(otlp_settings(config))


def hooks_of(services: HttpServices | None, *, syncs: bool = True) -> BrokerHooks:
    """Return the brokers' hooks, with or without HTTP services. `syncs` is the parameter of BrokerHooks."""
    from kafka_compat.broker import BrokerHooks

    return BrokerHooks(syncs=syncs) if services is None else services.hooks(syncs=syncs)


def page_principal(config: BrokerConfig) -> Principal | None:
    """Return the web console's principal, if enabled. Raises StartupError if the principal is invalid."""
    if not config.bool(_PAGE):
        return None
    from kafka_compat.security.acls.bindings import parse_principal

    text = config.str(_PRINCIPAL) or ""
    try:
        return parse_principal(text)
    except ValueError:
        raise StartupError(f"{_PRINCIPAL}={text}: expected a type and a name, such as User:alice") from None


def page_registry(config: BrokerConfig) -> Registry | None:
    """Return the web console's schema registry, if configured. Raises StartupError for invalid settings."""
    if not (config.bool(_PAGE) and (config.str(_REGISTRY) or config.str(_REGISTRY_USER))):
        return None
    from kafka_compat.decoding.registry import registry_of

    return registry_of(config)


def _pushed(config: BrokerConfig) -> PushedMetrics | None:
    """Return the store for metrics that clients push, or None if the `telemetry` extra is not installed."""
    from kafka_compat.telemetry.pushed import PushedMetrics, has_otlp

    if not has_otlp():
        log.info("Client metrics push is disabled. To enable it, run pip install kafka-compat[telemetry]")
        return None
    return PushedMetrics(config.int("kafka.compat.client.metrics.series.max"))


class HttpServices:
    """The HTTP listener with its routes, and the metrics exporter. Both are optional."""

    def __init__(self, config: BrokerConfig, exporter: OtlpExporter | None) -> None:
        """Bind the HTTP listener. Raises StartupError if a setting is invalid or the address is in use."""
        self._exporter = exporter
        self._listener: HttpListener | None = None
        self._control: ControlHooks | None = None
        self._principal: Principal | None = None
        self._registry: Registry | None = None
        self._page_may_write = config.bool(_WRITE)
        self._dialect = config.str(_DIALECT) or ""
        if config.str(LISTENER):
            from kafka_compat.http.listener import HttpListener

            self._principal = page_principal(config)
            self._listener = HttpListener(config)
            self._registry = page_registry(config)
            if config.bool(_CONTROL):
                from kafka_compat.control.hooks import ControlHooks

                self._control = ControlHooks()
        self._pushed = _pushed(config)
        self._scraper: Scraper | None = None
        self._tasks: list[asyncio.Future[None]] = []

    @property
    def url(self) -> str | None:
        """URL of the HTTP listener, or None if there is none."""
        return None if self._listener is None else self._listener.url

    def hooks(self, *, syncs: bool) -> BrokerHooks:
        """Return hooks that connect brokers to these services. `syncs` is the parameter of BrokerHooks."""
        from kafka_compat.broker import BrokerHooks

        if self._control is None:
            return BrokerHooks(pushed=self._pushed, syncs=syncs)
        return self._control.for_broker(self._pushed, syncs=syncs)

    def store(self, config: BrokerConfig, connect: Callable[[], Awaitable[EmbeddedSession]]) -> ConnectStore:
        """Return the function that connects a broker to this process's shared metadata store."""
        if self._control is None:
            return connect
        return self._control.faults.links.through(config, connect, self._control.travel.scheduler)

    def serve(self, brokers: Sequence[Broker], tree: SharedTree | None = None) -> None:
        """Start serving HTTP requests and pushing metrics. The brokers must be running. `tree` is the
        metadata store that only these brokers share, if there is one.
        """
        from kafka_compat.metrics.scraper import Scraper

        self._scraper = Scraper(brokers, self._pushed)
        if self._listener is not None:
            self._answer(self._listener, brokers, self._scraper, tree)
        if self._exporter is not None:
            self._exporter.start(self._scraper)

    def _answer(
        self, listener: HttpListener, brokers: Sequence[Broker], scraper: Scraper, tree: SharedTree | None
    ) -> None:
        from kafka_compat.metrics.health import Health
        from kafka_compat.metrics.routes import metrics_routes

        routes = [*Health(brokers).routes(), *metrics_routes(scraper)]
        disabled = {}
        if self._control is not None:
            from kafka_compat.control.api import ControlApi

            routes += ControlApi(brokers, self._control, tree).routes()
        else:
            disabled["/control/"] = f"The control API is disabled: set {_CONTROL}=true"
        if self._principal is not None:
            from kafka_compat.page.site import Site

            site = Site(
                brokers,
                listener,
                self._principal,
                self._registry,
                scraper.loop,
                may_write=self._page_may_write,
            )
            routes += site.routes()
            self._tasks.append(asyncio.ensure_future(site.watch()))
        else:
            disabled["/ui"] = f"The web console is disabled: set {_PAGE}=true"
        self._tasks.append(asyncio.ensure_future(listener.serve(routes, disabled)))

    def serve_controller(self, process: QuorumProcess) -> None:
        """Start serving health checks and metrics of a process that is only a controller."""
        if self._listener is not None:
            from kafka_compat.metrics.controller_health import ControllerHealth
            from kafka_compat.metrics.dialects import DIALECTS

            routes = ControllerHealth(process, DIALECTS[self._dialect]).routes()
            # Every absent path gets this advice, most of all /ui and /control/.
            absent = {"/": "This node is only a controller: use the HTTP listener of a broker"}
            self._tasks.append(asyncio.ensure_future(self._listener.serve(routes, absent)))
        if self._exporter is not None:
            log.warning(
                "Ignored kafka.compat.otlp.endpoint, because controllers do not push metrics: read /metrics "
                "on their HTTP listener (kafka.compat.http.listener)"
            )

    async def close(self) -> None:
        """Stop serving and pushing."""
        if self._exporter is not None:
            await self._exporter.close()
        if self._scraper is not None:
            self._scraper.close()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._listener is not None:
            await self._listener.close()
