"""Plot the report (space by topic, hot keys, records and value sizes by partition) as a PNG and as an HTML
page with the tables.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafka_compat.pipelines.log_report import KeyLine, LogReport, PartitionLine
from kafka_compat.pipelines.plot_page import (
    Origin,
    Page,
    Table,
    Theme,
    columns,
    rows_of,
    save,
    shortened,
    size_text,
    sizes,
    thousands,
    titled,
    unit_of,
)
from kafka_compat.pipelines.progress import utc

PARTITIONS_MAX = 40
TOPICS_MAX = 20
KEYS_MAX = 15
_ROW_INCHES = 0.3
_FRAME_INCHES = 1.1
_THICKNESS = 0.66
_HATCH = "////"


def plot(path: Path, report: LogReport, origin: Origin) -> tuple[Path, Path]:
    """Write `path`.png and `path`.html, and return both paths."""
    return save(path, page(report, origin), lambda theme: draw(report, theme))


def draw(report: LogReport, theme: Theme) -> Any:
    """Draw the figure, with topics and hot keys above and partitions below."""
    from matplotlib.figure import Figure

    topics, keys, partitions = _topics(report)[:TOPICS_MAX], _hottest(report), _shown(report)
    above, below = (
        _ROW_INCHES * max(lines, 4) + _FRAME_INCHES
        for lines in (max(len(topics), len(keys)), len(partitions))
    )
    figure = Figure(figsize=(13, above + below + 0.7), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=[above, below], hspace=0.03, wspace=0.05)
    _space(figure.add_subplot(grid[0, 0]), report, topics, max(len(topics), len(keys), 1), theme)
    _keys(figure.add_subplot(grid[0, 1]), keys, max(len(topics), len(keys), 1), theme)
    _records(figure.add_subplot(grid[1, 0]), report, partitions, theme)
    _values(figure.add_subplot(grid[1, 1]), partitions, theme)
    return figure


def _space(axes: Any, report: LogReport, topics: list[str], lines: int, theme: Theme) -> None:
    """Plot each topic's size on disk, marking the part that retention will delete."""
    owned = [[line for line in report.partitions if line.topic == topic] for topic in topics]
    whole = [report.size_bytes(topic) for topic in topics]
    due = [sum(line.due_bytes for line in partitions) for partitions in owned]
    unit, factor = unit_of(whole)
    thickness = _THICKNESS * len(topics) / lines
    _bars_with_due(axes, [n / factor for n in whole], [n / factor for n in due], thickness, theme)
    for row, partitions in enumerate(owned):
        text = f"{size_text(whole[row])}, {_codecs(partitions)}"
        place = {"textcoords": "offset points", "va": "center", "fontsize": 8}
        axes.annotate(text, (whole[row] / factor, row), (4, 0), **place)
    axes.set_xlabel(f"{unit} on disk")
    axes.set_xlim(0, max(whole, default=0) / factor * 1.55 or 1)
    rows_of(axes, [shortened(topic) for topic in topics])
    titled(axes, "Space by topic" + _largest(len(topics), len(report.topics)))


def _keys(axes: Any, keys: list[KeyLine], lines: int, theme: Theme) -> None:
    """Plot the hottest keys, as shares of their topics' records."""
    thickness = _THICKNESS * len(keys) / lines
    axes.barh(range(len(keys)), [100 * line.share for line in keys], thickness, color=theme.third)
    axes.set_xlabel("% of the topic's records")
    axes.set_xlim(left=0)
    rows_of(axes, [f"{shortened(line.topic, 20)}   {shortened(line.key, 20)}" for line in keys])
    titled(axes, "Hot keys by topic", with_room=True)


