"""The last lines of the log of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.http.routes import BadCall
from kafka_compat.page.listing import listed
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit

_COLUMNS: Final = {"time": "number"}
LEVELS: Final = {"": 0, "INFO": 20, "WARN": 30, "ERROR": 40}


async def see(visit: Visit) -> Data:
    """The last one first; with `level` only those that are at least as grave."""
    visit.rights.require_cluster(Operation.DESCRIBE)
    level = visit.query.get("level", "")
    if level not in LEVELS:
        raise BadCall(f"level={level}: expected one of {', '.join(filter(None, LEVELS))}")
    rows = [line for line in visit.observed.log.lines() if line["level_number"] >= LEVELS[level]]
    return {
        "level": level,
        "levels": list(LEVELS),
        "lines": listed(rows, visit.query, _COLUMNS, "-time", "text"),
    }
