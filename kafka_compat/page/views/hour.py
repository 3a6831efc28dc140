"""Charts of the last hour: the figures of this process, and the lag of the groups that it coordinates."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from kafka_compat.http.routes import NOT_FOUND, BadCall
from kafka_compat.long_work import Steps, batched
from kafka_compat.page.visit import Data, Visit
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.status.hour import CHARTS, LAG

QUERY: Final = {
    "chart": f"string: {', '.join(chart.name for chart in CHARTS)} or {LAG}",
    "group": f"string: group, for the chart {LAG}",
}
GROUPS_SHOWN: Final = 12
_ROW_SLOTS: Final = 30
"""Number of slots that a row of a chart's table covers: five minutes."""
_AT_ONCE: Final = 50


async def see(visit: Visit) -> Data:
    """Return all charts of the process, and those of the groups with the most lag in the last hour."""
    groups = await visit.finish(_by_lag(visit))
    return {
        "charts": await visit.finish(charts(visit)),
        "groups": await visit.finish(group_charts(visit, groups[:GROUPS_SHOWN])),
        "groups_count": len(groups),
        "may_see_process": visit.rights.may_see_cluster,
    }


async def see_one(visit: Visit) -> Data:
    """Return one chart, with a table of its values."""
    name, group = visit.query.get("chart", ""), visit.query.get("group", "")
    if name == LAG:
        visit.rights.require(Operation.DESCRIBE, ResourceType.GROUP, group)
        found = group_chart(visit, group)
        if found is None:
            raise BadCall(
                f"unknown group {group}, or no lag has been measured: see the list of groups", NOT_FOUND
            )
    else:
        chart = next((each for each in CHARTS if each.name == name), None)
        if chart is None:
            known = ", ".join(each.name for each in CHARTS)
            raise BadCall(f"chart={name[:40]}: expected one of {known}, or {LAG} with group=…")
        visit.rights.require_cluster(Operation.DESCRIBE)
        found = visit.observed.hour.chart(chart, *_now(visit))
    return {**found, "rows": rows_of(found)}


def charts(visit: Visit) -> Steps[list[Data]]:
    """Return the charts of the process, or none if they are not visible to the console's principal."""
    found = []
    for chart in CHARTS if visit.rights.may_see_cluster else ():
        found.append(visit.observed.hour.chart(chart, *_now(visit)))
        yield None
    return found


async def most_behind(visit: Visit, count: int) -> list[Data]:
    """Return the charts of the groups that had the most lag in the last hour, if they had any."""
    groups = await visit.finish(_by_lag(visit))
    hour = visit.observed.hour
    return await visit.finish(group_charts(visit, [each for each in groups[:count] if hour.most(each) > 0]))


def group_charts(visit: Visit, groups: Sequence[str]) -> Steps[list[Data]]:
    found = []
    for group in groups:
        chart = group_chart(visit, group)
        if chart is not None:
            found.append(chart)
        yield None
    return found


def group_chart(visit: Visit, group: str) -> Data | None:
    """Return the chart of a group, or None if its lag was not measured here. The caller checks the rights."""
    hour = visit.observed.hour
    return None if hour.most(group) < 0 else hour.lag(group, *_now(visit))


def _by_lag(visit: Visit) -> Steps[list[str]]:
    """Return the visible groups, those with the most lag in the last hour first."""
    hour = visit.observed.hour
    lags: dict[str, float] = {}
    for some in batched(hour.groups, _AT_ONCE):
        for group in some:
            most = hour.most(group)
            if most >= 0 and visit.rights.may_see_group(group):
                lags[group] = most
        yield None
    return sorted(lags, key=lambda group: (-lags[group], group))


def _now(visit: Visit) -> tuple[float, int]:
    return asyncio.get_running_loop().time(), visit.cluster.now_ms()


def rows_of(chart: Data) -> list[dict[str, Any]]:
    """Return the average and the largest value of each line in each five minutes, newest first."""
    found = []
    step_ms = chart["step_seconds"] * 1000
    count = len(chart["lines"][0]["values"])
    for begin in range(count - _ROW_SLOTS, -1, -_ROW_SLOTS):
        lines = []
        for line in chart["lines"]:
            known = [each for each in line["values"][begin : begin + _ROW_SLOTS] if each is not None]
            lines.append(
                {
                    "name": line["name"],
                    "average": sum(known) / len(known) if known else None,
                    "most": max(known, default=None),
                }
            )
        end_ms = chart["end_ms"] - (count - begin - _ROW_SLOTS) * step_ms
        found.append({"end_ms": end_ms, "lines": lines})
    return found
