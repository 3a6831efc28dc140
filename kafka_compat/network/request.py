"""What a handler is told of a request, and how it says which API it serves.

    @handler(ApiKey.HEARTBEAT, 0, 4)
    def heartbeat(ctx: RequestContext[HasGroups], request: HeartbeatRequest) -> HeartbeatResponse:

The declaration is the one place where an API's versions stand: `kafka_compat.handlers.served` is generated
from it, and ApiVersions tells clients what is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from kafka_compat.network.declaration import Declaration, Handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.pending import PENDING

if TYPE_CHECKING:
    from kafka_compat.long_work import LongWork
    from kafka_compat.network.api import Api
    from kafka_compat.network.connection import Connection
    from kafka_compat.network.output import Slot
    from kafka_compat.security.authorizer import Authorizer
    from kafka_compat.security.principal import Principal

Function = TypeVar("Function", bound=Callable[..., Any])
Services = TypeVar("Services", covariant=True)


class HasLongWork(Protocol):
    """What every broker has."""

    @property
    def long_work(self) -> LongWork: ...


def handler(
    api_key: ApiKey, low: int, high: int, *, cluster: bool = False, telemetry: bool = False
) -> Callable[[Function], Handler[Function]]:
    """Mark the function that serves an API from version `low` to version `high`; its name is the API's.

    `cluster`: a broker that is alone does not serve it. `telemetry`: nor one that has nothing to do with what
    clients push of their metrics.
    """

    def mark(function: Function) -> Handler[Function]:
        if function.__name__ != api_key.name.lower():
            raise TypeError(f"the handler of {api_key.name} is named {function.__name__}")
        return Handler(Declaration(api_key, low, high, cluster, telemetry), function)

    return mark


class RequestContext(Generic[Services]):
    """What a handler may know of the request and its connection, and the services that it uses."""

    __slots__ = (
        "_api",
        "_early",
        "_slot",
        "api_version",
        "client_id",
        "connection",
        "correlation_id",
        "frame_is_kept",
        "principal",
        "services",
    )

    def __init__(
        self,
        services: Services,
        connection: Connection,
        api: Api,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
    ) -> None:
        self.services = services
        self.connection = connection
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.frame_is_kept = False
        """Whether the bytes that the request refers to stay as long as it does, and may be changed."""
        self.principal: Principal = connection.principal
        """Who asks, as the connection knew it when the request came."""
        self._api = api
        self._slot: Slot | None = None
        self._early: Any = PENDING

    @property
    def api_key(self) -> ApiKey:
        return self._api.key

    @property
    def client_host(self) -> str:
        return self.connection.peer_host

    @property
    def listener_name(self) -> str:
        return self.connection.listener_name

    @property
    def long_work(self) -> LongWork:
        """By what long work shares the event loop."""
        return cast("HasLongWork", self.services).long_work

    @property
    def authorizer(self) -> Authorizer | None:
        """Who decides what the client may do, if anybody: `handlers.authorization` asks."""
        services: Any = self.services
        authorizer: Authorizer | None = services.authorizer
        return authorizer

    def respond(self, response: Any) -> None:
        """The late answer to a request whose handler returned PENDING; None closes the slot without an
        answer. May be called before the handler has returned.
        """
        if self._slot is None:
            self._early = response
        else:
            self._api.answer_late(self, self._slot, response)
