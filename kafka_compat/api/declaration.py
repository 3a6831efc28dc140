"""How a handler says which API it serves.

    @handler(ApiKey.HEARTBEAT, 0, 4)
    def heartbeat(ctx: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:

A handler is a function named as its API in the module of that name under `kafka_compat.handlers`. It returns
the response, None where the request wants none, or a Deferred (kafka_compat.deferred): later requests of the
same caller go on meanwhile. It may be written in two other ways, which `api.calls` turns into a Deferred:

- a generator, with a `yield` after each item of a request that may have many: the steps of
  `kafka_compat.long_work`. Where they take long, later requests of the same caller wait;
- a coroutine (`async def`): later requests of the same caller wait until it returns (admin APIs).

Both return a response, None or a Deferred. The declaration is the one place where an API's versions stand:
`kafka_compat.handlers.served` is generated from it, and ApiVersions tells clients what is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from kafka_compat.protocol.api_keys import ApiKey

Function = TypeVar("Function", bound=Callable[..., Any])


class Declaration(NamedTuple):
    """What a handler says of itself: its API, its first and last version, whether only a broker of a cluster
    serves it, and whether only one that shows what clients push of their metrics.
    """

    api_key: ApiKey
    low: int
    high: int
    cluster: bool
    telemetry: bool


class Handler(Generic[Function]):
    """What stands under an API's name in its module: the function, and its declaration. (Not an attribute of
    the function: compiled ones have none.)
    """

    __slots__ = ("declaration", "function")

    def __init__(self, declaration: Declaration, function: Function) -> None:
        self.declaration = declaration
        self.function = function


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
