"""Records written per second, from the ends of logs at two moments. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafka_compat.long_work import Steps

if TYPE_CHECKING:
    from kafka_compat.metrics.cluster_view import ClusterView

EVERY_S: Final = 5.0
_SAMPLES: Final = 13
"""Rates are those of the last minute."""
_PARTITIONS_AT_ONCE: Final = 200

Counts = Mapping[str, tuple[int, int]]
"""For each topic: how many of its partitions are led here, and the sum of the ends of their logs."""


class Rates:
    """Of the topics of which brokers of this process lead partitions."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, Counts]] = deque(maxlen=_SAMPLES)

    def add(self, now_s: float, counts: Counts) -> None:
        """The counts of now."""
        self._samples.append((now_s, counts))

    def forget(self) -> None:
        """The logs begin anew."""
        self._samples.clear()

    def forget_topic(self, topic: str) -> None:
        """A topic was deleted: the next of its name begins from scratch."""
        for number, (at_s, counts) in enumerate(self._samples):
            if topic in counts:
                kept = {name: count for name, count in counts.items() if name != topic}
                self._samples[number] = at_s, kept

    def of(self, topic: str) -> float | None:
        """Records per second over the last minute, in partitions that are led here; None where that is not
        known yet.
        """
        if len(self._samples) < 2:
            return None
        last_s, last = self._samples[-1]
        if topic not in last:
            return None
        led, end = last[topic]
        for first_s, first in self._samples:
            # Leaders that moved, or a topic that was made anew, have nothing to do with what comes.
            if first_s < last_s and topic in first and first[topic][0] == led and first[topic][1] <= end:
                return (end - first[topic][1]) / (last_s - first_s)
        return None


def record_counts(cluster: ClusterView) -> Steps[Counts]:
    """The counts of now, in steps."""
    found: dict[str, tuple[int, int]] = {}
    looked_at = 0
    for topic in list(cluster.metadata.topics.values()):
        led = end = 0
        for known in topic.partitions:
            partition = cluster.led(topic.name, known)
            if partition is not None:
                led += 1
                end += partition.log.log_end_offset
        looked_at += len(topic.partitions)
        if led:
            found[topic.name] = led, end
        if looked_at >= _PARTITIONS_AT_ONCE:
            looked_at = 0
            yield None
    return found
