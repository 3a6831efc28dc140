"""What a request goes through beside its handler: faults → handle → quota → account.

Each stage is a function that a broker may have or not; where it has none of them, requests go to their
handlers as they are. A request keeps to those that there were when it came. Nothing here decides anything by
itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kafka_compat.network.request import RequestContext
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.errors import KafkaError
    from kafka_compat.security.principal import Principal

Services = TypeVar("Services", covariant=True)


Quota = Callable[["StagedContext[Any]", Any, Any], int]
"""What a request costs its client, asked with context, request and response (None: no answer): for how long
in ms its connection is to be muted once it was answered, not above 0 where it is not. The response says so
where its API has a field for it (KIP-219). It is ready then, and not yet encoded.
"""

Sent = Callable[["StagedContext[Any]", float], None]
"""Told how long it took to encode and send a response, in seconds, which comes after the quota was asked."""

Account = Callable[["Served"], None]
"""Counts requests: called when one was answered, or needs no answer. Its response is not to be kept."""


class Fault:
    """What is to become of a request, because a test wants to see what its client does then."""

    __slots__ = ("amend", "delay_ms", "error", "is_dropped", "is_lost", "mangle")

    def __init__(
        self,
        error: KafkaError | None = None,
        *,
        is_dropped: bool = False,
        is_lost: bool = False,
        delay_ms: int = 0,
        amend: Callable[[Any], None] | None = None,
        mangle: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self.error = error
        """What it is answered with; it is not handled."""
        self.is_dropped = is_dropped
        """It is not handled, and its connection ends."""
        self.is_lost = is_lost
        """It is handled, and its connection ends in the place of an answer."""
        self.delay_ms = delay_ms
        """For how long the answer is held back."""
        self.amend = amend
        """Changes the response."""
        self.mangle = mangle
        """What is sent in the place of an answer, from the size before it on. Where that is shorter, the
        connection ends after it.
        """


Faults = Callable[["StagedContext[Any]", Any], Fault | None]
"""Asked with context and request, before it is handled."""


class Served(NamedTuple):
    """A request that is done. Times are those of time.perf_counter: when the request began to be served, when
    its response was ready, and when it went to the connection. `error_code` is the one at the top of the
    response, 0 where there is none; `response` is None for a request that wants no answer. `context` is
    the one that the other stages were given.
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
    """A StagedContext: compiled, a field of a class that comes further down ends the process at import."""


class Stages:
    """Those that a broker has."""

    __slots__ = ("_guarded", "account", "faults", "quota", "sent")

    def __init__(
        self,
        quota: Quota | None = None,
        account: Account | None = None,
        sent: Sent | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.quota = quota
        self.account = account
        self.sent = sent
        self.faults = faults
        self._guarded: dict[Callable[..., Any], Callable[..., Any]] = {}

    @property
    def any(self) -> bool:
        """Whether there is any."""
        return self.quota is not None or self.account is not None or self.faults is not None

    def guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A handler whose request, with a StagedContext, is kept for the stages after it."""
        found = self._guarded.get(function)
        if found is None:
            found = self._guarded[function] = self._guard(function)
        return found

    def _guard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        handled = function if self.quota is None else self._timed(function)

        def handle(ctx: StagedContext[Any], request: Any) -> Any:
            ctx.request = request
            if self.faults is not None:
                fault = ctx.fault = self.faults(ctx, request)
                if fault is not None and fault.error is not None:
                    raise fault.error
                if fault is not None and fault.is_dropped:
                    return None
            response = handled(ctx, request)
            ctx.local_s = time.perf_counter()
            return response

        return handle

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        from kafka_compat.network.busy_time import timed

        return partial(timed, function)

    def ready(self, ctx: StagedContext[Any], response: Any) -> int:
        """The response is there: how long the connection is to be muted, in ms."""
        ctx.ready_s = time.perf_counter()
        if self.quota is None:
            return 0
        throttle_time_ms = ctx.throttle_time_ms = max(self.quota(ctx, ctx.request, response), 0)
        if throttle_time_ms and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_time_ms
        return throttle_time_ms

    def answered(self, ctx: StagedContext[Any], response: Any, response_bytes: int) -> None:
        """The answer is on its way."""
        if self.sent is not None:
            self.sent(ctx, time.perf_counter() - ctx.ready_s)
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
                ctx,
            )
            self.account(served)


class StagedContext(RequestContext[Services]):
    """The context of a request that goes through stages."""

    __slots__ = (
        "_busy_s",
        "_busy_since_s",
        "began_s",
        "fault",
        "local_s",
        "queued_s",
        "ready_s",
        "request",
        "request_bytes",
        "stages",
        "throttle_time_ms",
    )

    def begin(self, request_bytes: int, stages: Stages) -> None:
        """`request_bytes` is the size of its frame, without the four bytes before it."""
        self.stages = stages
        self.request: Any = None
        self.fault: Fault | None = None
        """What is still to come of it."""
        self.request_bytes = request_bytes
        self.throttle_time_ms = 0
        self.began_s = self.ready_s = self.local_s = self._busy_since_s = time.perf_counter()
        """When it began to be served, when its response was ready, and when its handler had returned."""
        self._busy_s = 0.0
        self.queued_s = max(time.monotonic() - self.connection.last_active_s, 0.0)
        """For how long it lay here before it began to be served."""

    @property
    def busy_s(self) -> float:
        """For how long the request was worked on: it may have waited for something in between."""
        since_s = self._busy_since_s
        return self._busy_s + (time.perf_counter() - since_s if since_s else 0.0)

    def rest(self) -> None:
        """The request waits, or is done, until `resume`."""
        self._busy_s = self.busy_s
        self._busy_since_s = 0.0

    def resume(self) -> None:
        """It is worked on again."""
        self._busy_since_s = time.perf_counter()
