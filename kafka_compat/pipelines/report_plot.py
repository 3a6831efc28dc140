"""The report as a picture: records by partition, hot keys, sizes. A PNG, and an HTML page with the tables."""

from pathlib import Path

from .errors import NotStarted
from .log_report import LogReport
from .plot_page import save

BARS_MAX = 40


def plot(path: Path, report: LogReport) -> tuple[Path, Path]:
    """Write `path`.png and `path`.html; returns both names. Raises NotStarted without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise NotStarted(
            "matplotlib is not installed, which draws the plot.", "pip install 'kafka-compat[spark]'"
        ) from None
    figure = Figure(figsize=(12, 9), layout="constrained")
    rows, keys, sizes = figure.subplots(3, 1)
    largest = sorted(report.partitions, key=lambda line: -line.rows)[:BARS_MAX]
    largest.sort(key=lambda line: (line.topic, line.partition))
    names = [f"{line.topic}-{line.partition}" for line in largest]
    rows.bar(names, [line.rows for line in largest], color="C0", label="records")
    rows.bar(names, [line.due_rows for line in largest], color="C3", label="due for retention")
    rows.set_title("Records by partition")
    rows.legend()
    hot = sorted(report.keys, key=lambda line: -line.share)[:BARS_MAX]
    keys.bar([f"{line.topic}: {line.key}" for line in hot], [100 * line.share for line in hot], color="C1")
    keys.set_title("Hot keys, % of their topic's records")
    # Three quantiles lie on each other, the largest behind.
    for label, color, values in (
        ("largest", "C7", [line.value_bytes_max for line in largest]),
        ("99 %", "C4", [line.value_bytes_p99 for line in largest]),
        ("median", "C2", [line.value_bytes_p50 for line in largest]),
    ):
        sizes.bar(names, values, color=color, label=label)
    sizes.set_title("Bytes of a value, by partition")
    sizes.legend()
    for axes in (rows, keys, sizes):
        axes.tick_params(axis="x", rotation=60, labelsize=8)
    partitions, skew, hottest = report.tables()
    alt = "Records, hot keys and sizes by partition"
    after = [("", partitions), ("Hot keys", hottest)]
    return save(path, figure, "Kafka log report", alt, [("Skew", skew)], after)
