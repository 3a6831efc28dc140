"""Enforce client quotas. While any quota is stored, requests are throttled after they have been handled
(`api/stages.py`). Some handlers also check quotas themselves.

As in Kafka, producer_byte_rate limits the size of Produce requests, consumer_byte_rate the size of Fetch
responses to consumers, request_percentage the time spent on requests (100 is all of the event loop's time; in
Kafka, it is the time of one thread), and controller_mutation_rate the number of created and deleted
partitions. A client is throttled for the longest time that any of its quotas requires. Requests between
brokers are exempt. For requests with acks=0, only the bytes count.

The recent usage and throttle times of each client are available for metrics (see `used`).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.quotas import rates
from kafka_compat.quotas.client_rates import ClientRates, MutationRates
from kafka_compat.quotas.precedence import Name, Owner
from kafka_compat.quotas.rates import SampledAverage, Windows, java_int

PRODUCER, CONSUMER = "producer_byte_rate", "consumer_byte_rate"
REQUEST, MUTATION = "request_percentage", "controller_mutation_rate"

PRODUCE, FETCH, TIME, CHANGES = "Produce", "Fetch", "Request", "ControllerMutation"
"""The limited resources, by their names in Kafka's MBeans."""
THROTTLE_WINDOWS: Final = Windows(2, 30_000)
"""Averaging period of throttle times: Kafka's default metrics.num.samples and metrics.sample.window.ms."""

_EXEMPT: Final = frozenset(
    (
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALTER_PARTITION,
        # Do not throttle these APIs, because they are served before the client is authenticated.
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
    )
)
_MUTATIONS: Final = frozenset((ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS))
_FIRST_VERSION_WITH_REPLICA_STATE: Final = 15


class Named(Protocol):
    """A principal (see kafka_compat.security.principal)."""

    @property
    def name(self) -> str: ...


class Asking(Protocol):
    """The part of a request context that this module uses (see kafka_compat.api.handler)."""

    @property
    def principal(self) -> Named: ...

    @property
    def client_id(self) -> str | None: ...

    @property
    def api_version(self) -> int: ...


class Used(NamedTuple):
    """Recent usage of one resource by the clients that share a quota."""

    resource: str
    owner: Owner
    rate: float
    """Bytes, changed partitions, or the percentage of the event loop's time, per second."""
    throttle_ms: float
    """Average throttle time of throttled requests in ms, or NaN if no request was throttled."""
    tokens: float | None
    """Credits for partition changes, or None for other resources."""


