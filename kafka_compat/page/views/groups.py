"""All groups."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from kafka_compat.long_work import Steps, batched
from kafka_compat.page.group_rows import Ages, add_seconds, all_groups, group_rows
from kafka_compat.page.listing import listed

if TYPE_CHECKING:
    from kafka_compat.page.group_rows import GroupSeen
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit

_COLUMNS: Final = {"name": "name", "state": "state", "members": "members", "lag": "lag"}
_AT_ONCE: Final = 50


async def see(visit: Visit) -> Data:
    """The groups that may be seen, a part at a time; with `topic` those that have committed in it."""
    remote, groups, ages = await asyncio.gather(
        visit.observed.remote.look(visit.cluster), all_groups(visit), Ages.of(visit)
    )
    topic = visit.query.get("topic", "")
    if topic:
        groups = groups._replace(found=await visit.finish(_readers(groups.found, topic)))
    rows = await visit.finish(group_rows(visit, remote, groups.found))
    found = listed(rows, visit.query, _COLUMNS, "name")
    await visit.finish(add_seconds(ages, found["rows"], groups.found))
    return {"topic": topic, "groups": found, "missing": sorted({*remote.missing, *groups.missing})}


def _readers(groups: list[GroupSeen], topic: str) -> Steps[list[GroupSeen]]:
    found = []
    for some in batched(groups, _AT_ONCE):
        found += [group for group in some if any(place[0] == topic for place in group.committed)]
        yield None
    return found
