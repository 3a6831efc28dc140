"""The latest value of each key of a topic, as compaction keeps it."""

from typing import Final

from kafka_compat.http.routes import BadCall, natural
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.page.records import shown, source_of, unread, without_defaults
from kafka_compat.page.views.topics import described, known_topic
from kafka_compat.page.visit import Data, Visit
from kafka_compat.search.latest import LatestPerKey
from kafka_compat.search.query import PARAMETERS, BadQuery, query_of
from kafka_compat.search.run import run_query
from kafka_compat.security.authorizer import Operation, ResourceType

_PARAMETERS: Final = ("partitions", "key", "key_how", "key_as", "show_key", "show_value", "limit")
QUERY: Final = {
    "name": "string: topic",
    **{name: PARAMETERS[name] for name in _PARAMETERS},
    "skip": "integer: number of keys to skip, from the `next_skip` of the previous response",
}
_SKIP_MAX: Final = 1_000_000


async def see(visit: Visit) -> Data:
    """Return the latest record of each key, recently written keys first. Each request reads the newest
    records again, up to the limits of a search, because the broker keeps no state between requests.
    """
    topic = known_topic(visit)
    visit.rights.require(Operation.READ, ResourceType.TOPIC, topic.name)
    given = {name: value for name, value in visit.query.items() if name in _PARAMETERS and value}
    text = visit.query.get("skip", "")
    skip = natural(text, "skip") if text else 0
    if skip > _SKIP_MAX:
        raise BadCall(f"skip={skip}: expected at most {_SKIP_MAX}")
    latest = LatestPerKey(skip)
    try:
        query = query_of(given)
        found = await run_query(
            query,
            source_of(visit, topic, committed=True),
            [each.partition for each in topic.partitions],
            visit.cluster.long_work,
            accepts=latest,
        )
    except BadQuery as error:
        raise BadCall(str(error)) from None
    is_full = len(found.records) >= query.limit and found.cursor is not None
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "is_compacted": await _is_compacted(visit, topic),
        "query": without_defaults(given),
        "records": await shown(visit, found.records, query.show_key, query.show_value),
        "problems": unread(found),
        "skip": skip,
        "next_skip": skip + len(found.records) if is_full else None,
        "is_complete": found.cursor is None,
        "records_seen": found.records_seen,
        "bytes_read": found.bytes_read,
    }


async def _is_compacted(visit: Visit, topic: TopicMetadata) -> bool | None:
    """Return whether the topic is compacted, or None if its settings are not visible."""
    if not visit.rights.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        return None
    settings = await described(visit, ResourceType.TOPIC, topic.name)
    policy = next((each["value"] for each in settings if each["name"] == "cleanup.policy"), "") or ""
    return "compact" in policy
