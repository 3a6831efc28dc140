"""The last requests and connections that were refused, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.page.listing import listed
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit

_COLUMNS: Final = {"last": "last_ms", "host": "host", "times": "times"}


async def see(visit: Visit) -> Data:
    """Of the brokers of this process, since the page was begun."""
    visit.rights.require_cluster(Operation.DESCRIBE)
    rows = [one._asdict() for one in visit.observed.refusals.last()]
    return {"refused": listed(rows, visit.query, _COLUMNS, "-last", "reason")}
