"""The last hour of a broker's or a cluster's figures, in rings of samples with a fixed size. No I/O.

Rules
1. A ring has SLOTS slots of STEP_S seconds, which the time of a monotonic clock numbers.
2. A sample covers the slots since the sample before it, because samples may be less frequent than slots. If
   the gap is longer than GAP_MAX, its slots stay unknown.
3. At most GROUPS_MAX groups have a ring. If there are more, `chosen` selects them by lag.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

STEP_S: Final = 10
SLOTS: Final = 360
GAP_MAX: Final = 30
"""Maximum number of slots that one sample covers."""
GROUPS_MAX: Final = 500
_UNKNOWN: Final = -1.0
_DIGITS: Final = 4
"""Significant digits of the values in JSON."""


class Ring:
    """The samples of one figure. Values are not negative."""

    __slots__ = ("_last", "_values")

    def __init__(self) -> None:
        self._values = array("f", [_UNKNOWN]) * SLOTS
        self._last = -SLOTS
        """The slot of the newest sample."""

    def put(self, now_s: float, value: float, *, is_first: bool = False) -> None:
        """Add a sample. If `is_first`, it does not cover the slots since the sample before it."""
        slot = int(now_s // STEP_S)
        gap = slot - self._last - 1
        covers = not is_first and 0 < gap < GAP_MAX
        for each in range(max(self._last + 1, slot - SLOTS + 1), slot):
            self._values[each % SLOTS] = value if covers else _UNKNOWN
        self._values[slot % SLOTS] = value
        self._last = slot

    def most(self) -> float:
        """Return the largest value in the ring, or a negative number if all values are unknown."""
        return max(self._values)

    def values(self, now_s: float) -> list[float | None]:
        """Return the values of the hour before `now_s`, oldest first. Unknown values are None."""
        slot = int(now_s // STEP_S)
        known, last = self._values, self._last
        return [
            _rounded(known[each % SLOTS]) if last - SLOTS < each <= last else None
            for each in range(slot - SLOTS + 1, slot + 1)
        ]


def _rounded(value: float) -> float | None:
    return None if value < 0 else float(f"{value:.{_DIGITS}g}")


class Chart(NamedTuple):
    """A chart with one or more lines in one unit."""

    name: str
    title: str
    unit: str
    """The unit of the values, which `units.figure` formats."""
    lines: Sequence[tuple[str, str]]
    """The name of each line's ring, and its label if there are several lines."""


CHARTS: Final = (
    Chart("records", "Records written", "records/s", (("records", "written"),)),
    Chart("bytes", "Bytes written and read", "bytes/s", (("bytes_in", "written"), ("bytes_out", "read"))),
    Chart("requests", "Requests", "requests/s", (("requests", "received"),)),
    Chart("busy", "Event loop, busy", "share", (("busy", "busy"),)),
    Chart("delay", "Event loop, longest delay", "seconds", (("delay", "longest delay"),)),
)
"""The charts of a process, in the order in which they are shown."""
LAG: Final = "lag"
"""Name of the chart of a group."""


class Hour:
    """The last hour of the figures in `charts`, and of the lag of groups."""

    def __init__(self, charts: Sequence[Chart] = CHARTS) -> None:
        self._rings = {name: Ring() for chart in charts for name, _ in chart.lines}
        self._groups: dict[str, Ring] = {}

    def put(self, now_s: float, values: Mapping[str, float], *, is_first: bool = False) -> None:
        """Add a sample of figures, by name of the ring. See `Ring.put`."""
        for name, value in values.items():
            self._rings[name].put(now_s, value, is_first=is_first)

    @property
    def groups(self) -> list[str]:
        """The names of the groups that have a ring."""
        return list(self._groups)

    def follow(self, groups: Iterable[str]) -> None:
        """Keep the rings of these groups, at most GROUPS_MAX, and discard the others."""
        self._groups = {name: self._groups.get(name) or Ring() for name in list(groups)[:GROUPS_MAX]}

    def put_lag(self, group: str, now_s: float, value: float) -> None:
        """Add a sample of the lag of a group that is followed; other groups are ignored."""
        ring = self._groups.get(group)
        if ring is not None:
            ring.put(now_s, value)

    def most(self, group: str) -> float:
        """Return the largest lag of a group in the last hour, or a negative number if it is unknown."""
        ring = self._groups.get(group)
        return _UNKNOWN if ring is None else ring.most()

    def chart(self, chart: Chart, now_s: float, now_ms: int) -> dict[str, Any]:
        """Return a chart as it appears in JSON."""
        lines = [{"name": label, "values": self._rings[name].values(now_s)} for name, label in chart.lines]
        return as_data(chart.name, chart.title, chart.unit, None, lines, now_ms)

    def lag(self, group: str, now_s: float, now_ms: int, unit: str = "seconds") -> dict[str, Any] | None:
        """Return the chart of a group, or None if the group has no ring."""
        ring = self._groups.get(group)
        if ring is None:
            return None
        lines = [{"name": LAG, "values": ring.values(now_s)}]
        return as_data(LAG, f"Lag of {group}", unit, group, lines, now_ms)


def as_data(
    name: str, title: str, unit: str, group: str | None, lines: list[dict[str, Any]], now_ms: int
) -> dict[str, Any]:
    """Return a chart as it appears in JSON. The last value of each line ends at `end_ms`."""
    return {
        "chart": name,
        "group": group,
        "title": title,
        "unit": unit,
        "step_seconds": STEP_S,
        "end_ms": now_ms,
        "lines": lines,
    }


def chosen(lags: Mapping[str, float], followed: Iterable[str]) -> list[str]:
    """Return the GROUPS_MAX groups with the most lag. Of groups with equal lag, those that are `followed`
    come first, so that their past is kept.
    """
    kept = set(followed)
    return sorted(lags, key=lambda name: (-lags[name], name not in kept, name))[:GROUPS_MAX]
