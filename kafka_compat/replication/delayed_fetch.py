"""Process one Fetch request, from its first read of the logs to its response.

`fetch_reader` reads, `delayed_read` waits, and `fetch_response` builds the response.

Rules
1. The response is sent at once if min_bytes are available, if max_wait_ms is 0, if no partition is fetched,
   or if a partition has an error or has diverged, because the client must be notified without delay.
   Partitions that do not exist when a consumer's request arrives do not cause an immediate response, unless
   none of the partitions exists. Otherwise, the consumer would repeat its request without a pause.
2. Otherwise the request waits until the missing number of bytes is committed (for a follower: appended), and
   then reads again.
3. If there are many partitions, the request yields to the event loop between them, and each partition is read
   in its current state. If new records arrive during this read, all partitions are read again.
4. Fetch versions 0 to 3 return old record formats. Another thread converts the records, starting at the fetch
   offset. It converts at most CONVERTED_BYTES_MAX of the log, even if the client requests more.
5. Partitions that the client is not authorized to read do not cause an immediate response, unless the client
   is not authorized to read any of the partitions.
6. A consumer that exceeds its quota gets an empty response with a throttle time (KIP-219). Its session is
   unchanged, and no new session is opened. No response is larger than the consumer's quota can ever allow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.fetch import FetchRequest, FetchResponse
from kafka_compat.replication.delayed_read import DelayedRead
from kafka_compat.replication.fetch_reader import FetchReader, Found, ReadResult
from kafka_compat.replication.fetch_response import (
    FIRST_VERSION_WITH_FORMAT_2,
    PARTITIONS_AT_ONCE,
    response_bytes,
    response_bytes_in_steps,
    response_in_steps,
    response_of,
)

if TYPE_CHECKING:
    from kafka_compat.long_work import Steps
    from kafka_compat.replication.fetch_context import FetchContext
    from kafka_compat.replication.fetch_session import FetchPlan, FetchTarget

READ_COMMITTED: Final = 1
_FIRST_VERSION_FROM_FOLLOWERS: Final = 11
_FIRST_VERSION_WITH_REPLICA_STATE: Final = 15
CONVERTED_BYTES_MAX: Final = 1 << 20


class DelayedFetch:
    """One Fetch request. `start` returns the response, a Deferred, or a generator that returns either."""

    __slots__ = (
        "_ctx",
        "_is_in_steps",
        "_is_reading",
        "_max_wait_ms",
        "_min_bytes",
        "_plan",
        "_quotas",
        "_read_again",
        "_reader",
        "_targets",
        "_unknown",
        "_wait",
        "is_follower",
    )

    def __init__(self, ctx: FetchContext, request: FetchRequest, plan: FetchPlan) -> None:
        services, version = ctx.services, ctx.api_version
        self._ctx = ctx
        self._plan = plan
        self._max_wait_ms = request.max_wait_ms
        replica_id = (
            request.replica_state.replica_id
            if version >= _FIRST_VERSION_WITH_REPLICA_STATE
            else request.replica_id
        )
        self.is_follower = replica_id >= 0
        """Whether the client is a broker that fetches records for its replicas."""
        self._quotas = None if self.is_follower else services.quotas
        max_bytes = request.max_bytes
        if not self.is_follower:
            limit_bytes = services.config.int("fetch.max.bytes")
            if limit_bytes < max_bytes:
                max_bytes = limit_bytes
            if self._quotas is not None:
                max_bytes = min(max_bytes, self._quotas.fetch_max_bytes(ctx))
        if version < FIRST_VERSION_WITH_FORMAT_2:
            max_bytes = min(max_bytes, CONVERTED_BYTES_MAX)
        self._min_bytes = request.min_bytes if request.min_bytes < max_bytes else max_bytes
        self._reader = FetchReader(
            services,
            plan,
            replica_id,
            max_bytes,
            request.rack_id,
            request.isolation_level == READ_COMMITTED,
            self.is_follower or version < _FIRST_VERSION_FROM_FOLLOWERS,
        )
        self._targets: list[FetchTarget] = []
        """The partitions to read, without those that were unknown in the first read."""
        self._unknown: list[Found] = []
        """The partitions that were unknown in the first read."""
        self._is_in_steps = False
        self._wait: DelayedRead | None = None
        self._is_reading = False
        self._read_again = False

    def start(self) -> FetchResponse | Deferred | Steps[FetchResponse | Deferred]:
        plan = self._plan
        self._targets = plan.targets
        self._is_in_steps = (
            len(plan.targets) > PARTITIONS_AT_ONCE
            or self._ctx.api_version < FIRST_VERSION_WITH_FORMAT_2
            or len(plan.denied) > 0
        )
        if self._is_in_steps:
            return self._start_in_steps()
        result = ReadResult()
        self._reader.read_into(result, plan.targets, True)
        if self._needs_no_wait(result):
            return self._response(result)
        return self._delay(result)

    def _start_in_steps(self) -> Steps[FetchResponse | Deferred]:
        result = yield from self._read_in_steps(is_first=True)
        if self._needs_no_wait(result):
            return (yield from self._response_in_steps(result))
        return self._delay(result)

    def _needs_no_wait(self, result: ReadResult) -> bool:
        knows_none = len(result.unknown) == len(self._targets)
        return self._is_enough(result) or self._max_wait_ms <= 0 or knows_none

    def _is_enough(self, result: ReadResult) -> bool:
        return result.is_urgent or result.total_bytes >= self._min_bytes

    def _read_in_steps(self, *, is_first: bool = False) -> Steps[ReadResult]:
        result = ReadResult(self._unknown)
        targets = self._targets
        for first in range(0, len(targets), PARTITIONS_AT_ONCE):
            if self._ctx.has_left:
                break
            self._reader.read_into(result, targets[first : first + PARTITIONS_AT_ONCE], is_first)
            yield None
        return result

    # --- waiting

    def _delay(self, result: ReadResult) -> Deferred:
        if self._ctx.has_left:
            return Deferred()
        if result.unknown:
            self._unknown = result.unknown
            keys = {target.key for target, _, _, _ in result.unknown}
            self._targets = [target for target in self._targets if target.key not in keys]
        waiting = self._ctx.services.replicas.delayed_fetches
        self._wait = DelayedRead(self._woken, waiting, reads_uncommitted=self.is_follower)
        return self._wait.start(result.replicas, self._min_bytes - result.total_bytes, self._max_wait_ms)

    def _woken(self) -> None:
        """Read again, because enough data may have arrived or the deadline has passed."""
        if self._is_in_steps:
            self._read_again = True
            if not self._is_reading:
                self._is_reading = True
                self._ctx.long_work.start(self._woken_in_steps(), self._complete)
            return
        result = ReadResult(self._unknown)
        self._reader.read_into(result, self._targets)
        deferred = self._ended(result)
        if deferred is not None:
            deferred.complete(self._response(result))

    def _woken_in_steps(self) -> Steps[tuple[Deferred, FetchResponse] | None]:
        while self._read_again and self._wait is not None and not self._wait.is_over:
            self._read_again = False
            result = yield from self._read_in_steps()
            deferred = self._ended(result)
            if deferred is not None:
                response = yield from self._response_in_steps(result)
                return deferred, response
        return None

    def _complete(self, done: tuple[Deferred, FetchResponse] | None) -> None:
        self._is_reading = False
        if done is not None:
            deferred, response = done
            deferred.complete(response)

    def _ended(self, result: ReadResult) -> Deferred | None:
        """Return the Deferred to complete with `result`. Return None if `result` is insufficient, so that the
        request keeps waiting, or if the request was canceled.
        """
        wait = self._wait
        if wait is None:
            return None
        if not (self._is_enough(result) or wait.has_expired):
            wait.missing_bytes = self._min_bytes - result.total_bytes
            return None
        if wait.has_expired and not wait.is_over:
            expired = self._ctx.services.replicas.counts.expired_fetches
            expired["follower" if self.is_follower else "consumer"] += 1
        self._wait = None
        return wait.end()

    # --- the response

    def _response(self, result: ReadResult) -> FetchResponse:
        quotas, plan = self._quotas, self._plan
        if plan.session is not None and plan.is_outdated:
            return self._outdated()
        if result.unknown:
            result.add_unknown(is_follower=self.is_follower)
        if quotas is not None:
            throttle_ms = quotas.fetched(self._ctx, response_bytes(plan, result))
            if throttle_ms > 0:
                return self._throttled(result, throttle_ms)
        response = response_of(self._ctx, plan, result, self._reader.replica_id)
        return self._finished(response) if plan.wants_session or self.is_follower else response

    def _response_in_steps(self, result: ReadResult) -> Steps[FetchResponse]:
        quotas, plan = self._quotas, self._plan
        if plan.is_outdated:
            return self._outdated()
        if result.unknown:
            result.add_unknown(is_follower=self.is_follower)
        if quotas is not None:
            size_bytes = yield from response_bytes_in_steps(plan, result)
            throttle_ms = quotas.fetched(self._ctx, size_bytes)
            if throttle_ms > 0:
                return self._throttled(result, throttle_ms)
        response = yield from response_in_steps(self._ctx, plan, result, self._reader.replica_id)
        return self._finished(response)

    def _outdated(self) -> FetchResponse:
        return FetchResponse(
            error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=self._plan.session_id
        )

    def _throttled(self, result: ReadResult, throttle_ms: int) -> FetchResponse:
        for _, _, _, held in result.found:
            if held is not None:
                held.counts.fetches += 1
        return FetchResponse(session_id=self._plan.session_id, throttle_time_ms=throttle_ms)

    def _finished(self, response: FetchResponse) -> FetchResponse:
        """Open the requested session, add its ID to the response, and count a response to a follower."""
        broker, plan = self._ctx.services, self._plan
        if plan.wants_session:
            now_ms = broker.clock.monotonic_ms()
            response.session_id = broker.fetch_sessions.open(plan, now_ms, is_follower=self.is_follower)
        if self.is_follower:
            fetches = broker.replicas.counts.follower_fetches
            fetches[self._ctx.api_version] = fetches.get(self._ctx.api_version, 0) + 1
        return response
