"""Protocols of the request context and the broker services that a Fetch request uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig
    from kafka_compat.long_work import LongWork
    from kafka_compat.metadata.cache import MetadataCache
    from kafka_compat.quotas.client_quota_manager import Enforcement
    from kafka_compat.replication.fetch_session import FetchSessionCache
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.security.principal import Principal
    from kafka_compat.storage.clock import Clock


class FetchServices(Protocol):
    """The broker services that a Fetch request uses."""

    clock: Clock
    config: BrokerConfig
    metadata: MetadataCache
    replicas: ReplicaManager
    quotas: Enforcement | None
    """The client quotas, or None if no client has a quota."""

    @property
    def fetch_sessions(self) -> FetchSessionCache: ...


class FetchContext(Protocol):
    """The request context that a Fetch request uses (see `kafka_compat.api.handler`)."""

    @property
    def services(self) -> FetchServices: ...

    @property
    def has_left(self) -> bool:
        """Whether the client has disconnected."""

    @property
    def sendfile_bytes_min(self) -> int:
        """The minimum size in bytes of file slices that are sent with sendfile."""

    @property
    def api_version(self) -> int: ...

    @property
    def principal(self) -> Principal: ...

    @property
    def client_id(self) -> str | None: ...

    @property
    def long_work(self) -> LongWork: ...
