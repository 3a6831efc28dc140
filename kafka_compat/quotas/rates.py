"""Measurement of recent rates, and the throttle time after which a rate is within its limit: Kafka's Rate,
TokenBucket and QuotaUtils. Pure: the time is passed in, in ms of a monotonic clock.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

_LONG_MAX = 2**63 - 1


class Windows(NamedTuple):
    """Over how long rates are measured: quota.window.num samples of quota.window.size.seconds each."""

    samples: int
    size_ms: int


def quota_windows(setting: Callable[[str], int]) -> Windows:
    """Those of quotas of clients and connections."""
    return Windows(setting("quota.window.num"), 1000 * setting("quota.window.size.seconds"))


def mutation_windows(setting: Callable[[str], int]) -> Windows:
    """Those of quotas of changes that the controller makes."""
    samples = setting("controller.quota.window.num")
    return Windows(samples, 1000 * setting("controller.quota.window.size.seconds"))


class SampledRate:
    """What was recorded per second, over the last samples.

    A sample begins with the first record after the one before it was full; it counts until `samples` windows
    after its last record. There is one sample more than windows, for the one that the beginning of the
    measured time cuts. Too short a history counts as if it were all windows but one.
    """

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[list[float]] = []
        """[when it began, when it last got something, the sum] of each; the oldest is used anew."""
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """`value` may be negative: then it takes back what was recorded."""
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
        """The rate per second, and over how many ms it was measured."""
        self._forget_old(now_ms)
        window_ms = self._window_ms(now_ms)
        return sum(sample[2] for sample in self._samples) / (window_ms / 1000), window_ms

    def value(self, now_ms: int) -> float:
        """The rate per second as `measure` has it, for somebody who only looks: nothing is forgotten."""
        begin_ms = min((sample[0] for sample in self._recent(now_ms)), default=now_ms)
        return self.total(now_ms) / (self._window_of(int(begin_ms), now_ms) / 1000)

    def total(self, now_ms: int) -> float:
        """All that was recorded over the last samples; nothing is forgotten."""
        return sum(sample[2] for sample in self._recent(now_ms))

    def is_idle(self, now_ms: int) -> bool:
        """Whether a new one would say the same from now on."""
        return not self._recent(now_ms)

    def _recent(self, now_ms: int) -> list[list[float]]:
        """The samples that count."""
        age_ms = self._windows.samples * self._windows.size_ms
        return [sample for sample in self._samples if now_ms - sample[1] < age_ms]

    def _forget_old(self, now_ms: int) -> None:
        age_ms = self._windows.samples * self._windows.size_ms
        for sample in self._samples:
            if now_ms - sample[1] >= age_ms:
                sample[0] = sample[1] = now_ms
                sample[2] = 0.0

    def _window_ms(self, now_ms: int) -> int:
        return self._window_of(int(min((sample[0] for sample in self._samples), default=now_ms)), now_ms)

    def _window_of(self, begin_ms: int, now_ms: int) -> int:
        elapsed_ms = now_ms - begin_ms
        missing = self._windows.samples - 1 - elapsed_ms // self._windows.size_ms
        return max(elapsed_ms + max(missing, 0) * self._windows.size_ms, 1)


class SampledAverage:
    """The average of what was recorded over the last samples."""

    __slots__ = ("_counts", "_sums")

    def __init__(self, windows: Windows) -> None:
        self._sums = SampledRate(windows)
        self._counts = SampledRate(windows)

    def record(self, value: float, now_ms: int) -> None:
        self._sums.record(value, now_ms)
        self._counts.record(1, now_ms)

    def value(self, now_ms: int) -> float:
        """Not a number where nothing was recorded, as with Kafka's."""
        count = self._counts.total(now_ms)
        return self._sums.total(now_ms) / count if count else math.nan


class TokenBucket:
    """Credits that come at a rate, up to what comes in all windows together, and go with each record, below
    zero, too (KIP-599). A new one is full.
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
        """Whether a new one would say the same from now on."""
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
    """For how long nothing is to come, that a rate measured over `window_ms` falls to its bound; not above 0
    where it is within it.
    """
    if rate <= bound:
        return 0
    over = (rate - bound) / bound if bound else math.inf
    return java_round(over * window_ms)


def refill_time_ms(tokens: float, rate: float) -> int:
    """How long a bucket takes until it has no debts; not above 0 where it has none."""
    if tokens >= 0:
        return 0
    return java_round(-tokens / rate * 1000 if rate else math.inf)


def java_round(value: float) -> int:
    """Math.round, which goes no further than a long."""
    if value >= _LONG_MAX:
        return _LONG_MAX
    return math.floor(value + 0.5)


def java_int(value: int) -> int:
    """A long as an int, of which only the last 32 bits count. Kafka so makes -1 of an endless wait, which
    then is none: a quota of 0 bytes holds nobody back.
    """
    return (value + 2**31) % 2**32 - 2**31


OWNERS_MAX = 20_000
LOOKED_AT = 2
"""For each that is new so many of the longest unused are looked at, whether they can be forgotten."""

Owner = TypeVar("Owner")


class RateTable(Generic[Owner]):
    """A rate for each of many owners that come and go. What is known of one is forgotten as soon as it makes
    no difference, at the latest when more than OWNERS_MAX others came after it.
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._rates: OrderedDict[Owner, SampledRate] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rates)

    def items(self) -> list[tuple[Owner, SampledRate]]:
        """All that are known, for somebody who only looks."""
        return list(self._rates.items())

    def of(self, owner: Owner, now_ms: int) -> SampledRate:
        """The rate of `owner`, to be used now."""
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
