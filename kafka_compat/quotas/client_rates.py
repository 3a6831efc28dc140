"""Usage rates and limits of clients for one kind of quota. Only clients with a quota are measured. No I/O."""

import sys
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice

from kafka_compat.quotas import rates
from kafka_compat.quotas.precedence import Owner, Quotas
from kafka_compat.quotas.rates import (
    LOOKED_AT,
    RateTable,
    TokenBucket,
    Windows,
    java_int,
    refill_time_ms,
    throttle_time_ms,
)


class ClientRates:
    """Rates and quotas of clients, in bytes per second or as a percentage of event loop time."""

    def __init__(self, windows: Windows, throttle_max_ms: int | None = None) -> None:
        """`throttle_max_ms` is the maximum throttle time, or None if there is no maximum."""
        self.quotas = Quotas()
        self.asked_ms = 0
        """The throttle time that `record` has returned since this was last set to 0."""
        self._windows = windows
        self._throttle_max_ms = throttle_max_ms
        self._rates: RateTable[Owner] = RateTable(windows)

    def __len__(self) -> int:
        return len(self._rates)

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Count `value`. Return the throttle time in ms (0 or less if the client is within its quota)."""
        owner = self.quotas.owner(user, client_id)
        bound = self.quotas.rate(owner)
        if bound is None:
            return 0
        rate = self._rates.of(owner, now_ms)
        rate.record(value, now_ms)
        measured, window_ms = rate.measure(now_ms)
        throttle_ms = throttle_time_ms(measured, bound, window_ms)
        if self._throttle_max_ms is not None:
            throttle_ms = min(throttle_ms, self._throttle_max_ms)
        self.asked_ms = java_int(throttle_ms)
        return self.asked_ms

    def count(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Count `value` toward later requests. A negative value reverses an earlier value."""
        owner = self.quotas.owner(user, client_id)
        if self.quotas.rate(owner) is not None:
            self._rates.of(owner, now_ms).record(value, now_ms)

    def in_use(self, now_ms: int) -> Iterator[tuple[Owner, float]]:
        """Yield the clients that have a quota, with their rates."""
        for owner, rate in self._rates.items():
            if self.quotas.rate(owner) is not None:
                yield owner, rate.value(now_ms)

    def window_max(self, user: str, client_id: str) -> int:
        """Return the largest value that is not throttled if there is no earlier usage."""
        bound = self.quotas.rate(self.quotas.owner(user, client_id))
        if bound is None:
            return sys.maxsize
        return int(min(bound * (self._windows.samples - 1) * (self._windows.size_ms / 1000), 2**31 - 1))


class MutationRates:
    """Rates of created and deleted partitions per second (KIP-599)."""

    def __init__(self, windows: Windows) -> None:
        self.quotas = Quotas()
        self._windows = windows
        self._buckets: OrderedDict[Owner, TokenBucket] = OrderedDict()
        self._came: RateTable[Owner] = RateTable(windows)
        """Rate of partition changes, for metrics."""

    def __len__(self) -> int:
        return len(self._buckets)

    def refused_for_ms(self, user: str, client_id: str, count: float, now_ms: int) -> int:
        """Count the partitions and return 0, or return the time in ms until the quota allows them."""
        owner = self.quotas.owner(user, client_id)
        rate = self.quotas.rate(owner)
        if rate is None:
            return 0
        wait_ms = refill_time_ms(self._bucket_of(owner, rate, now_ms).tokens(rate, now_ms), rate)
        if wait_ms == 0:
            self.record(user, client_id, count, now_ms)
        return wait_ms

    def record(self, user: str, client_id: str, count: float, now_ms: int) -> int:
        """Count partitions regardless of earlier usage, and return the throttle time in ms."""
        owner = self.quotas.owner(user, client_id)
        rate = self.quotas.rate(owner)
        if rate is None:
            return 0
        bucket = self._bucket_of(owner, rate, now_ms)
        bucket.record(count, rate, now_ms)
        self._came.of(owner, now_ms).record(count, now_ms)
        return refill_time_ms(bucket.tokens(rate, now_ms), rate)

    def in_use(self, now_ms: int) -> Iterator[tuple[Owner, float, float]]:
        """Yield the clients that have a quota, with partition changes per second and remaining credits."""
        for owner, came in self._came.items():
            bound, bucket = self.quotas.rate(owner), self._buckets.get(owner)
            if bound is not None and bucket is not None:
                yield owner, came.value(now_ms), bucket.tokens(bound, now_ms)

    def _bucket_of(self, owner: Owner, rate: float, now_ms: int) -> TokenBucket:
        buckets = self._buckets
        bucket = buckets.get(owner)
        if bucket is None:
            for oldest in list(islice(buckets, LOOKED_AT)):
                oldest_rate = self.quotas.rate(oldest)
                if (
                    len(buckets) >= rates.OWNERS_MAX
                    or oldest_rate is None
                    or buckets[oldest].is_idle(oldest_rate, now_ms)
                ):
                    del buckets[oldest]
            bucket = buckets[owner] = TokenBucket(self._windows)
        else:
            buckets.move_to_end(owner)
        return bucket
