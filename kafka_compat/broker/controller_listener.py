"""The controller listeners of a node of a metadata quorum: their own server, dispatcher and services."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.api.calls import Calls
from kafka_compat.broker.addresses import bind
from kafka_compat.broker.connection_limits import connection_rates, limits
from kafka_compat.config import ConfigError
from kafka_compat.errors import StartupError
from kafka_compat.handlers.served import CONTROLLER_SERVED
from kafka_compat.lazy import Lazy
from kafka_compat.long_work import LongWork
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.network.dispatch import Dispatcher
from kafka_compat.network.server import Server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_compat.broker.entrances import Entrances
    from kafka_compat.config import BrokerConfig, Listener
    from kafka_compat.metadata.emulation import Emulation
    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.quorum.node import QuorumNode
    from kafka_compat.quotas.client_quota_manager import Enforcement
    from kafka_compat.security.authorizer import Authorizer
    from kafka_compat.storage.clock import Clock

_HANDLERS = "kafka_compat.handlers.controller"
_REMEDY = "Choose another port in listeners and controller.quorum.voters"


class ControllerServices:
    """The services of requests that arrive at controller listeners. Implements ListenerServices."""

    is_controller: bool = True
    quotas: Enforcement | None = None
    emulation: Emulation | None = None

    def __init__(
        self, config: BrokerConfig, clock: Clock, node: QuorumNode, authorizer: Authorizer | None
    ) -> None:
        self.config = config
        self.clock = clock
        self.quorum: QuorumNode | None = node
        self.authorizer = authorizer
        self.served: Mapping[ApiKey, tuple[int, int]] = CONTROLLER_SERVED
        self.metadata = MetadataCache(node.local.cluster_id, node.node_id)
        self.long_work = LongWork(asyncio.get_running_loop())


class ControllerListener:
    """The server of all controller listeners of this node."""

    def __init__(self, config: BrokerConfig, clock: Clock, listeners: tuple[Listener, ...]) -> None:
        """Bind the listeners. Raises StartupError if an address is not available or a setting is invalid."""
        self._config = config
        self._clock = clock
        rates = Lazy(partial(connection_rates, config))
        self.server = Server(limits(config, listeners), rates)
        self.entrances: Entrances | None = None
        """The listeners' authentication, or None if they require none."""
        self._dispatcher: Dispatcher | None = None
        self._services: ControllerServices | None = None
        try:
            for listener in listeners:
                bind(self.server, listener, "node", _REMEDY)
            if any(listener.security_protocol != "PLAINTEXT" for listener in listeners):
                from kafka_compat.broker.entrances import Entrances

                self.entrances = Entrances(config, clock, self.server, listeners)
        except ConfigError as error:
            self.server.stop()
            raise StartupError(error.in_full) from error
        except StartupError:
            self.server.stop()
            raise

    @property
    def bound(self) -> Mapping[str, tuple[str, int]]:
        """Maps listener names to their bound hosts and ports."""
        return self.server.bound

    async def start(self, node: QuorumNode, authorizer: Authorizer | None) -> None:
        """Accept connections of other nodes."""
        services = self._services = ControllerServices(self._config, self._clock, node, authorizer)
        dispatcher = self._dispatcher = Dispatcher(Calls(services, handlers=_HANDLERS))
        await self.server.start(dispatcher.dispatch, dispatcher.refusal)

    def set_authorizer(self, authorizer: Authorizer | None) -> None:
        """Use an authorizer that knows the ACLs of the cluster."""
        if self._services is not None:
            self._services.authorizer = authorizer

    async def stop(self) -> None:
        """Close all connections and listeners."""
        if self._dispatcher is not None:
            await self._dispatcher.stop()
        if self._services is not None:
            self._services.long_work.close()
        self.server.stop()
