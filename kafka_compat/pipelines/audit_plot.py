"""The audit as a picture: rows over time by tier, and the buckets that differ. A PNG, and an HTML page."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .audit_counts import Bucket, Count, Difference
from .errors import NotStarted
from .plot_page import save
from .progress import utc

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def plot(
    path: Path,
    counts: Mapping[str, Mapping[Bucket, Count]],
    differences: Sequence[Difference],
    bucket_ms: int,
) -> tuple[Path, Path]:
    """Write `path`.png and `path`.html (which holds the picture and the table); returns both names.

    Raises NotStarted without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise NotStarted(
            "matplotlib is not installed, which draws the plot.", "pip install 'kafka-compat[spark]'"
        ) from None
    figure = Figure(figsize=(12, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    reference = _by_time(next(iter(counts.values())))
    everything = sorted({when for tier in counts.values() for when in _by_time(tier)})
    for i, (name, tier) in enumerate(counts.items()):
        rows = _by_time(tier)
        # Tiers that agree lie on each other: later lines are thinner, so that all can be seen.
        width = 1 + 1.5 * (len(counts) - 1 - i)
        above.step(_times(everything), [rows.get(w, 0) for w in everything], label=name, linewidth=width)
        if i:
            surplus = [rows.get(when, 0) - reference.get(when, 0) for when in everything]
            below.step(_times(everything), surplus, label=name, color=f"C{i}")
    for difference in differences:
        below.axvline(_times([difference.bucket_ms])[0], color="red", alpha=0.3, linewidth=1)
    above.set_title(f"Records per {_length(bucket_ms)}, by tier")
    above.set_ylabel("records")
    below.set_ylabel(f"more or fewer than {next(iter(counts))}")
    below.axhline(0, color="black", linewidth=0.5)
    above.legend(loc="upper right")
    return _save(path, figure, counts, differences)


def _by_time(tier: Mapping[Bucket, Count]) -> dict[int, int]:
    """Rows by the bucket's start, all partitions together."""
    rows: dict[int, int] = {}
    for (_, when), count in tier.items():
        rows[when] = rows.get(when, 0) + count.rows
    return rows


def _times(millis: Sequence[int]) -> list[Any]:
    """Times that the axis can show; those outside of the years 1 to 9999 are put at its edge."""
    edge = timedelta(milliseconds=253_402_300_799_000)
    low = timedelta(days=-719_000)
    return [_EPOCH + min(max(timedelta(milliseconds=m), low), edge) for m in millis]


def _length(bucket_ms: int) -> str:
    for unit, size in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)):
        if bucket_ms % size == 0:
            count = bucket_ms // size
            return unit if count == 1 else f"{count} {unit}s"
    return f"{bucket_ms} ms"


def _save(
    path: Path,
    figure: Any,
    counts: Mapping[str, Mapping[Bucket, Count]],
    differences: Sequence[Difference],
) -> tuple[Path, Path]:
    totals = [
        (name, f"{sum(count.rows for count in tier.values()):,}", f"{len(tier):,}")
        for name, tier in counts.items()
    ]
    lines = [
        (d.tier, str(d.partition), utc(d.bucket_ms), str(d.expected), str(d.found), d.verdict)
        for d in differences
    ]
    head = ("Tier", "Partition", "Bucket", "Expected", "Found", "Verdict")
    verdict = "" if differences else "All tiers hold the same."
    return save(
        path,
        figure,
        "Kafka audit",
        "Records by tier over time",
        [("", [("Tier", "Records", "Buckets"), *totals])],
        [(verdict, [head, *lines])],
    )