def _records(axes: Any, report: LogReport, partitions: list[PartitionLine], theme: Theme) -> None:
    """Plot the records of each partition and its topic's mean, to show the skew."""
    whole, due = [line.rows for line in partitions], [line.due_rows for line in partitions]
    _bars_with_due(axes, whole, due, _THICKNESS, theme)
    rows_by_topic: dict[str, list[int]] = {}
    for line in report.partitions:
        rows_by_topic.setdefault(line.topic, []).append(line.rows)
    means = [
        (sum(rows) / len(rows), place)
        for place, line in enumerate(partitions)
        if len(rows := rows_by_topic[line.topic]) > 1
    ]
    if means:
        style = {"marker": "|", "s": 120, "linewidths": 1.8, "color": theme.ink, "zorder": 3}
        axes.scatter(*zip(*means, strict=True), label="mean of the topic", **style)
    axes.set_xlabel("records")
    axes.set_xlim(left=0)
    thousands(axes.xaxis)
    rows_of(axes, _names(partitions))
    titled(axes, "Records by partition" + _largest(len(partitions), len(report.partitions)))


def _values(axes: Any, partitions: list[PartitionLine], theme: Theme) -> None:
    """Plot three quantiles of value sizes for each partition, one below the other with different markers."""
    quantiles = (
        ("median", [line.value_bytes_p50 for line in partitions], "o", theme.first, -0.24),
        ("99th percentile", [line.value_bytes_p99 for line in partitions], "D", theme.third, 0.0),
        ("largest", [line.value_bytes_max for line in partitions], ">", theme.second, 0.24),
    )
    everything = [value for _, values, *_ in quantiles for value in values]
    least, most = max(min(everything, default=1), 1), max(everything, default=1)
    far_apart = most > 20 * least
    start = max(least // 2, 1) if far_apart else 0
    for name, values, marker, color, offset in quantiles:
        rows = [row + offset for row in range(len(values))]
        shown = [max(value, start) for value in values]
        axes.hlines(rows, start, shown, color=color, linewidth=1)
        axes.plot(shown, rows, marker, color=color, markersize=4.5, label=name, clip_on=False)
    if far_apart:
        axes.set_xscale("log", base=2)
        sizes(axes.xaxis)
    else:
        thousands(axes.xaxis)
    axes.set_xlabel("size of a value, logarithmic" if far_apart else "bytes of a value")
    axes.set_xlim(start, most * (1.6 if far_apart else 1.08) + 1)
    rows_of(axes, _names(partitions))
    titled(axes, "Size of a value by partition")


def _bars_with_due(
    axes: Any, whole: Sequence[float], due: Sequence[float], thickness: float, theme: Theme
) -> None:
    """Draw two-part bars. The part that retention will delete is hatched."""
    stays = [total - part for total, part in zip(whole, due, strict=True)]
    rows = range(len(whole))
    axes.barh(rows, stays, thickness, color=theme.first, label="stays")
    hatched = {"hatch": _HATCH, "color": theme.second, "edgecolor": theme.paper, "linewidth": 0}
    axes.barh(rows, due, thickness, left=stays, label="due for deletion", **hatched)


def _hottest(report: LogReport) -> list[KeyLine]:
    """Return the hottest keys of each topic, as many as fit on the plot."""
    each = max(3, KEYS_MAX // max(len(report.topics), 1))
    by_topic = [[key for key in report.keys if key.topic == topic][:each] for topic in _topics(report)]
    return [key for keys in by_topic for key in keys][: KEYS_MAX + TOPICS_MAX]


def _names(partitions: list[PartitionLine]) -> list[str]:
    return [f"{shortened(line.topic)}-{line.partition}" for line in partitions]


def _largest(shown: int, there: int) -> str:
    return f", the {shown} largest of {there:,}" if shown < there else ""


def _shown(report: LogReport) -> list[PartitionLine]:
    largest = sorted(report.partitions, key=lambda line: -line.rows)[:PARTITIONS_MAX]
    return sorted(largest, key=lambda line: (line.topic, line.partition))


def _topics(report: LogReport) -> list[str]:
    return sorted(report.topics, key=lambda topic: (-report.size_bytes(topic), topic))


def _codecs(lines: list[PartitionLine]) -> str:
    codecs = sorted({codec for line in lines for codec in line.codecs})
    size = sum(line.size_bytes for line in lines)
    ratio = sum(line.raw_bytes for line in lines) / max(size, 1)
    return "not compressed" if codecs == ["none"] else f"{'+'.join(codecs)} {ratio:.1f} : 1"


# --- page


def page(report: LogReport, origin: Origin) -> Page:
    """Return the HTML page that contains the plot."""
    rows = sum(line.rows for line in report.partitions)
    size = sum(line.size_bytes for line in report.partitions)
    due = sum(line.due_bytes for line in report.partitions)
    summary = (
        f"{rows:,} records in {len(report.partitions):,} partitions of {len(report.topics):,} topics use "
        f"{size_text(size)} on disk; {size_text(due)} of it is due for deletion."
    )
    return Page(
        "Contents of the logs",
        origin,
        summary,
        [_topics_table(report)],
        _alt(report, summary),
        [_partitions_table(report), _keys_table(report)],
    )


def _topics_table(report: LogReport) -> Table:
    rows = []
    for topic in _topics(report):
        lines = [line for line in report.partitions if line.topic == topic]
        size, raw = sum(line.size_bytes for line in lines), sum(line.raw_bytes for line in lines)
        rows.append(
            [
                *(topic, f"{len(lines):,}", f"{sum(line.rows for line in lines):,}", size_text(size)),
                *(f"{size / max(raw, 1):.0%}", size_text(sum(line.due_bytes for line in lines))),
                f"{report.skew(topic):.2f}",
            ]
        )
    note = (
        "Skew: records of the largest partition over the mean; 1.00 is even. Due: deleted by retention now."
    )
    heads = columns("Topic", "#Partitions", "#Records", "#On disk", "#Compressed to", "#Due", "#Skew")
    return Table("Topics", heads, rows, note)


def _partitions_table(report: LogReport) -> Table:
    heads = ("Topic", "#Partition", "#Records", "#Bytes on disk", "#Median", "#99%", "#Largest", "Codec")
    later = ("#Compressed to", "#Due records", "Next due (UTC)", "#Future records")
    rows = [
        [
            *(line.topic, f"{line.partition}", f"{line.rows:,}", f"{line.size_bytes:,}"),
            *(f"{line.value_bytes_p50:,}", f"{line.value_bytes_p99:,}", f"{line.value_bytes_max:,}"),
            "+".join(line.codecs),
            f"{line.size_bytes / max(line.raw_bytes, 1):.0%}",
            f"{line.due_rows:,}",
            "–" if line.next_due_ms is None else utc(line.next_due_ms),
            f"{line.future_rows:,}",
        ]
        for line in report.partitions
    ]
    note = (
        "Median, 99% and largest: bytes of a value. Future records: in segments that a timestamp more than "
        "a day ahead keeps from retention."
    )
    return Table("Partitions", columns(*heads, *later), rows, note)


def _keys_table(report: LogReport) -> Table:
    rows = [[line.topic, line.key, f"{line.rows:,}", f"{line.share:.2%}"] for line in report.keys]
    return Table("Hot keys", columns("Topic", "Key", "#Records", "#Of the topic"), rows)


def _alt(report: LogReport, summary: str) -> str:
    largest = ", ".join(f"{topic} {size_text(report.size_bytes(topic))}" for topic in _topics(report)[:5])
    skew = max(report.topics, key=report.skew, default="")
    most_uneven = f" The most uneven topic is {skew}, skew {report.skew(skew):.2f}." if skew else ""
    return (
        "Four charts: space by topic, hot keys, records by partition, sizes of values by partition. "
        f"{summary} Largest topics: {largest}.{most_uneven} The tables have all figures."
    )
