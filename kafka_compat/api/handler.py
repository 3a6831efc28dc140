"""Interface of request handlers: the declaration of the API that a handler serves, and its request context.

    @handler(0, 4)
    def heartbeat(ctx: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:

A handler is a function named after its API, in a module of `kafka_compat.handlers` with the same name. It
returns the response, None if the request expects none, or a Deferred (kafka_compat.deferred), which allows
later requests of the same caller to continue. A handler may also have one of two other forms, which
`api.calls` converts to a Deferred:

- a generator with the steps of `kafka_compat.long_work`, which yields after each item of a request that may
  have many. If the steps are slow, later requests of the same caller wait;
- a coroutine (`async def`), for admin APIs: later requests of the same caller wait until it returns.

Both return a response, None or a Deferred. An API's versions are stated only in its handler's declaration:
`kafka_compat.handlers.served` is generated from the declarations, and ApiVersions reports these versions to
clients.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
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
    """The caller of a request, its connection, and the services for its handler. Requests without stages may
    share a context.
    """

    __slots__ = ("api", "api_version", "caller", "is_kept", "services")

    def __init__(self, services: Services, caller: Caller, api: Api, api_version: int, is_kept: bool) -> None:
        self.services = services
        self.caller = caller
        """The caller as it was when the request arrived."""
        self.api_version = api_version
        self.is_kept = is_kept
        """Whether the bytes to which the request refers live as long as the request and may be modified."""
        self.api = api

    @property
    def api_key(self) -> ApiKey:
        return self.api.key

    def repeated(self, key: Hashable) -> Any:
        """Return the response that an earlier request passed to `repeat` with this key, or None. A request
        that passes through stages gets no repeated response, because a stage may modify its response.
        """
        return self.api.repeated(key) if type(self) is RequestContext else None

    def repeat(self, key: Hashable, response: Any) -> None:
        """Keep the response to this request (see `Api.repeat`)."""
        if type(self) is RequestContext:
            self.api.repeat(key, response)

    @property
    def may_encode(self) -> bool:
        """Whether only the network layer reads the response, so that it may contain an EncodedArray."""
        return not self.caller.session.is_in_process

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
        """Whether the caller has disconnected and no longer needs the response."""
        return self.caller.session.has_left

    @property
    def sendfile_bytes_min(self) -> int:
        """Minimum size of file slices that are sent by sendfile instead of being read into memory."""
        return self.caller.session.sendfile_bytes_min

    @property
    def long_work(self) -> LongWork:
        return self.services.long_work

    @property
    def authorizer(self) -> Authorizer | None:
        """The authorizer for `handlers.authorization`; None if all operations are allowed."""
        if self.caller.is_trusted:
            return None
        return self.services.authorizer


Function = TypeVar("Function", bound=Callable[..., Any])


class Declaration(NamedTuple):
    """A handler's declaration: its API, and the first and last version. `cluster` limits the API to brokers
    in a cluster, `telemetry` to brokers that accept client metrics, and `quorum` to nodes of a quorum.
    """

    api_key: ApiKey
    low: int
    high: int
    cluster: bool
    telemetry: bool
    quorum: bool


class Handler(Generic[Function]):
    """A handler's function and declaration. In the handler's module, the API's name refers to this object.
    (The declaration is not an attribute of the function, because compiled functions cannot have attributes.)
    """

    __slots__ = ("declaration", "function")

    def __init__(self, declaration: Declaration, function: Function) -> None:
        self.declaration = declaration
        self.function = function


def handler(
    low: int, high: int, *, cluster: bool = False, telemetry: bool = False, quorum: bool = False
) -> Callable[[Function], Handler[Function]]:
    """Declare a function as the handler for versions `low` to `high` of the API with the same name.

    With `cluster`, standalone brokers do not serve the API. With `telemetry`, only brokers that accept client
    metrics serve it. With `quorum`, only nodes of a metadata quorum serve it.
    """

    def mark(function: Function) -> Handler[Function]:
        name = function.__name__
        if name.upper() not in ApiKey.__members__:
            raise TypeError(f"no API is named {name}")
        return Handler(Declaration(ApiKey[name.upper()], low, high, cluster, telemetry, quorum), function)

    return mark
