"""Web console pages for messages: search, one complete message, and the download of a key or value."""

from typing import Final

from kafka_compat.decoding.formats import AUTO, FORMATS
from kafka_compat.http.routes import NOT_FOUND, UNAVAILABLE, BadCall, File
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.page.records import shown, source_of, unread, without_defaults
from kafka_compat.page.views.topics import known_topic
from kafka_compat.page.visit import Data, Visit
from kafka_compat.search.matching import EVERY
from kafka_compat.search.query import BadQuery, query_of
from kafka_compat.search.run import carry_out, one_record, run_query
from kafka_compat.search.scan import Found
from kafka_compat.search.search import Search
from kafka_compat.search.source import Source, Unreadable
from kafka_compat.security.authorizer import Operation, ResourceType


async def see(visit: Visit) -> Data:
    """Return the results of one search request, and the cursor for the next request."""
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
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "query": without_defaults(query.given),
        "has_more": found.cursor is not None,
        "is_filtered": not query.match.is_all,
        "newest_first": query.newest,
        "goes_on_from_cursor": query.cursor is not None,
        "records": await shown(visit, found.records, query.show_key, query.show_value),
        "problems": unread(found),
        "cursor": found.cursor,
        "done": round(found.done, 4),
        "records_seen": found.records_seen,
        "bytes_read": found.bytes_read,
    }


DECODED_BYTES_MAX: Final = 256 * 1024
SHOWN_MAX: Final = 64 * 1024
"""Maximum number of characters of a key or value on a page."""
QUERY: Final = {
    "name": "string: topic",
    "partition": "integer: partition",
    "offset": "integer: offset",
    "show_key": f"string: format of the key: {', '.join(FORMATS)}",
    "show_value": "string: format of the value, as show_key",
}
DATA_QUERY: Final = {
    "name": "string: topic",
    "partition": "integer: partition",
    "offset": "integer: offset",
    "part": "string: key or value",
}
_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


async def see_one(visit: Visit) -> Data:
    """Return one message with all its fields."""
    topic, partition, offset = _place(visit)
    show_key, show_value = _format(visit, "show_key"), _format(visit, "show_value")
    found, is_committed = await _found(visit, topic, partition, offset)
    cut = found._replace(
        key=found.key and found.key[:DECODED_BYTES_MAX], value=found.value and found.value[:DECODED_BYTES_MAX]
    )
    (record,) = await shown(visit, [cut], show_key, show_value)
    for part in (record["key"], record["value"], *record["headers"]):
        if part["text"] is not None and len(part["text"]) > SHOWN_MAX:
            part.update(text=part["text"][:SHOWN_MAX], is_cut=True)
    source = source_of(visit, topic, committed=True)
    batch = found.batch
    return {
        "name": topic.name,
        **record,
        "show_key": show_key,
        "show_value": show_value,
        "is_committed": is_committed,
        "older_offset": await _neighbour(visit, source, partition, (0, offset), newest=True),
        "newer_offset": await _neighbour(visit, source, partition, (offset + 1, 1 << 62), newest=False),
        "leader_epoch": batch.partition_leader_epoch,
        "batch": {
            "base_offset": batch.base_offset,
            "last_offset": batch.last_offset,
            "records": batch.record_count,
            "size_bytes": batch.size_bytes,
            "format": batch.magic,
            "codec": _CODECS[batch.compression],
            "is_transactional": batch.is_transactional,
            "producer_id": batch.producer_id if batch.has_producer_id else None,
            "producer_epoch": batch.producer_epoch if batch.has_producer_id else None,
            "base_sequence": batch.base_sequence if batch.base_sequence >= 0 else None,
        },
    }


async def give(visit: Visit) -> File:
    """Return the entire key or value of a message as a download."""
    topic, partition, offset = _place(visit)
    part = visit.given("part")
    if part not in ("key", "value"):
        raise BadCall(f"part={part[:40]}: expected key or value")
    found, _ = await _found(visit, topic, partition, offset)
    content = found.key if part == "key" else found.value
    if content is None:
        raise BadCall(f"the {part} of offset {offset} is null", NOT_FOUND)
    # The file name needs no quoting, because topic names contain only safe characters.
    return File(content, "application/octet-stream", name=f"{topic.name}-{partition}-{offset}.{part}")


def _place(visit: Visit) -> tuple[TopicMetadata, int, int]:
    """Return the topic, partition and offset in the parameters. Raises BadCall if they are invalid."""
    topic = known_topic(visit)
    visit.rights.require(Operation.READ, ResourceType.TOPIC, topic.name)
    visit.given("partition")
    visit.given("offset")
    partition, offset = visit.number("partition", 0), visit.number("offset", 0)
    if not any(each.partition == partition for each in topic.partitions):
        raise BadCall(f"{topic.name} has no partition {partition}", NOT_FOUND)
    if offset >= 1 << 62:
        raise BadCall(f"invalid offset {offset}", NOT_FOUND)
    return topic, partition, offset


def _format(visit: Visit, name: str) -> str:
    value = visit.query.get(name) or AUTO
    if value not in FORMATS:
        raise BadCall(f"{name}={value[:40]}: expected one of {', '.join(FORMATS)}")
    return value


async def _found(visit: Visit, topic: TopicMetadata, partition: int, offset: int) -> tuple[Found, bool]:
    """Return the record, and whether read_committed consumers receive it. Raises BadCall if it is missing."""
    long_work = visit.cluster.long_work
    try:
        for committed in (True, False):
            source = source_of(visit, topic, committed=committed)
            found = await one_record(source, partition, offset, long_work)
            if found is not None:
                return found, committed
    except Unreadable as error:
        raise BadCall(f"partition {partition} cannot be read: {error}", UNAVAILABLE) from None
    raise BadCall(
        f"{topic.name}-{partition} has no record at offset {offset}: it was deleted or compacted, is a "
        "transaction marker, or is not written yet",
        NOT_FOUND,
    )


async def _neighbour(
    visit: Visit, source: Source, partition: int, span: tuple[int, int], *, newest: bool
) -> int | None:
    """Return the offset of the newest or oldest record within `span`, or None if no record can be read."""
    bounds = (await source.bounds([partition]))[partition]
    if isinstance(bounds, Unreadable):
        return None
    first, end = max(bounds[0], span[0]), min(bounds[1], span[1])
    if first >= end:
        return None
    search = Search({partition: (first, end)}, EVERY, newest=newest, limit=1, kept_bytes=0)
    await carry_out(search, source, visit.cluster.long_work)
    return search.found[0].offset if search.found else None
