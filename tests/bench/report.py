"""Ratios ours/genuine and their tables. A figure never stands alone: it means little on another machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tests.bench.workloads import Measurement

METRICS = {
    "throughput": "throughput",
    "mean_ms": "mean latency",
    "p50_ms": "p50 latency",
    "p99_ms": "p99 latency",
    "cpu_seconds_per_million": "broker CPU per record",
}
"""Column by metric. More is better for throughput, less for all others."""


@dataclass(slots=True)
class Leg:
    """One run of a workload: what the client said, and what CPU time the broker took (0: there was none)."""

    measurement: Measurement
    cpu_seconds: float

    def figures(self) -> dict[str, float]:
        """The metrics that this leg has, by METRICS' names."""
        found = {name: getattr(self.measurement, name, None) for name in METRICS}
        if self.cpu_seconds:
            found["cpu_seconds_per_million"] = self.cpu_seconds / self.measurement.records * 1e6
        return {name: value for name, value in found.items() if value is not None}


@dataclass(slots=True)
class Pairs:
    """All pairs of one workload: metric → list of (ours, genuine)."""

    values: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, ours: Mapping[str, float], genuine: Mapping[str, float]) -> None:
        for name in ours.keys() & genuine.keys():
            self.values.setdefault(name, []).append((ours[name], genuine[name]))

    def ratios(self, metric: str) -> list[float]:
        """ours/genuine of every pair; pairs where the genuine figure is 0 have no ratio."""
        return [ours / other for ours, other in self.values.get(metric, []) if other > 0]


def cell(ratios: Sequence[float]) -> str:
    """`median (lowest–highest)`, or a dash without any."""
    if not ratios:
        return "–"
    return f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def table(results: Mapping[str, Pairs], columns: Mapping[str, str], title: str) -> str:
    """A table in plain text with one line per result that has any of the columns."""
    shown = [name for name, pairs in results.items() if any(pairs.ratios(column) for column in columns)]
    rows = [["ratio", *columns.values()]]
    rows += [[name, *(cell(results[name].ratios(column)) for column in columns)] for name in shown]
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([title, "", lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:])])


def as_json(results: Mapping[str, Pairs]) -> dict[str, Any]:
    """Result → metric → median, lowest and highest ratio, and the pairs (ours, genuine) behind them."""
    return {
        name: {
            metric: {
                "median": median(ratios),
                "lowest": min(ratios),
                "highest": max(ratios),
                "pairs": pairs.values[metric],
            }
            for metric in pairs.values
            if (ratios := pairs.ratios(metric))
        }
        for name, pairs in results.items()
    }
