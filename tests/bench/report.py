"""Ratios of this broker to Apache Kafka, and their tables. Absolute figures are not reported alone, because
they depend on the machine.
"""

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
    "user_cpu_seconds_per_million": "broker user CPU per record",
}
"""Column titles by metric. Higher is better for throughput, lower for all others."""


@dataclass(slots=True)
class Leg:
    """One run of a workload: the client's measurement, and the broker's CPU time with its user part. Both are
    0 if there is no broker.
    """

    measurement: Measurement
    cpu_seconds: float
    user_cpu_seconds: float = 0.0

    def figures(self) -> dict[str, float]:
        """Return the available metrics, with the names in METRICS."""
        found = {name: getattr(self.measurement, name, None) for name in METRICS}
        for name, seconds in (("cpu", self.cpu_seconds), ("user_cpu", self.user_cpu_seconds)):
            if seconds:
                found[f"{name}_seconds_per_million"] = seconds / self.measurement.records * 1e6
        return {name: value for name, value in found.items() if value is not None}


@dataclass(slots=True)
class Pairs:
    """All pairs of one workload: maps each metric to a list of (ours, genuine)."""

    values: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, ours: Mapping[str, float], genuine: Mapping[str, float]) -> None:
        for name in ours.keys() & genuine.keys():
            self.values.setdefault(name, []).append((ours[name], genuine[name]))

    def ratios(self, metric: str) -> list[float]:
        """Return ours/genuine for every pair. Pairs with a genuine figure of 0 are omitted."""
        return [ours / other for ours, other in self.values.get(metric, []) if other > 0]


def cell(ratios: Sequence[float]) -> str:
    """Format `median (lowest–highest)`, or a dash without any ratio."""
    if not ratios:
        return "–"
    return f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"


def table(results: Mapping[str, Pairs], columns: Mapping[str, str], title: str) -> str:
    """Format a plain text table, with one line for each result that has any of the columns."""
    shown = [name for name, pairs in results.items() if any(pairs.ratios(column) for column in columns)]
    rows = [["ratio", *columns.values()]]
    rows += [[name, *(cell(results[name].ratios(column)) for column in columns)] for name in shown]
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join([title, "", lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:])])


def as_json(results: Mapping[str, Pairs]) -> dict[str, Any]:
    """Map each result and metric to the median, lowest and highest ratio, and to the pairs (ours,
    genuine).
    """
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
