"""Is the cluster well, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.page.topic_rows import topic_rows

if TYPE_CHECKING:
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit


async def see(visit: Visit) -> Data:
    """Of all that may be seen."""
    far = await visit.observed.far.look(visit.sight)
    rows = await visit.finish(topic_rows(visit, far))
    return {"cluster_id": visit.sight.metadata.cluster_id, "topics": len(rows)}
