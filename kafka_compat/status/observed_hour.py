"""The charts of `kafka-compat status`: from its own snapshots, or from a broker's web console. No I/O."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafka_compat.status.blocks import blocks
from kafka_compat.status.hour import GAP_MAX, Chart, Hour, chosen
from kafka_compat.status.snapshot import Rates, Snapshot, total
from kafka_compat.status.units import figure

WIDTH_MAX: Final = 60
"""Maximum number of characters of a line: one for each minute."""
_UNKNOWN: Final = "-"
_CHARTS: Final = (
    Chart("records", "Records written", "records/s", (("records", "written"),)),
    Chart("growth", "Growth of the logs", "bytes/s", (("growth", "growth"),)),
)


class ObservedHour:
    """The last hour as a sequence of snapshots shows it: records, sizes, and the lag of groups in records."""

    def __init__(self) -> None:
        self._hour = Hour(_CHARTS)
        self._now_s = 0.0
        self._now_ms = 0
        self._before: tuple[float, int] | None = None
        """Time of a snapshot, and the size of all logs."""

    def add(self, snapshot: Snapshot, rates: Rates | None) -> None:
        """Add a snapshot, and the rates since the snapshot before it."""
        self._now_s, self._now_ms = snapshot.taken_at_s, snapshot.time_ms
        if rates is not None:
            self._hour.put(self._now_s, {"records": rates.total})
        size_bytes = total(each.size_bytes for each in snapshot.topics)
        before, self._before = self._before, None if size_bytes is None else (self._now_s, size_bytes)
        if size_bytes is not None and before is not None and self._now_s > before[0]:
            grown = max(size_bytes - before[1], 0) / (self._now_s - before[0])
            self._hour.put(self._now_s, {"growth": grown})
        lags = {each.group_id: float(max(each.lag, 0)) for each in snapshot.groups if each.lag is not None}
        self._hour.follow(chosen(lags, self._hour.groups))
        for group in self._hour.groups:
            self._hour.put_lag(group, self._now_s, lags[group])

    def charts(self) -> list[dict[str, Any]]:
        """Return the charts, in the form in which the web console returns them. Groups that had the most lag
        in the last hour come first; groups without lag have no chart.
        """
        found = [self._hour.chart(chart, self._now_s, self._now_ms) for chart in _CHARTS]
        groups = [each for each in self._hour.groups if self._hour.most(each) > 0]
        for group in sorted(groups, key=lambda each: (-self._hour.most(each), each)):
            chart = self._hour.lag(group, self._now_s, self._now_ms, "records")
            if chart is not None:
                found.append(chart)
        return found


class Row(NamedTuple):
    """A line of a chart, drawn with block characters. Texts have units."""

    title: str
    blocks: str
    now: str
    most: str


def rows(charts: Sequence[Mapping[str, Any]], width: int) -> list[Row]:
    """Draw each line of the charts with `width` characters. Raises ValueError if a chart is malformed."""
    found = []
    try:
        for chart in charts:
            unit = str(chart["unit"])
            lines = [(str(line["name"]), _numbers(line["values"])) for line in chart["lines"]]
            top = max((value for _, values in lines for value in values if value is not None), default=0.0)
            for name, values in lines:
                known = [value for value in values if value is not None]
                now = next((value for value in reversed(values[-GAP_MAX:]) if value is not None), None)
                title = str(chart["title"])
                found.append(
                    Row(
                        f"{title}: {name}" if len(lines) > 1 else title,
                        blocks(values, width, top),
                        _UNKNOWN if now is None else figure(unit, now),
                        figure(unit, max(known)) if known else _UNKNOWN,
                    )
                )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a chart of the web console: {error!r}") from error
    return found


def _numbers(values: Any) -> list[float | None]:
    return [None if value is None else float(value) for value in values]
