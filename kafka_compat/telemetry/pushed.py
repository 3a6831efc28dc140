"""Storage of the metrics that clients have pushed, shared by the brokers of one process. No I/O.

Rules
1. A gauge is pushed as its value: each push replaces the previous value. A counter is pushed as its increase
   since the last push (delta temporality), and summed here, as Prometheus expects.
2. A client that has not pushed for three of its intervals, at least a minute, is removed.
3. All clients together have at most `series_max` series. Series of one client beyond a tenth of this limit
   are dropped; at the limit, the clients whose last push is oldest are removed.

Times are in milliseconds of a monotonic clock.
"""

from __future__ import annotations

import importlib.util
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final
from uuid import UUID

if TYPE_CHECKING:
    from kafka_compat.telemetry.payload import Pairs, Pushed

log = logging.getLogger(__name__)

_OTLP: Final = ("opentelemetry", "opentelemetry.proto")

_SHARE_OF_ONE: Final = 10

Series = tuple[str, "Pairs"]
"""The name of a metric family, and the labels of a series."""


def has_otlp() -> bool:
    """Return whether the OTLP package is installed (the `telemetry` and `otel` extras)."""
    return all(importlib.util.find_spec(name) is not None for name in _OTLP)


class PushedBy:
    """The metrics pushed by one client instance."""

    __slots__ = ("about", "counters", "gauges", "identity", "leaves_ms")

    def __init__(self, identity: Pairs) -> None:
        self.identity = identity
        """Labels of all the client's series."""
        self.about: Pairs = ()
        """Labels added to the client-identity sample."""
        self.gauges: dict[Series, float] = {}
        self.counters: dict[Series, float] = {}
        self.leaves_ms = 0

    def __len__(self) -> int:
        return len(self.gauges) + len(self.counters)


class PushedMetrics:
    def __init__(self, series_max: int) -> None:
        self._series_max = series_max
        self._clients: OrderedDict[UUID, PushedBy] = OrderedDict()
        """Clients in the order of their last pushes, the oldest first."""
        self.series = 0
        """Number of stored series."""
        self.left_out = 0
        """Number of series dropped so far."""
        self._has_warned = False

    @property
    def series_of_one_max(self) -> int:
        """The maximum number of series of one client."""
        return max(1, self._series_max // _SHARE_OF_ONE)

    def take(
        self, instance_id: UUID, identity: Pairs, about: Pairs, pushed: Pushed, shown_for_ms: int, now_ms: int
    ) -> None:
        """Store a push from a client. Its metrics are current for `shown_for_ms`."""
        held = self._clients.pop(instance_id, None)
        if held is not None:
            self.series -= len(held)
        if held is None or held.identity != identity:
            held = PushedBy(identity)
        held.about = about + pushed.about
        held.leaves_ms = now_ms + shown_for_ms
        left_out = pushed.left_out + self._merge(held, pushed)
        if len(held):
            self._clients[instance_id] = held
            self.series += len(held)
        if self.series > self._series_max:
            self.expire(now_ms)
        while self.series > self._series_max:
            _, oldest = self._clients.popitem(last=False)
            self.series -= len(oldest)
        if left_out:
            self._tell(identity, left_out)

    def _merge(self, held: PushedBy, pushed: Pushed) -> int:
        """Merge a push, and return the number of dropped series."""
        held.gauges.clear()
        left_out = 0
        for name, labels, value, grows, is_delta in pushed.samples:
            series = name, labels
            if grows:
                held.gauges.pop(series, None)
            elif series in held.counters:
                continue
            values = held.counters if grows else held.gauges
            if series not in values and len(held) >= self.series_of_one_max:
                left_out += 1
            elif is_delta:
                values[series] = values.get(series, 0.0) + value
            else:
                values[series] = value
        return left_out

    def _tell(self, identity: Pairs, left_out: int) -> None:
        self.left_out += left_out
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "Ignored metrics of client {%s} (series: %d): they are histograms, or exceed the limit per "
                "client (a tenth of kafka.compat.client.metrics.series.max=%d). This warning is logged only "
                "once; /metrics counts all ignored series",
                ",".join(f'{name}="{value}"' for name, value in identity),
                left_out,
                self._series_max,
            )

    def expire(self, now_ms: int) -> None:
        """Remove the clients whose metrics are no longer current."""
        silent = [each for each, held in self._clients.items() if held.leaves_ms <= now_ms]
        for instance_id in silent:
            self.series -= len(self._clients.pop(instance_id))

    def clients(self) -> list[PushedBy]:
        """Return the metrics of all clients, in the order of their last pushes."""
        return list(self._clients.values())
