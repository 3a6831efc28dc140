"""Types of the requests that arrive at any listener, including controller listeners.

This module is imported only for type checking. Handlers of controller listeners use ListenerContext instead
of RequestContext, because a process that is only a controller has no other services.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kafka_compat.api.caller import Caller
    from kafka_compat.config import BrokerConfig
    from kafka_compat.long_work import LongWork
    from kafka_compat.metadata.cache import MetadataCache
    from kafka_compat.metadata.emulation import Emulation
    from kafka_compat.protocol.api_keys import ApiKey
    from kafka_compat.quorum.node import QuorumNode
    from kafka_compat.quotas.client_quota_manager import Enforcement
    from kafka_compat.security.authorizer import Authorizer
    from kafka_compat.security.principal import Principal
    from kafka_compat.storage.clock import Clock


class ListenerServices(Protocol):
    """The services that requests of all listeners may use."""

    clock: Clock
    long_work: LongWork
    """The scheduler of long-running work on the event loop."""
    authorizer: Authorizer | None
    """The authorizer, or None if all operations are allowed."""
    config: BrokerConfig
    """The static and dynamic settings of this process."""
    served: Mapping[ApiKey, tuple[int, int]]
    """Maps each served API to the versions reported to clients."""
    emulation: Emulation | None
    """The older Kafka version that the broker emulates, or None."""
    metadata: MetadataCache
    quotas: Enforcement | None
    """Enforcement of client quotas, or None if no quotas are stored."""
    quorum: QuorumNode | None
    """The node of the metadata quorum in this process, or None if the cluster has none."""
    is_controller: bool
    """Whether the request arrived at a controller listener."""


class ListenerContext(Protocol):
    """The context of a request (see RequestContext), with the services of all listeners."""

    @property
    def services(self) -> ListenerServices: ...

    @property
    def caller(self) -> Caller: ...

    @property
    def api_version(self) -> int: ...

    @property
    def api_key(self) -> ApiKey: ...

    @property
    def principal(self) -> Principal: ...

    @property
    def client_id(self) -> str | None: ...

    @property
    def client_host(self) -> str: ...

    @property
    def listener_name(self) -> str: ...

    @property
    def long_work(self) -> LongWork: ...

    @property
    def authorizer(self) -> Authorizer | None: ...

    def repeated(self, key: Hashable) -> Any: ...

    def repeat(self, key: Hashable, response: Any) -> None: ...
