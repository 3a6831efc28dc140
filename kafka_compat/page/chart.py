"""Compute the shapes of a chart, which the templates draw as SVG. No I/O.

A chart is WIDTH units wide, one for each slot of the hour, and HEIGHT units high. Browsers stretch it to the
width of the page; labels are HTML next to it, so that they have the size of other text.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from kafka_compat.status.hour import GAP_MAX, SLOTS
from kafka_compat.status.units import figure

WIDTH: Final = SLOTS
HEIGHT: Final = 100
_SECONDS: Final = (
    0.02,
    0.1,
    0.5,
    1,
    2,
    5,
    10,
    30,
    60,
    120,
    300,
    600,
    1800,
    3600,
    7200,
    21_600,
    43_200,
    86_400,
)
_DAY_S: Final = 86_400
_SHARES: Final = (0.1, 0.25, 0.5, 1.0)
_STEPS: Final = (1, 2, 3, 4, 6, 8, 10)
_KIB: Final = 1024.0


class Line(NamedTuple):
    """One line. `path` and `area`, the area below the line, are SVG path data."""

    name: str
    path: str
    area: str
    now: str
    """The newest value of the last five minutes with its unit, or a dash."""


class Drawing(NamedTuple):
    """A chart, ready to be drawn. Texts have units."""

    lines: Sequence[Line]
    top: str
    """Label of the upper edge."""
    most: str
    """The largest value, or a dash."""
    text: str
    """Description for screen readers."""

    @property
    def is_empty(self) -> bool:
        """Whether no value is known."""
        return all(not line.path for line in self.lines)


def drawn(data: Mapping[str, Any]) -> Drawing:
    """Compute the shapes of a chart from its data (`Hour.chart`)."""
    unit = data["unit"]
    known = [value for line in data["lines"] for value in line["values"] if value is not None]
    most = max(known, default=0.0)
    top = scale_top(unit, most)
    lines = [_line(line["name"], line["values"], top, unit) for line in data["lines"]]
    most_text = figure(unit, most) if known else "–"
    now = ", ".join(f"{line.name} {line.now}" if len(lines) > 1 else line.now for line in lines)
    text = f"{data['title']} in the last hour: now {now}; at most {most_text}" if known else "no samples yet"
    return Drawing(lines, figure(unit, top), most_text, text)


def _line(name: str, values: Sequence[float | None], top: float, unit: str) -> Line:
    path: list[str] = []
    area: list[str] = []
    for begin, run in _runs(values):
        points = [
            f"{begin + each} {HEIGHT - round(min(value / top, 1) * HEIGHT)}" for each, value in enumerate(run)
        ]
        # A single sample is as wide as its slot; a line from a point to itself would not be visible.
        points.append(f"{begin + len(run)} {points[-1].partition(' ')[2]}")
        line = "L".join(points)
        path.append(f"M{line}")
        area.append(f"M{begin} {HEIGHT}L{line}L{begin + len(run)} {HEIGHT}Z")
    # The lag of groups with very many partitions is measured only every few minutes.
    now = next((value for value in reversed(values[-GAP_MAX:]) if value is not None), None)
    return Line(name, "".join(path), "".join(area), "–" if now is None else figure(unit, now))


def _runs(values: Sequence[float | None]) -> list[tuple[int, list[float]]]:
    """Return the runs of known values, each with its first index."""
    runs: list[tuple[int, list[float]]] = []
    run: list[float] = []
    for index, value in enumerate(values):
        if value is None:
            run = []
            continue
        if not run:
            runs.append((index, run))
        run.append(value)
    return runs


def scale_top(unit: str, most: float) -> float:
    """Return the value at the upper edge of a chart: the smallest round number that is not below `most`."""
    if unit == "share":
        return next(each for each in _SHARES if each >= min(most, 1.0))
    if unit == "seconds":
        if not most:
            return 1.0
        days = (_DAY_S * each for each in _round(1.0))
        return next(each for each in chain(_SECONDS, days) if each >= most)
    if unit == "bytes/s":
        factor = _KIB
        while most > factor * _KIB:
            factor *= _KIB
        return next(factor * each for each in _round(1.0) if factor * each >= most)
    return next(each for each in _round(1.0) if each >= most)


def _round(least: float) -> Iterator[float]:
    """Yield 1, 2, 3, 4, 6, 8, 10, 20, … times `least`."""
    while True:
        yield from (least * each for each in _STEPS[:-1])
        least *= _STEPS[-1]
