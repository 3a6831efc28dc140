"""Plot the audit (the records over time, and the differences from the first tier) as a PNG and as an HTML
page with the tables. Each tier has its own panel, because the curves of matching tiers would hide each other.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from kafka_compat.pipelines.audit_counts import Bucket, Count, Difference
from kafka_compat.pipelines.plot_page import Origin, Page, Table, Theme, columns, save, shortened, thousands
from kafka_compat.pipelines.progress import utc

STEPS_MAX = 400
"""Maximum number of time steps in a plot. Buckets are merged if there are more."""
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_STEPS = [_SECOND * n for n in (1, 5, 15, 30)] + [_MINUTE * n for n in (1, 5, 15, 30)]
# Omit steps of 6 and 12 hours: the counts would alternate between day and night.
_STEPS += [_HOUR * n for n in (1, 3)] + [_DAY * n for n in (1, 7, 30, 365, 3650)]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_000
_STRAYS = 0.001


class Span(NamedTuple):
    """A time axis with `steps` steps of `step_ms`, starting at `first_ms`. Each step is a whole number of
    audit buckets. `strays` is the number of buckets outside of the axis.
    """

    first_ms: int
    step_ms: int
    steps: int
    bucket_ms: int
    strays: int

    @property
    def edges_ms(self) -> list[int]:
        """Start of each step, and end of the last step, in milliseconds since 1970."""
        return [self.first_ms + i * self.step_ms for i in range(self.steps + 1)]

    def holds(self, when_ms: int) -> bool:
        """Return whether a timestamp is within the span."""
        return self.first_ms <= when_ms < self.first_ms + self.steps * self.step_ms

    def rows(self, tier: Mapping[Bucket, Count]) -> list[int]:
        """Return the number of the tier's records in each step, over all partitions."""
        rows = [0] * self.steps
        for (_, when), count in tier.items():
            if self.holds(when):
                rows[(when - self.first_ms) // self.step_ms] += count.rows
        return rows


def span_of(tiers: Collection[Mapping[Bucket, Count]], bucket_ms: int) -> Span:
    """Return the time span to plot. Up to one record in a thousand is excluded at either end, because
    outlying timestamps (such as 0, or from a wrong clock) would leave little space for the other records.
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
    """Return the first and last timestamps after excluding one record in a thousand at each end."""
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
    """Return the length of a step in ms: whole buckets, and at most STEPS_MAX steps in `length_ms`."""
    if length_ms <= STEPS_MAX * bucket_ms:
        return bucket_ms
    for step in _STEPS:
        if step % bucket_ms == 0 and length_ms <= STEPS_MAX * step:
            return step
    return bucket_ms * -(-length_ms // (STEPS_MAX * bucket_ms))


def times(millis: Sequence[int]) -> list[datetime]:
    """Convert timestamps to datetimes for the time axis. Years outside of 1 to 9999 are clamped."""
    return [_EPOCH + timedelta(milliseconds=min(max(m, _FIRST_MS), _LAST_MS)) for m in millis]


def length_text(length_ms: int) -> str:
    """Format a duration in words, such as "hour", "15 minutes" or "7 days"."""
    for unit, size in (("day", _DAY), ("hour", _HOUR), ("minute", _MINUTE), ("second", _SECOND)):
        if length_ms % size == 0:
            count = length_ms // size
            return unit if count == 1 else f"{count:,} {unit}s"
    return f"{length_ms:,} ms"


def on_time_axis(axes: Any, span: Span) -> None:
    """Set up the time axis: UTC ticks with the year, the limits, and the label."""
    from matplotlib import dates as typed

    dates: Any = typed  # Use Any, because matplotlib.dates has no type annotations.
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
        f"; {span.strays:,} bucket{'s' if span.strays > 1 else ''} far outside the range are not shown"
        if span.strays
        else ""
    )
    axes.set_xlabel(f"time of the records, UTC, {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}{strays}")


Counts = Mapping[str, Mapping[Bucket, Count]]
ROWS_MAX = 500
_MARKS = {"lost": "v", "duplicated": "^", "changed": "D"}
_INCHES = 1.3


def plot(
    path: Path,
    counts: Counts,
    differences: Sequence[Difference],
    bucket_ms: int,
    places: Mapping[str, str],
    origin: Origin,
) -> tuple[Path, Path]:
    """Write `path`.png and `path`.html, and return both paths. `places` describes each tier's location."""
    shown = page(counts, differences, bucket_ms, places, origin)
    return save(path, shown, lambda theme: draw(counts, differences, bucket_ms, theme))


def draw(counts: Counts, differences: Sequence[Difference], bucket_ms: int, theme: Theme) -> Any:
    """Draw a panel for each tier, with shared axes, and a panel for the differences, if there are any."""
    from matplotlib.figure import Figure

    names, differ = list(counts), bool(differences)
    span = span_of(counts.values(), bucket_ms)
    heights = [1.0] * len(names) + [1.3] * differ
    figure = Figure(figsize=(13, _INCHES * sum(heights) + 1.3), layout="constrained")
    fields = list(figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0])
    reference = span.rows(counts[names[0]])
    most = max((max(span.rows(tier), default=0) for tier in counts.values()), default=0)
    for axes, name in zip(fields, names, strict=False):
        own = [difference for difference in differences if difference.tier == name]
        _tier(axes, span, counts[name], None if name == names[0] else reference, theme)
        _marks(axes, span, own, theme)
        axes.set_title(_title(name, counts, own, is_first=name == names[0]))
        axes.set_ylim(0, max(most, 1) * 1.18)
    if differ:
        _surplus(fields[-1], span, counts, theme)
    _explain(figure, fields[0], differences, theme, names[0])
    figure.supylabel(f"records per {length_text(span.step_ms)}", fontsize=9)
    on_time_axis(fields[-1], span)
    return figure


