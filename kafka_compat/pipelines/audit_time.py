"""The time axis of an audit's picture: how wide its steps are, from when to when it goes, what it says."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from kafka_compat.pipelines.audit_counts import Bucket, Count

STEPS_MAX = 400
"""More would be a thicket: the picture then adds buckets up."""
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_STEPS = [_SECOND * n for n in (1, 5, 15, 30)] + [_MINUTE * n for n in (1, 5, 15, 30)]
_STEPS += [_HOUR * n for n in (1, 3)] + [_DAY * n for n in (1, 7, 30, 365, 3650)]  # not day and night in turn
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_000
_STRAYS = 0.001


class Span(NamedTuple):
    """From `first_ms` on, `steps` of `step_ms`, each a whole number of the audit's buckets. `strays` buckets
    with few records lie far outside."""

    first_ms: int
    step_ms: int
    steps: int
    bucket_ms: int
    strays: int

    @property
    def edges_ms(self) -> list[int]:
        """Where the steps begin, and where the last one ends."""
        return [self.first_ms + i * self.step_ms for i in range(self.steps + 1)]

    def holds(self, when_ms: int) -> bool:
        """Whether a bucket is shown."""
        return self.first_ms <= when_ms < self.first_ms + self.steps * self.step_ms

    def rows(self, tier: Mapping[Bucket, Count]) -> list[int]:
        """Records in each step, all partitions together."""
        rows = [0] * self.steps
        for (_, when), count in tier.items():
            if self.holds(when):
                rows[(when - self.first_ms) // self.step_ms] += count.rows
        return rows


def span_of(tiers: Collection[Mapping[Bucket, Count]], bucket_ms: int) -> Span:
    """What shows these tiers. Timestamps far from all others (a clock that was wrong, a 0) would leave no
    room for the others: one record in a thousand may be left out for that, on either side.
    """
    rows: dict[int, int] = {}
    for tier in tiers:
        for (_, when), count in tier.items():
            rows[when] = rows.get(when, 0) + count.rows
    whens = sorted(when for when in rows if _FIRST_MS <= when <= _LAST_MS - bucket_ms)
    if not whens:
        return Span(0, bucket_ms, 1, bucket_ms, len(rows))
    first, last = _core(whens, rows)
    if whens[-1] - whens[0] <= 4 * (last - first + bucket_ms):
        first, last = whens[0], whens[-1]
    step = _step(last - first + bucket_ms, bucket_ms)
    start = first - first % step
    steps = (last - start) // step + 1
    shown = sum(start <= when < start + steps * step for when in rows)
    return Span(start, step, steps, bucket_ms, len(rows) - shown)


def _core(whens: Sequence[int], rows: Mapping[int, int]) -> tuple[int, int]:
    """Where the first and the last one in a thousand records lie."""
    spare = sum(rows[when] for when in whens) * _STRAYS
    ends = []
    for order in (whens, list(reversed(whens))):
        passed = 0
        for when in order:
            passed += rows[when]
            if passed > spare:
                ends.append(when)
                break
    return ends[0], ends[1]


def _step(length_ms: int, bucket_ms: int) -> int:
    """The least length that does, and is a whole number of buckets."""
    if length_ms <= STEPS_MAX * bucket_ms:
        return bucket_ms
    for step in _STEPS:
        if step % bucket_ms == 0 and length_ms <= STEPS_MAX * step:
            return step
    return bucket_ms * -(-length_ms // (STEPS_MAX * bucket_ms))


def times(millis: Sequence[int]) -> list[datetime]:
    """As the axis takes them; those outside of the years 1 to 9999 are put at its edge."""
    return [_EPOCH + timedelta(milliseconds=min(max(m, _FIRST_MS), _LAST_MS)) for m in millis]


def length_text(length_ms: int) -> str:
    """A length of time: hour, 15 minutes, 7 days."""
    for unit, size in (("day", _DAY), ("hour", _HOUR), ("minute", _MINUTE), ("second", _SECOND)):
        if length_ms % size == 0:
            count = length_ms // size
            return unit if count == 1 else f"{count:,} {unit}s"
    return f"{length_ms:,} ms"


def on_time_axis(axes: Any, span: Span) -> None:
    """Ticks with the year at each, in UTC, and from when to when it goes."""
    from matplotlib import dates as typed

    dates: Any = typed  # whose classes have no types
    length_ms = span.steps * span.step_ms
    form = (
        "%Y-%m-%d"
        if length_ms >= 4 * _DAY
        else "%Y-%m-%d\n%H:%M"
        if length_ms > _MINUTE
        else "%Y-%m-%d\n%H:%M:%S"
    )
    axes.xaxis.set_major_locator(dates.AutoDateLocator(tz=UTC, minticks=4, maxticks=9))
    axes.xaxis.set_major_formatter(dates.DateFormatter(form, tz=UTC))
    first, last = times([span.first_ms, span.first_ms + length_ms])
    axes.set_xlim(first, last)
    strays = (
        f"; {span.strays:,} bucket{'s' if span.strays > 1 else ''} far outside are in no field"
        if span.strays
        else ""
    )
    axes.set_xlabel(f"time of the records, UTC, {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}{strays}")
