"""Optional stages of a request around its handler: account → quota → middleware → handler.

Each stage is an optional function; without stages, requests are passed directly to their handlers. The order
is set up when a stage is added or removed, and a request keeps the stages that existed when it arrived. This
module only calls the stages; it contains no quota or accounting logic.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_compat.api.handler import RequestContext
from kafka_compat.deferred import Deferred
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.security.principal import Principal

Quota = Callable[["StagedContext", Any, Any], int]
"""Function that returns the caller's throttle time in ms, or 0 or less for none. Its arguments are the
context, the request, and the complete but unencoded response (None if the request expects none). The throttle
time is added to the response if its API has a field for it (KIP-219).
"""

Sent = Callable[["StagedContext", float], None]
"""Function called after a Quota, with the context and the seconds spent encoding and sending the response."""

Account = Callable[["Served"], None]
"""Function that accounts for a completed request. It must not keep the response, which may be None."""

Next = Callable[[Any, Any], Any]
"""Function that serves a request. It returns the response, None or a Deferred, or raises HungUp."""

Middleware = Callable[[Any, Any, Next], Any]
"""Function that serves a request, given its StagedContext and the next stage, which it may call. It may
respond, delay the request, or change or drop the response. It returns and raises the same as a Next, and may
also raise KafkaError to send an error response.
"""


class Served(NamedTuple):
    """A completed request. Serving began at `began_s`, the response was ready at `ready_s`, and it was passed
    to the caller at `answered_s` (time.perf_counter). `error_code` is the response's top-level error code, or
    0. `response` is None if no response was sent. `context` is the context of the other stages.
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
    context: Any
    """A StagedContext. (If its class, which is defined later, were the type of a field, importing compiled
    code would crash.)
    """


class Stages:
    """The request stages of a broker. `handle` is the last stage."""

    __slots__ = ("accounts", "middleware", "quota", "sent", "serve")

    def __init__(
        self,
        handle: Next,
        quota: Quota | None = None,
        sent: Sent | None = None,
        accounts: tuple[Account, ...] = (),
        middleware: tuple[Middleware, ...] = (),
    ) -> None:
        self.quota = quota
        self.sent = sent
        self.accounts = accounts
        self.middleware = middleware
        serve = handle
        for one in reversed(middleware):
            serve = partial(_through, one, serve)
        self.serve = serve

    @property
    def any(self) -> bool:
        """Whether there are any stages."""
        return self.quota is not None or bool(self.accounts) or bool(self.middleware)


def _through(middleware: Middleware, go_on: Next, ctx: Any, request: Any) -> Any:
    return middleware(ctx, request, go_on)


class StagedContext(RequestContext):
    """Context of a request that passes through stages. `outcome` is the Deferred returned to the caller."""

    __slots__ = (
        "_busy_s",
        "_busy_since_s",
        "_is_timed",
        "began_s",
        "local_s",
        "outcome",
        "queued_s",
        "ready_s",
        "request",
        "request_bytes",
        "stages",
        "throttle_time_ms",
        "timed",
    )

    def begin(
        self,
        request: Any,
        stages: Stages,
        request_bytes: int,
        arrived_s: float,
        began_s: float,
        timed: Callable[[StagedContext, float], None] | None,
    ) -> None:
        """Start the measurement of a request. `request_bytes` is the size of the frame without the length
        prefix. `arrived_s` is the time of arrival (time.monotonic) and `began_s` the start of serving
        (time.perf_counter); both are 0 for a request without a frame. `timed` is called at the end.
        """
        self.request = request
        self.stages = stages
        self.outcome = Deferred()
        self.request_bytes = request_bytes
        self.throttle_time_ms = 0
        self.timed = timed
        self.began_s = began_s or time.perf_counter()
        """The time when serving began."""
        self.ready_s = self.local_s = self._busy_since_s = self.began_s
        """The times at which the response was ready, and at which the handler returned."""
        self._busy_s = 0.0
        self.queued_s = max(time.monotonic() - arrived_s, 0.0) if arrived_s else 0.0
        """The time that the request waited before serving began."""

    @property
    def may_encode(self) -> bool:
        return not (self.caller.session.is_in_process or self.stages.middleware)

    @property
    def busy_s(self) -> float:
        """The time spent working on the request, excluding waiting times."""
        since_s = self._busy_since_s
        return self._busy_s + (time.perf_counter() - since_s if since_s else 0.0)

    def rest(self) -> None:
        """Pause the measurement of `busy_s`, because the request waits or is done."""
        self._busy_s = self.busy_s
        self._busy_since_s = 0.0

    def resume(self) -> None:
        """Continue the measurement of `busy_s`."""
        self._busy_since_s = time.perf_counter()

    def returned(self, result: Any) -> Deferred:
        """Return the Deferred for the caller. `result` is a response, None or a Deferred."""
        self.local_s = time.perf_counter()
        outcome = self.outcome
        if isinstance(result, Deferred):
            outcome.work = result
            outcome.is_serial = result.is_serial
            result.when_done(self._done)
            result.when_released(outcome.release)
        else:
            self._ready(result)
        return outcome

    def lost(self) -> Deferred:
        """Disconnect the caller without a response, and return the caller's Deferred."""
        self.ready_s = time.perf_counter()
        self.outcome.hang_up()
        self._account(None, 0)
        return self.outcome

    def _done(self, result: Deferred) -> None:
        if result.is_hung_up:
            self.lost()
        else:
            self.outcome.mangle = result.mangle
            self._ready(result.response)

    def _ready(self, response: Any) -> None:
        self.ready_s = time.perf_counter()
        outcome, quota = self.outcome, self.stages.quota
        if quota is not None:
            throttle_time_ms = max(quota(self, self.request, response), 0)
            self.throttle_time_ms = outcome.throttle_time_ms = throttle_time_ms
            if throttle_time_ms and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = throttle_time_ms
        outcome.sent = partial(self._account, response)
        outcome.complete(response)

    def _account(self, response: Any, response_bytes: int) -> None:
        """Report the completed request to the quota and the accounts."""
        # Break a reference cycle: `outcome.sent` refers to this object, which refers to the outcome.
        self.outcome.sent = None
        stages = self.stages
        answered_s = time.perf_counter()
        if stages.sent is not None and response is not None:
            stages.sent(self, answered_s - self.ready_s)
        if self.timed is not None:
            self.timed(self, answered_s)
        if stages.accounts:
            served = Served(
                self.principal,
                self.client_id,
                self.listener_name,
                self.api_key,
                self.api_version,
                self.request_bytes,
                response_bytes,
                self.began_s,
                self.ready_s,
                answered_s,
                self.throttle_time_ms,
                getattr(response, "error_code", 0),
                response,
                self,
            )
            for account in stages.accounts:
                account(served)