class Enforcement:
    """Usage rates and throttling of all clients of a broker. `now_ms` returns a monotonic time."""

    def __init__(self, now_ms: Callable[[], int], windows: Windows, mutation_windows: Windows) -> None:
        self._now_ms = now_ms
        self._produce = ClientRates(windows)
        self._fetch = ClientRates(windows)
        self._request = ClientRates(windows, throttle_max_ms=windows.size_ms)
        self._mutations = MutationRates(mutation_windows)
        self._measured = {PRODUCE: self._produce, FETCH: self._fetch, TIME: self._request}
        self._throttled: OrderedDict[tuple[str, Owner], SampledAverage] = OrderedDict()
        self._quotas = {
            PRODUCER: self._produce.quotas,
            CONSUMER: self._fetch.quotas,
            REQUEST: self._request.quotas,
            MUTATION: self._mutations.quotas,
        }

    def put(self, user: Name, client_id: Name, stored: Mapping[str, str]) -> None:
        """Replace all quotas of an entity. Raises ValueError if a stored quota is not a number."""
        rates = {kind: float(stored[kind]) for kind in self._quotas if kind in stored}
        for kind, quotas in self._quotas.items():
            quotas.put(user, client_id, rates.get(kind))

    @property
    def has_any(self) -> bool:
        return any(self._quotas.values())

    def throttle(self, ctx: Any, request: Any, response: Any) -> int:
        """Return the throttle time in ms for a request."""
        for measured in self._measured.values():
            measured.asked_ms = 0
        throttle_ms = self._throttle_ms(ctx, request, response)
        if throttle_ms > 0:
            asked_ms = max(rates.asked_ms for rates in self._measured.values())
            is_by_changes = ctx.api_key in _MUTATIONS and throttle_ms > asked_ms
            self._note(ctx, CHANGES if is_by_changes else self._longest(), throttle_ms)
        return throttle_ms

    def _throttle_ms(self, ctx: Any, request: Any, response: Any) -> int:
        key = ctx.api_key
        if request is None or _is_exempt(ctx, key, request):
            # The request is None if it is invalid, or if the first quota was set while it was being decoded.
            return 0
        if key is ApiKey.PRODUCE:
            client = _client(ctx)
            by_bytes = self._produce.record(*client, ctx.request_bytes, self._now_ms())
            return by_bytes if request.acks == 0 else max(by_bytes, self._by_time(ctx))
        if key is ApiKey.FETCH and not response.error_code:
            # `fetched` has already set the throttle time.
            told: int = response.throttle_time_ms
            return told
        by_time = self._by_time(ctx)
        if key in _MUTATIONS:
            # `Mutation` has already set the throttle time.
            waits_ms: int = response.throttle_time_ms
            return max(by_time, waits_ms)
        return by_time

    def sent(self, ctx: Any, took_s: float) -> None:
        """Count the time spent on encoding and sending a response, for throttling later requests."""
        request = ctx.request
        if self._request.quotas and request is not None and not _is_exempt(ctx, ctx.api_key, request):
            self._request.count(*_client(ctx), 100 * took_s, self._now_ms())

    def _by_time(self, ctx: Any) -> int:
        if not self._request.quotas or not hasattr(ctx, "busy_s"):
            return 0
        return self._request.record(*_client(ctx), 100 * ctx.busy_s, self._now_ms())

    def fetch_max_bytes(self, ctx: Asking) -> int:
        """Return the response size in bytes above which a fetch is throttled even without earlier usage."""
        return self._fetch.window_max(*_client(ctx))

    def fetched(self, ctx: Asking, response_bytes: int) -> int:
        """Return the throttle time in ms for a fetch response of this size. If it is positive, the caller
        must send an empty response, and these bytes do not count.
        """
        for measured in self._measured.values():
            measured.asked_ms = 0
        now_ms = self._now_ms()
        client = _client(ctx)
        throttle_ms = max(self._by_time(ctx), self._fetch.record(*client, response_bytes, now_ms), 0)
        if throttle_ms:
            self._fetch.count(*client, -response_bytes, now_ms)
            self._note(ctx, self._longest(), throttle_ms)
        return throttle_ms

    def mutation(self, ctx: Asking, strict_since: int | None) -> "Mutation":
        """Return the quota for a request that changes topics. The quota is strict in version `strict_since`
        and later, or in no version if `strict_since` is None.
        """
        is_strict = strict_since is not None and ctx.api_version >= strict_since
        return Mutation(self._mutations, _client(ctx), self._now_ms, is_strict)

    def used(self) -> Iterator[Used]:
        """Yield the usage of all measured clients that have a quota."""
        now_ms = self._now_ms()
        for resource, measured in self._measured.items():
            for owner, rate in measured.in_use(now_ms):
                yield Used(resource, owner, rate, self._throttled_ms(resource, owner, now_ms), None)
        for owner, rate, tokens in self._mutations.in_use(now_ms):
            yield Used(CHANGES, owner, rate, self._throttled_ms(CHANGES, owner, now_ms), tokens)

    def _longest(self) -> str | None:
        """Return the resource with the longest throttle time, or None if `fetched` has noted it already."""
        longest = max(self._measured, key=lambda resource: self._measured[resource].asked_ms)
        return longest if self._measured[longest].asked_ms > 0 else None

    def _note(self, ctx: Asking, resource: str | None, throttle_ms: int) -> None:
        if resource is None:
            return
        quotas = self._mutations.quotas if resource == CHANGES else self._measured[resource].quotas
        key = resource, quotas.owner(*_client(ctx))
        average = self._throttled.pop(key, None)
        if average is None:
            average = SampledAverage(THROTTLE_WINDOWS)
            if len(self._throttled) >= rates.OWNERS_MAX:
                self._throttled.popitem(last=False)
        self._throttled[key] = average
        average.record(throttle_ms, self._now_ms())

    def _throttled_ms(self, resource: str, owner: Owner, now_ms: int) -> float:
        average = self._throttled.get((resource, owner))
        return float("nan") if average is None else average.value(now_ms)


class Mutation:
    """Quota accounting for the partitions that one request creates or deletes (KIP-599). If the quota is
    strict, a request is rejected while the client exceeds it. Otherwise the request is executed and the
    client is throttled.
    """

    def __init__(
        self, rates: MutationRates, client: tuple[str, str], now_ms: Callable[[], int], is_strict: bool
    ) -> None:
        self._rates = rates
        self._client = client
        self._now_ms = now_ms
        self._is_strict = is_strict
        self._wait_ms = 0
        self._noted_ms = 0

    def charge(self, partitions: int) -> None:
        """Count partitions to be created or deleted. Raises KafkaError if a strict quota is exceeded."""
        now_ms = self._now_ms()
        ask = self._rates.refused_for_ms if self._is_strict else self._rates.record
        wait_ms = ask(*self._client, partitions, now_ms)
        if wait_ms:
            self._wait_ms, self._noted_ms = wait_ms, now_ms
            if self._is_strict:
                raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    @property
    def throttle_time_ms(self) -> int:
        """The remaining throttle time in ms."""
        return java_int(max(self._wait_ms - (self._now_ms() - self._noted_ms), 0))


def _client(ctx: Asking) -> tuple[str, str]:
    return ctx.principal.name, ctx.client_id or ""


def _is_exempt(ctx: Asking, key: ApiKey, request: Any) -> bool:
    if key is not ApiKey.FETCH:
        return key in _EXEMPT
    if ctx.api_version < _FIRST_VERSION_WITH_REPLICA_STATE:
        return bool(request.replica_id >= 0)
    return bool(request.replica_state.replica_id >= 0)
