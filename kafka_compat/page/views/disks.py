"""Log directories, and how much room there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.page.disks import log_dirs
from kafka_compat.security.authorizer import Operation
from kafka_compat.status.rules import USABLE_MIN

if TYPE_CHECKING:
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit


async def see(visit: Visit) -> Data:
    """Of all brokers."""
    visit.rights.require_cluster(Operation.DESCRIBE)
    found, missing = await log_dirs(visit, with_replicas=True)
    rows = []
    for each in found:
        usable = None
        if each.total_bytes and each.usable_bytes is not None:
            usable = each.usable_bytes / each.total_bytes
        rows.append(
            {
                "broker": each.broker_id,
                "path": each.path,
                "error": each.error,
                "replicas": each.replicas,
                "replica_bytes": each.replica_bytes,
                "total_bytes": each.total_bytes,
                "usable_bytes": each.usable_bytes,
                "usable_share": usable,
                "is_nearly_full": usable is not None and usable < USABLE_MIN,
            }
        )
    return {"disks": rows, "missing": missing}
