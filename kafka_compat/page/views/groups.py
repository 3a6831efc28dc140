"""All groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.page.group_rows import Ages, add_seconds, all_groups, group_rows
from kafka_compat.page.listing import listed

if TYPE_CHECKING:
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit

_COLUMNS: Final = {"name": "name", "state": "state", "members": "members", "lag": "lag"}


async def see(visit: Visit) -> Data:
    """The groups that may be seen, a part at a time."""
    far = await visit.observed.far.look(visit.sight)
    groups = await all_groups(visit)
    rows = await visit.finish(group_rows(visit, far, groups.found))
    found = listed(rows, visit.query, _COLUMNS, "name")
    await visit.finish(add_seconds(await Ages.of(visit), found["rows"], groups.found))
    return {"groups": found, "untold": sorted({*far.untold, *groups.untold})}
