"""Sample the figures of the last hour: those of this process, and the lag of the groups that it coordinates.

Rules
1. The process's figures are differences of its counters, sampled every STEP_S seconds.
2. The lag of groups is measured one group at a time, because each partition with lag takes a read. After each
   group, the sampler rests _REST times as long as the measurement took. Measuring therefore takes at most a
   twentieth of the event loop's time, and the lag is sampled less often if there are very many partitions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.lag import records_behind
from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.cluster_view import ClusterView, NoBrokerRuns
from kafka_compat.metrics.group_lag import FreshTimes, GroupLags, GroupPartition, RemoteLag, remote_lags
from kafka_compat.status.hour import GROUPS_MAX, STEP_S, Hour, chosen

if TYPE_CHECKING:
    from kafka_compat.broker import Broker
    from kafka_compat.client.partitions import TopicPartition
    from kafka_compat.metrics.loop_watch import LoopWatch

log = logging.getLogger(__name__)

_REST: Final = 20.0
_REST_MIN_S: Final = 1.0
_TOPICS_AT_ONCE: Final = 500
_PLACES_AT_ONCE: Final = 20


class _Totals(NamedTuple):
    """Counters of all brokers of this process since their startup."""

    records: int
    bytes_in: int
    bytes_out: int
    requests: int


class _Sample(NamedTuple):
    at_s: float
    totals: _Totals
    busy_s: float


class Sampler:
    """Sampler of the brokers of this process. `loop` watches their event loop."""

    def __init__(self, brokers: Sequence[Broker], loop: LoopWatch, hour: Hour) -> None:
        self._brokers = brokers
        self._loop = loop
        self._hour = hour
        self._before: _Sample | None = None
        self._is_first = True
        """Whether the next sample does not cover the time since the one before it."""

    async def watch(self) -> None:
        """Sample until canceled."""
        await asyncio.gather(self._repeat(self.sample), self._repeat(self.sample_lags))

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        now_s = asyncio.get_running_loop().time
        # Rest only briefly after the first sample: rates need two of them.
        step_s = _REST_MIN_S
        while True:
            began_s = now_s()
            try:
                await work()
            except NoBrokerRuns:
                # The brokers are stopping or restarting, and their counters start from zero.
                self._before = None
            except Exception:
                log.exception("Could not sample the last hour for the web console")
            await asyncio.sleep(max(_REST_MIN_S, began_s + step_s - now_s()))
            step_s = STEP_S

    async def sample(self) -> None:
        """Add the process's figures since the previous call. Raises NoBrokerRuns."""
        view = ClusterView(self._brokers)
        totals = await view.long_work.finish(_totals(view))
        now = _Sample(asyncio.get_running_loop().time(), totals, self._loop.busy_s)
        delay_s = self._loop.take_longest_delay_s()
        before, self._before = self._before, now
        if before is None or now.at_s <= before.at_s:
            self._is_first = True
            return
        took_s = now.at_s - before.at_s
        grown = [later - earlier for earlier, later in zip(before.totals, totals, strict=True)]
        if min(grown) < 0:
            # A broker has restarted.
            self._is_first = True
            return
        records, bytes_in, bytes_out, requests = (each / took_s for each in grown)
        values = {
            "records": records,
            "bytes_in": bytes_in,
            "bytes_out": bytes_out,
            "requests": requests,
            "busy": min(max((now.busy_s - before.busy_s) / took_s, 0.0), 1.0),
            "delay": delay_s,
        }
        self._hour.put(now.at_s, values, is_first=self._is_first)
        self._is_first = False

    async def sample_lags(self) -> None:
        """Add the current lag of each group that this process coordinates. Raises NoBrokerRuns."""
        now_s = asyncio.get_running_loop().time
        began_s = now_s()
        view = ClusterView(self._brokers)
        self._hour.follow(await view.long_work.finish(_groups(view, self._hour.groups)))
        await asyncio.sleep(_REST * (now_s() - began_s))
        for group in self._hour.groups:
            began_s = now_s()
            view = ClusterView(self._brokers)
            remote = await remote_lags(view, group)
            found_ms = await view.long_work.finish(_lag_ms(view, group, remote))
            if found_ms is not None:
                self._hour.put_lag(group, now_s(), found_ms / 1000)
            await asyncio.sleep(_REST * (now_s() - began_s))


def _totals(view: ClusterView) -> Steps[_Totals]:
    records = bytes_in = bytes_out = 0
    for broker in view.brokers:
        counts = broker.partitions
        for some in batched([counts.deleted, *counts.topics.values()], _TOPICS_AT_ONCE):
            for topic in some:
                records += topic.records_in
                bytes_in += topic.bytes_in
                bytes_out += topic.bytes_out
            yield None
    requests = sum(count for broker in view.brokers for _, _, count in broker.requests.requests)
    return _Totals(records, bytes_in, bytes_out, requests)


def _groups(view: ClusterView, followed: Sequence[str]) -> Steps[list[str]]:
    """Return the groups with committed offsets. If there are too many, return those with the most lag."""
    found: list[str] = []
    for coordinator in view.coordinators():
        for some in batched(coordinator.group_ids()):
            for group in some:
                progress = coordinator.progress(group)
                if progress is not None and progress.committed:
                    found.append(group)
            yield None
    if len(found) <= GROUPS_MAX:
        return found
    lags: dict[str, float] = {}
    for group in found:
        lags[group] = 0.0
        for some_places in batched(_committed(view, group), _PLACES_AT_ONCE):
            for (topic, number), position in some_places:
                known = view.metadata.partition(topic, number)
                led = None if known is None else view.led(topic, known)
                end = None if led is None else led.known_high_watermark
                lags[group] += max(records_behind(position.value.offset, end) or 0, 0)
            yield None
        if len(lags) > 2 * GROUPS_MAX:
            # Sorting the lags of all groups at once would take too long.
            lags = {name: lags[name] for name in chosen(lags, followed)}
    return chosen(lags, followed)


def _committed(view: ClusterView, group: str) -> list[tuple[TopicPartition, Any]]:
    """Return the committed offsets of a group that this process coordinates, with their partitions."""
    for coordinator in view.coordinators():
        progress = coordinator.progress(group)
        if progress is not None:
            # A copy, because commits change the dictionary while the steps of this module pause.
            return list(progress.committed.items())
    return []


def _lag_ms(view: ClusterView, group: str, remote: Mapping[GroupPartition, RemoteLag]) -> Steps[int | None]:
    """Return the largest lag of a group in ms, or None if it is unknown."""
    lags = GroupLags(view, FreshTimes(), remote)
    most_ms: int | None = None
    for (topic, number), position in _committed(view, group):
        known = view.metadata.partition(topic, number)
        if known is None:
            return None
        lag_ms = (yield from lags.at(group, topic, known, position.value.offset)).ms
        if lag_ms is None:
            # As in kafka_compat/lag.py, the longest lag is unknown if any lag is unknown.
            return None
        most_ms = lag_ms if most_ms is None else max(most_ms, lag_ms)
        yield None
    return most_ms
