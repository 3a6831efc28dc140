"""All topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.page.listing import listed
from kafka_compat.page.topic_rows import topic_rows

if TYPE_CHECKING:
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit

_COLUMNS: Final = {
    "name": "name",
    "partitions": "partitions",
    "records": "records",
    "rate": "records_per_second",
    "size": "size_bytes",
}


async def see(visit: Visit) -> Data:
    """The topics that may be seen, a part at a time."""
    remote = await visit.observed.remote.look(visit.cluster)
    rows = await visit.finish(topic_rows(visit, remote))
    return {"topics": listed(rows, visit.query, _COLUMNS, "name"), "missing": remote.missing}
