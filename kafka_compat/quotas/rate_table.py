"""Rates of many who come and go. Pure.

What is known of one is forgotten as soon as it makes no difference, at the latest when more than OWNERS_MAX
others came after it.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import Generic, TypeVar

from kafka_compat.quotas.rates import SampledRate, Windows

OWNERS_MAX = 20_000
LOOKED_AT = 2
"""For each that is new so many of the longest unused are looked at, whether they can be forgotten."""

Owner = TypeVar("Owner")


class RateTable(Generic[Owner]):
    """A rate for each who has one."""

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
