"""The handler interface: the declaration of the API that a handler serves, and its request context.

    @handler(0, 4)
    def heartbeat(ctx: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:

A handler is a function with the name of its API, in the module with the same name under
`kafka_compat.handlers`. It returns the response, None if the request expects none, or a Deferred
(kafka_compat.deferred), which lets later requests of the same caller continue. It may also have two other
forms, which `api.calls` converts to a Deferred:

- a generator, with a `yield` after each item of a request that may have many: the steps of
  `kafka_compat.long_work`. If they take long, later requests of the same caller wait;
- a coroutine (`async def`): later requests of the same caller wait until it returns (admin APIs).

Both return a response, None or a Deferred. The declaration is the only place that states an API's versions:
`kafka_compat.handlers.served` is generated from it, and ApiVersions reports them to clients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.api.api import Api
    from kafka_compat.api.caller import Caller
    from kafka_compat.api.services import Services
    from kafka_compat.long_work import LongWork
    from kafka_compat.security.authorizer import Authorizer
    from kafka_compat.security.principal import Principal


class RequestContext:
    """The caller and connection data of a request, and the services for its handler."""

    __slots__ = ("_api", "api_version", "caller", "is_kept", "services")

    def __init__(self, services: Services, caller: Caller, api: Api, api_version: int, is_kept: bool) -> None:
        self.services = services
        self.caller = caller
        """The caller at the time when the request arrived."""
        self.api_version = api_version
        self.is_kept = is_kept
        """Whether the bytes that the request refers to live as long as the request, and may be modified."""
        self._api = api

    @property
    def api_key(self) -> ApiKey:
        return self._api.key

    @property
    def principal(self) -> Principal:
        return self.caller.principal

    @property
    def client_id(self) -> str | None:
        return self.caller.client_id

    @property
    def client_host(self) -> str:
        return self.caller.host

    @property
    def listener_name(self) -> str:
        return self.caller.listener_name

    @property
    def has_left(self) -> bool:
        """Whether the caller has disconnected, so that the response is no longer needed."""
        return self.caller.session.has_left

    @property
    def sendfile_bytes_min(self) -> int:
        """The minimum size of file slices that are sent by sendfile, without being read into memory."""
        return self.caller.session.sendfile_bytes_min

    @property
    def long_work(self) -> LongWork:
        """The scheduler of long work on the event loop."""
        return self.services.long_work

    @property
    def authorizer(self) -> Authorizer | None:
        """The authorizer, if any, for `handlers.authorization`."""
        if self.caller.is_trusted:
            return None
        return self.services.authorizer


Function = TypeVar("Function", bound=Callable[..., Any])


class Declaration(NamedTuple):
    """A handler's declaration: its API, the first and last version, and whether it is served only by a
    clustered broker or only by a broker that accepts client metrics.
    """

    api_key: ApiKey
    low: int
    high: int
    cluster: bool
    telemetry: bool


class Handler(Generic[Function]):
    """The function and its declaration, under the API's name in the handler's module. (The declaration is not
    an attribute of the function, because compiled functions cannot have attributes.)
    """

    __slots__ = ("declaration", "function")

    def __init__(self, declaration: Declaration, function: Function) -> None:
        self.declaration = declaration
        self.function = function


def handler(
    low: int, high: int, *, cluster: bool = False, telemetry: bool = False
) -> Callable[[Function], Handler[Function]]:
    """Declare a function as the handler of the API with the same name, for versions `low` to `high`.

    `cluster`: not served by a standalone broker. `telemetry`: not served by a broker that does not accept
    client metrics.
    """

    def mark(function: Function) -> Handler[Function]:
        name = function.__name__
        if name.upper() not in ApiKey.__members__:
            raise TypeError(f"no API is named {name}")
        return Handler(Declaration(ApiKey[name.upper()], low, high, cluster, telemetry), function)

    return mark
