"""Enforcement of the stored quotas on this broker. Quotas are loaded at startup and reloaded after each
change notification.

Without quotas, requests have no quota overhead. The first stored quota adds the stages of
`client_quota_manager` to the calls, and the removal of the last quota removes the stages. Requests in
progress are not affected.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import TYPE_CHECKING

from kafka_compat.coordination.nodes.entity_settings import entity_paths, stored_settings
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.lazy import Lazy
from kafka_compat.tasks import asked_for_all

if TYPE_CHECKING:
    from kafka_compat.api.calls import Calls
    from kafka_compat.broker.services import BrokerServices
    from kafka_compat.cluster.broker_context import BrokerContext
    from kafka_compat.quotas.client_quota_manager import Enforcement
    from kafka_compat.quotas.connection_rates import ConnectionRates

log = logging.getLogger(__name__)

_READS_AT_ONCE = 100


class QuotasInForce:
    def __init__(
        self, context: BrokerContext, services: BrokerServices, calls: Calls, rates: Lazy[ConnectionRates]
    ) -> None:
        self._store = context.store
        self._config = context.config
        self._clock = context.clock
        self._services = services
        self._calls = calls
        self._rates = rates
        self._enforcement: Lazy[Enforcement] = Lazy(self._make_enforcement)
        context.entity_changes.listeners.append(self.reread)

    async def load(self) -> None:
        """Load and apply the stored quotas."""
        await asked_for_all(await entity_paths(self._store), self._read, _READS_AT_ONCE)
        self._switch()

    async def reread(self, entity_path: str) -> None:
        """Reload the quotas of a user, a client or an address."""
        await self._read(entity_path)
        self._switch()

    async def _read(self, path: str) -> None:
        from kafka_compat.coordination.nodes.znodes import entity_name

        try:
            stored = await stored_settings(self._store, f"/config/{path}")
            match path.split("/"):
                case ["clients", client]:
                    self._put("", entity_name(client), stored)
                case ["users", user]:
                    self._put(entity_name(user), "", stored)
                case ["users", user, "clients", client]:
                    self._put(entity_name(user), entity_name(client), stored)
                case ["ips", address]:
                    await self._put_address(entity_name(address), stored.get(CONNECTION_RATE))
        except (MalformedNode, ValueError, OSError) as error:
            log.error("Could not read the quotas of %s: %s; keeping the previous quotas", path, error)

    def _put(self, user: str | None, client_id: str | None, stored: dict[str, str]) -> None:
        if self._enforcement.made is not None or any(name in _CLIENT_QUOTAS for name in stored):
            self._enforcement.get().put(user, client_id, stored)

    async def _put_address(self, host: str | None, rate: str | None) -> None:
        if rate is None and self._rates.made is None:
            return
        address = None
        if host is not None:
            # Resolve the host, because a quota may be stored under a host name.
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
            address = str(found[0][4][0])
        self._rates.get().limit_address(address, None if rate is None else int(rate))

    def _switch(self) -> None:
        enforcement = self._enforcement.made
        if enforcement is None:
            return
        before = self._services.quotas
        self._services.quotas = enforcement if enforcement.has_any else None
        if before is self._services.quotas:
            return
        if before is None:
            self._calls.set_quota(enforcement.throttle, enforcement.sent)
        else:
            self._calls.set_quota(None)

    def _make_enforcement(self) -> Enforcement:
        from kafka_compat.quotas.client_quota_manager import Enforcement
        from kafka_compat.quotas.rates import mutation_windows, quota_windows

        setting = self._config.int
        return Enforcement(self._clock.monotonic_ms, quota_windows(setting), mutation_windows(setting))


CONNECTION_RATE = "connection_creation_rate"
_CLIENT_QUOTAS = frozenset(
    ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
)