def _tier(axes: Any, span: Span, tier: Mapping[Bucket, Count], reference: Any, theme: Theme) -> None:
    axes.stairs(span.rows(tier), times(span.edges_ms), fill=True, color=theme.first, alpha=0.35, linewidth=0)
    axes.stairs(span.rows(tier), times(span.edges_ms), color=theme.first, linewidth=0.9)
    if reference is not None:
        axes.stairs(reference, times(span.edges_ms), color=theme.ink, linewidth=0.7, linestyle=(0, (2, 3)))
    thousands(axes.yaxis)
    axes.grid(axis="y")


def _marks(axes: Any, span: Span, differences: Sequence[Difference], theme: Theme) -> None:
    """Draw a marker above each bucket that differs. Its shape shows the verdict."""
    for verdict, marker in _MARKS.items():
        found = {d.bucket_ms for d in differences if d.verdict == verdict and span.holds(d.bucket_ms)}
        if not found:
            continue
        axes.plot(
            times(sorted(when + span.bucket_ms // 2 for when in found)),
            [0.94] * len(found),
            marker,
            transform=axes.get_xaxis_transform(),
            color=theme.second,
            markeredgecolor=theme.paper,
            markersize=8,
            clip_on=False,
        )


def _surplus(axes: Any, span: Span, counts: Counts, theme: Theme) -> None:
    """Plot each tier's surplus or deficit relative to the first tier, with a marker shape for each tier."""
    first, *others = counts
    reference = span.rows(counts[first])
    middles = [(a + b) // 2 for a, b in zip(span.edges_ms, span.edges_ms[1:], strict=False)]
    colors = (theme.second, theme.third, theme.first)
    for i, name in enumerate(others):
        more = [n - m for n, m in zip(span.rows(counts[name]), reference, strict=True)]
        where = [(when, n) for when, n in zip(middles, more, strict=True) if n]
        if not where:
            continue
        at, values = times([when for when, _ in where]), [n for _, n in where]
        # Prepend a space, because a legend omits labels that begin with an underscore.
        label = f" {shortened(name)}" if name.startswith("_") else shortened(name)
        axes.vlines(at, 0, values, color=colors[i % 3], linewidth=1)
        axes.plot(at, values, "osXPd*"[i % 6], color=colors[i % 3], markersize=6, label=label)
    axes.axhline(0, color=theme.faint, linewidth=0.8)
    axes.set_title(f"More (+) or fewer (−) records than {shortened(first)}")
    thousands(axes.yaxis)
    axes.grid(axis="y")
    axes.margins(y=0.25)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=6, borderaxespad=0.2, fontsize=8.5)


def _explain(figure: Any, axes: Any, differences: Sequence[Difference], theme: Theme, first: str) -> None:
    from matplotlib.lines import Line2D

    own: dict[str, Any] = {
        "color": theme.second,
        "markeredgecolor": theme.paper,
        "linestyle": "none",
        "markersize": 8,
    }
    handles = [
        Line2D([], [], marker=_MARKS[verdict], label=verdict, **own)
        for verdict in _MARKS
        if any(difference.verdict == verdict for difference in differences)
    ]
    handles.append(
        Line2D(
            [], [], color=theme.ink, linewidth=0.7, linestyle=(0, (2, 3)), label=f"as in {shortened(first)}"
        )
    )
    axes.legend(
        handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=4, borderaxespad=0.2, fontsize=8.5
    )


def _title(name: str, counts: Counts, differences: Sequence[Difference], *, is_first: bool) -> str:
    rows = sum(count.rows for count in counts[name].values())
    verdict = "the reference" if is_first else "matches"
    if differences:
        verdict = "1 bucket differs" if len(differences) == 1 else f"{len(differences):,} buckets differ"
    return f"{shortened(name)}: {rows:,} records, {verdict}"


# --- page


def page(
    counts: Counts,
    differences: Sequence[Difference],
    bucket_ms: int,
    places: Mapping[str, str],
    origin: Origin,
) -> Page:
    """Return the HTML page that contains the plot."""
    summary = _summary(counts, differences, bucket_ms)
    first = next(iter(counts))
    tiers = []
    for name, tier in counts.items():
        own = [difference for difference in differences if difference.tier == name]
        verdicts = ", ".join(_counted(own)) or ("reference" if name == first else "matches")
        rows = sum(count.rows for count in tier.values())
        tiers.append([name, f"{rows:,}", f"{len(tier):,}", verdicts, places.get(name, "")])
    step = length_text(span_of(counts.values(), bucket_ms).step_ms)
    alt = f"Records per {step} over time (UTC), a panel for each tier: {', '.join(counts)}. {summary}"
    after = [_differences(differences, bucket_ms)]
    return Page(
        "Do all tiers match?",
        origin,
        summary,
        [Table("Tiers", columns("Tier", "#Records", "#Buckets", "Verdict", "Place"), tiers)],
        alt,
        after,
    )


def _summary(counts: Counts, differences: Sequence[Difference], bucket_ms: int) -> str:
    each = f"by partition and {length_text(bucket_ms)}"
    first = next(iter(counts))
    rows = sum(count.rows for count in counts[first].values())
    if not differences:
        return f"All {len(counts)} tiers contain the same {rows:,} records, {each}."
    listed = "; ".join(
        f"{name}: {', '.join(_counted(own))}"
        for name in counts
        if (own := [difference for difference in differences if difference.tier == name])
    )
    return f"Not all tiers match {first}, {each}. Buckets that differ: {listed}."


def _counted(differences: Sequence[Difference]) -> list[str]:
    counts = {v: sum(difference.verdict == v for difference in differences) for v in _MARKS}
    return [f"{count:,} {verdict}" for verdict, count in counts.items() if count]


def _differences(differences: Sequence[Difference], bucket_ms: int) -> Table:
    when = f"{length_text(bucket_ms).capitalize()} from (UTC)"
    heads = columns("Tier", "#Partition", when, "#Expected", "#Found", "#Difference", "Verdict")
    rows = [
        [
            *(d.tier, "all" if d.partition < 0 else str(d.partition), utc(d.bucket_ms)),
            *(
                f"{d.expected:,}",
                f"{d.found:,}",
                f"{d.found - d.expected:+,}" if d.found != d.expected else "0",
            ),
            d.verdict,
        ]
        for d in differences[:ROWS_MAX]
    ]
    note = "" if differences else "None."
    if len(differences) > ROWS_MAX:
        note = f"The first {ROWS_MAX:,} of {len(differences):,}; --json lists all."
    return Table("Differences from the first tier", heads, rows, note)
