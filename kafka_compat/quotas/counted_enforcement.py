"""Quotas whose use somebody may ask for: what each client used of late, and how long it was throttled. Pure.

There is one of these in a broker with an HTTP listener, in the place of a plain Enforcement; it does what
that does. The names are those of Kafka's MBeans.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.quotas import rate_table
from kafka_compat.quotas.client_rates import ClientRates, MutationRates
from kafka_compat.quotas.enforcement import CONSUMER, MUTATION, PRODUCER, REQUEST, Asking, Enforcement
from kafka_compat.quotas.precedence import Owner
from kafka_compat.quotas.rate_table import RateTable
from kafka_compat.quotas.rates import SampledAverage, Windows

PRODUCE, FETCH, TIME, CHANGES = "Produce", "Fetch", "Request", "ControllerMutation"
_MUTATING: Final = frozenset((ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS))

THROTTLE_WINDOWS: Final = Windows(2, 30_000)
"""Throttle times are an average over that: metrics.num.samples of metrics.sample.window.ms, by default."""


class Used(NamedTuple):
    """What those who share a quota used of late."""

    resource: str
    owner: Owner
    rate: float
    """Bytes, percents of the event loop's time, or partitions made and deleted, a second."""
    throttle_ms: float
    """For how long requests were throttled, on average of those that were; not a number where none was."""
    tokens: float | None
    """How many partitions may be made at once; None of another resource."""


class CountedEnforcement(Enforcement):
    """See the module."""

    def __init__(self, now_ms: Callable[[], int], windows: Windows, mutation_windows: Windows) -> None:
        super().__init__(now_ms, windows, mutation_windows)
        self._asked: dict[str, int] = {}
        """For how long each quota would throttle the request of now."""
        self._produce = produce = _NotingRates(PRODUCE, self._asked, windows)
        self._fetch = fetch = _NotingRates(FETCH, self._asked, windows)
        self._request = request = _NotingRates(TIME, self._asked, windows, windows.size_ms)
        self._mutations = self._changes = _CountedMutations(mutation_windows)
        self._measured = {PRODUCE: produce, FETCH: fetch, TIME: request}
        self._quotas |= {
            PRODUCER: produce.quotas,
            CONSUMER: fetch.quotas,
            REQUEST: request.quotas,
            MUTATION: self._changes.quotas,
        }
        self._throttled: OrderedDict[tuple[str, Owner], SampledAverage] = OrderedDict()

    def throttle(self, ctx: Any, request: Any, response: Any) -> int:
        self._asked.clear()
        throttle_ms = super().throttle(ctx, request, response)
        if throttle_ms > 0:
            changes = ctx.api_key in _MUTATING and throttle_ms > max(self._asked.values(), default=0)
            self._note(ctx, CHANGES if changes else self._longest(), throttle_ms)
        return throttle_ms

    def fetched(self, ctx: Asking, response_bytes: int) -> int:
        self._asked.clear()
        throttle_ms = super().fetched(ctx, response_bytes)
        if throttle_ms > 0:
            self._note(ctx, self._longest(), throttle_ms)
        return throttle_ms

    def used(self) -> Iterator[Used]:
        """By all who have a quota and are measured."""
        now_ms = self._now_ms()
        for resource, rates in self._measured.items():
            for owner, rate in rates.told(now_ms):
                yield Used(resource, owner, rate, self._throttle_ms(resource, owner, now_ms), None)
        for owner, rate, tokens in self._changes.told(now_ms):
            yield Used(CHANGES, owner, rate, self._throttle_ms(CHANGES, owner, now_ms), tokens)

    def _longest(self) -> str | None:
        """Which quota throttles the request of now; None of a consumer's, which was noted when it read."""
        return max(self._asked, key=self._asked.__getitem__, default=None)

    def _note(self, ctx: Asking, resource: str | None, throttle_ms: int) -> None:
        if resource is None:
            return
        quotas = self._changes.quotas if resource == CHANGES else self._measured[resource].quotas
        key = resource, quotas.owner(ctx.principal.name, ctx.client_id or "")
        average = self._throttled.pop(key, None)
        if average is None:
            average = SampledAverage(THROTTLE_WINDOWS)
            if len(self._throttled) >= rate_table.OWNERS_MAX:
                self._throttled.popitem(last=False)
        self._throttled[key] = average
        average.record(throttle_ms, self._now_ms())

    def _throttle_ms(self, resource: str, owner: Owner, now_ms: int) -> float:
        average = self._throttled.get((resource, owner))
        return float("nan") if average is None else average.told(now_ms)


class _NotingRates(ClientRates):
    """Rates that note what they answered."""

    def __init__(
        self, resource: str, asked: dict[str, int], windows: Windows, throttle_max_ms: int | None = None
    ) -> None:
        super().__init__(windows, throttle_max_ms)
        self._resource = resource
        self._asked = asked

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        throttle_ms = super().record(user, client_id, value, now_ms)
        self._asked[self._resource] = throttle_ms
        return throttle_ms

    def told(self, now_ms: int) -> Iterator[tuple[Owner, float]]:
        """Those who have a quota, and their rates."""
        for owner, rate in self._rates.items():
            if self.quotas.rate(owner) is not None:
                yield owner, rate.told(now_ms)


class _CountedMutations(MutationRates):
    """Buckets beside which the rate of what came is kept."""

    def __init__(self, windows: Windows) -> None:
        super().__init__(windows)
        self._came: RateTable[Owner] = RateTable(windows)

    def refused_for_ms(self, user: str, client_id: str, count: float, now_ms: int) -> int:
        wait_ms = super().refused_for_ms(user, client_id, count, now_ms)
        if wait_ms == 0:
            self._count(user, client_id, count, now_ms)
        return wait_ms

    def record(self, user: str, client_id: str, count: float, now_ms: int) -> int:
        wait_ms = super().record(user, client_id, count, now_ms)
        self._count(user, client_id, count, now_ms)
        return wait_ms

    def _count(self, user: str, client_id: str, count: float, now_ms: int) -> None:
        owner = self.quotas.owner(user, client_id)
        if self.quotas.rate(owner) is not None:
            self._came.of(owner, now_ms).record(count, now_ms)

    def told(self, now_ms: int) -> Iterator[tuple[Owner, float, float]]:
        """Those who have a quota: what they changed a second, and what is left in their buckets."""
        for owner, came in self._came.items():
            bound, bucket = self.quotas.rate(owner), self._buckets.get(owner)
            if bound is not None and bucket is not None:
                yield owner, came.told(now_ms), bucket.tokens(bound, now_ms)
