"""Measure recent rates, and compute the throttle time after which a rate falls to its limit, as in Kafka's
Rate, TokenBucket and QuotaUtils. No I/O: callers pass the time, in ms of a monotonic clock.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

_LONG_MAX = 2**63 - 1


class Windows(NamedTuple):
    """The measured period: quota.window.num samples of quota.window.size.seconds each."""

    samples: int
    size_ms: int


def quota_windows(setting: Callable[[str], int]) -> Windows:
    """Return the windows for client quotas and connection quotas."""
    return Windows(setting("quota.window.num"), 1000 * setting("quota.window.size.seconds"))


def mutation_windows(setting: Callable[[str], int]) -> Windows:
    """Return the windows for controller mutation quotas."""
    samples = setting("controller.quota.window.num")
    return Windows(samples, 1000 * setting("controller.quota.window.size.seconds"))


class SampledRate:
    """The rate per second of the values recorded in the last samples.

    A sample begins with the first value after the previous sample was full, and counts until `samples`
    windows after its last value. There is one more sample than there are windows, because the measured period
    begins within a sample. The measured period is at least all windows but one.
    """

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[list[float]] = []
        """[start, time of the last record, sum] of each sample. The oldest sample is reused."""
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Count `value`. A negative value reverses an earlier value."""
        samples = self._samples
        if not samples:
            samples.append([now_ms, now_ms, 0.0])
        sample = samples[self._current]
        if now_ms - sample[0] >= self._windows.size_ms:
            self._current = (self._current + 1) % (self._windows.samples + 1)
            if self._current == len(samples):
                samples.append([now_ms, now_ms, 0.0])
            sample = samples[self._current]
            sample[0], sample[2] = now_ms, 0.0
        sample[1] = now_ms
        sample[2] += value

    def measure(self, now_ms: int) -> tuple[float, int]:
        """Return the rate per second, and the measured period in ms."""
        self._forget_old(now_ms)
        begin_ms = min((sample[0] for sample in self._samples), default=now_ms)
        window_ms = self._window_of(int(begin_ms), now_ms)
        return sum(sample[2] for sample in self._samples) / (window_ms / 1000), window_ms

    def value(self, now_ms: int) -> float:
        """Return the rate per second, without dropping old samples."""
        begin_ms = min((sample[0] for sample in self._recent(now_ms)), default=now_ms)
        return self.total(now_ms) / (self._window_of(int(begin_ms), now_ms) / 1000)

    def total(self, now_ms: int) -> float:
        """Return the sum of the recent samples, without dropping old samples."""
        return sum(sample[2] for sample in self._recent(now_ms))

    def is_idle(self, now_ms: int) -> bool:
        """Return whether there are no recent samples."""
        return not self._recent(now_ms)

    def _recent(self, now_ms: int) -> list[list[float]]:
        age_ms = self._windows.samples * self._windows.size_ms
        return [sample for sample in self._samples if now_ms - sample[1] < age_ms]

    def _forget_old(self, now_ms: int) -> None:
        age_ms = self._windows.samples * self._windows.size_ms
        for sample in self._samples:
            if now_ms - sample[1] >= age_ms:
                sample[0] = sample[1] = now_ms
                sample[2] = 0.0

    def _window_of(self, begin_ms: int, now_ms: int) -> int:
        elapsed_ms = now_ms - begin_ms
        missing = self._windows.samples - 1 - elapsed_ms // self._windows.size_ms
        return max(elapsed_ms + max(missing, 0) * self._windows.size_ms, 1)


class SampledAverage:
    """The average of recorded values over the last samples."""

    __slots__ = ("_counts", "_sums")

    def __init__(self, windows: Windows) -> None:
        self._sums = SampledRate(windows)
        self._counts = SampledRate(windows)

    def record(self, value: float, now_ms: int) -> None:
        self._sums.record(value, now_ms)
        self._counts.record(1, now_ms)

    def value(self, now_ms: int) -> float:
        """Return the average, or NaN if there are no values, as in Kafka."""
        count = self._counts.total(now_ms)
        return self._sums.total(now_ms) / count if count else math.nan


class TokenBucket:
    """Credits that accrue at a rate, up to the amount that accrues during all windows. Recorded values spend
    credits, even if the balance becomes negative (KIP-599). A new bucket is full.
    """

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = 0.0
        self._updated_ms: int | None = None

    def record(self, value: float, rate: float, now_ms: int) -> None:
        self._refill(rate, now_ms)
        self._tokens = min(self._burst(rate), self._tokens - value)

    def tokens(self, rate: float, now_ms: int) -> float:
        self._refill(rate, now_ms)
        return self._tokens

    def is_idle(self, rate: float, now_ms: int) -> bool:
        """Return whether the bucket is full, like a new one."""
        return self.tokens(rate, now_ms) >= self._burst(rate)

    def _refill(self, rate: float, now_ms: int) -> None:
        if self._updated_ms is None:
            self._tokens = self._burst(rate)
        else:
            came = rate * ((now_ms - self._updated_ms) / 1000)
            self._tokens = min(self._burst(rate), self._tokens + came)
        self._updated_ms = now_ms

    def _burst(self, rate: float) -> float:
        return self._windows.samples * (self._windows.size_ms / 1000) * rate


def throttle_time_ms(rate: float, bound: float, window_ms: int) -> int:
    """Return the time in ms until a rate measured over `window_ms` falls to its limit, if nothing else is
    recorded. Return 0 if the rate is within the limit.
    """
    if rate <= bound:
        return 0
    over = (rate - bound) / bound if bound else math.inf
    return java_round(over * window_ms)


def refill_time_ms(tokens: float, rate: float) -> int:
    """Return the time in ms until a balance of `tokens` is no longer negative, or 0 if it is not negative."""
    return 0 if tokens >= 0 else java_round(-tokens / rate * 1000 if rate else math.inf)


def java_round(value: float) -> int:
    """Return the result of Java's Math.round, limited to the range of a long."""
    return _LONG_MAX if value >= _LONG_MAX else math.floor(value + 0.5)


def java_int(value: int) -> int:
    """Convert a Java long to an int: its low 32 bits. In Kafka, this conversion turns an infinite wait into
    -1, which means no wait. A quota of 0 bytes therefore never throttles.
    """
    return (value + 2**31) % 2**32 - 2**31


OWNERS_MAX = 20_000
LOOKED_AT = 2
"""Number of least recently used owners that are checked for removal whenever an owner is added."""

Owner = TypeVar("Owner")


class RateTable(Generic[Owner]):
    """Rates by owner. When an owner is added, each of the LOOKED_AT least recently used rates is dropped if
    it has no recent samples, or if the table has reached OWNERS_MAX owners.
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._rates: OrderedDict[Owner, SampledRate] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rates)

    def items(self) -> list[tuple[Owner, SampledRate]]:
        """Return all known rates, for display."""
        return list(self._rates.items())

    def of(self, owner: Owner, now_ms: int) -> SampledRate:
        """Return the rate of `owner`, and mark it as the most recently used."""
        rates = self._rates
        rate = rates.get(owner)
        if rate is None:
            for oldest in list(islice(rates, LOOKED_AT)):
                if len(rates) >= OWNERS_MAX or rates[oldest].is_idle(now_ms):
                    del rates[oldest]
            rate = rates[owner] = SampledRate(self._windows)
        else:
            rates.move_to_end(owner)
        return rate
