"""The messages of a topic: a search through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.http.routes import BadCall
from kafka_compat.page.records import shown, source_of
from kafka_compat.page.views.topic import known_topic
from kafka_compat.search.query import BadQuery, query_of
from kafka_compat.search.run import run_query
from kafka_compat.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit


_AT_HAND: Final = frozenset(("key", "key_how", "key_as", "value", "value_how", "value_as", "order"))
"""What the form shows without being unfolded."""
_DEFAULTS: Final = {
    "key_how": "contains",
    "key_as": "text",
    "value_how": "contains",
    "value_as": "text",
    "header_how": "contains",
    "header_as": "text",
    "isolation": "read_committed",
    "show_key": "auto",
    "show_value": "auto",
    "order": "newest",
    "limit": "50",
}
"""A form sends all its fields."""


async def see(visit: Visit) -> Data:
    """What one request finds, and where to go on."""
    topic = known_topic(visit)
    visit.rights.require(Operation.READ, ResourceType.TOPIC, topic.name)
    try:
        query = query_of(visit.query)
        found = await run_query(
            query,
            source_of(visit, topic, committed=query.committed),
            [each.partition for each in topic.partitions],
            visit.cluster.long_work,
        )
    except BadQuery as error:
        raise BadCall(str(error)) from None
    given = {name: value for name, value in query.given.items() if _DEFAULTS.get(name) != value}
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "query": given,
        "has_more": bool(given.keys() - _AT_HAND),
        "is_filtered": not query.match.is_all,
        "newest_first": query.newest,
        "goes_on_from_cursor": query.cursor is not None,
        "records": await shown(visit, found.records, query.show_key, query.show_value),
        "problems": [
            {
                "partition": each.partition,
                "offset": None if each.offset < 0 else each.offset,
                "reason": each.reason,
            }
            for each in found.problems
        ],
        "cursor": found.cursor,
        "done": round(found.done, 4),
        "records_seen": found.records_seen,
        "bytes_read": found.bytes_read,
    }
