"""What a request goes through beside its handler: principal → authorize → quota → handle → account.

Each stage is a function that a broker may have or not; where it has none of them, requests go to their
handlers as they are, and every client is User:ANONYMOUS. Nothing here decides anything by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kafka_compat.network.request import RequestContext
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.principal import Principal

if TYPE_CHECKING:
    from kafka_compat.errors import KafkaError
    from kafka_compat.network.connection import Connection

Services = TypeVar("Services", covariant=True)


Authorize = Callable[["StagedContext[Any]", Any], "KafkaError | None"]
"""Whether a request may be served at all, asked with its context and itself: why not, which becomes the API's
error response, or None where it may. What it may do to which topic or group is for its handler.
"""

Quota = Callable[["StagedContext[Any]", Any, Any], int]
"""What a request costs its client, asked with context, request and response (None: no answer): for how long
in ms its connection is to be muted once it was answered. The response says so where its API has a field for
it (KIP-219). It is ready then, and not yet encoded.
"""

Account = Callable[["Served"], None]
"""Counts requests: called when one was answered, or needs no answer. Its response is not to be kept."""


class Served(NamedTuple):
    """A request that is done. Times are those of time.perf_counter: when the request began to be served, when
    its response was ready, and when it went to the connection. `error_code` is the one at the top of the
    response, 0 where there is none; `response` is None for a request that wants no answer.
    """

    principal: Principal
    client_id: str | None
    listener_name: str
    api_key: ApiKey
    api_version: int
    request_bytes: int
    response_bytes: int
    began_s: float
    ready_s: float
    answered_s: float
    throttle_time_ms: int
    error_code: int
    response: Any


class Stages:
    """Those that a broker has."""

    __slots__ = ("account", "authorize", "principal", "quota")

    def __init__(
        self,
        principal: Callable[[Connection], Principal] | None = None,
        authorize: Authorize | None = None,
        quota: Quota | None = None,
        account: Account | None = None,
    ) -> None:
        self.principal = principal
        self.authorize = authorize
        self.quota = quota
        self.account = account

    def guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A handler behind the stages before it."""

        def handle(ctx: StagedContext[Any], request: Any) -> Any:
            ctx.request = request
            if self.principal is not None:
                ctx.principal = self.principal(ctx.connection)
            if self.authorize is not None:
                refusal = self.authorize(ctx, request)
                if refusal is not None:
                    raise refusal
            return function(ctx, request)

        return handle

    def ready(self, ctx: StagedContext[Any], response: Any) -> int:
        """The response is there: how long the connection is to be muted, in ms."""
        ctx.ready_s = time.perf_counter()
        if self.quota is None:
            return 0
        throttle_time_ms = ctx.throttle_time_ms = self.quota(ctx, ctx.request, response)
        if throttle_time_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_time_ms
        return throttle_time_ms

    def answered(self, ctx: StagedContext[Any], response: Any, response_bytes: int) -> None:
        """The answer is on its way."""
        if self.account is not None:
            served = Served(
                ctx.principal,
                ctx.client_id,
                ctx.listener_name,
                ctx.api_key,
                ctx.api_version,
                ctx.request_bytes,
                response_bytes,
                ctx.began_s,
                ctx.ready_s,
                time.perf_counter(),
                ctx.throttle_time_ms,
                getattr(response, "error_code", 0),
                response,
            )
            self.account(served)


class StagedContext(RequestContext[Services]):
    """The context of a request that goes through stages."""

    __slots__ = ("began_s", "ready_s", "request", "request_bytes", "throttle_time_ms")

    def begin(self, request_bytes: int) -> None:
        """`request_bytes` is the size of its frame, without the four bytes before it."""
        self.request: Any = None
        self.request_bytes = request_bytes
        self.throttle_time_ms = 0
        self.began_s = self.ready_s = time.perf_counter()
