"""Read records from the partition leaders, and decode them for the web console."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kafka_compat.decoding.formats import AUTO, SCHEMA, Schemas, decoded, schema_ids
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.page.visit import Visit
from kafka_compat.search.query import LIMIT
from kafka_compat.search.run import Outcome
from kafka_compat.search.scan import Found
from kafka_compat.search.source import Leader, Source
from kafka_compat.storage.records.kinds import TimestampType

_NO_REGISTRY: Final = "no schema registry is configured: set kafka.compat.schema.registry.url to its address"

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
    "limit": str(LIMIT),
}
"""Default values, which are removed from the query because a form sends all its fields."""


def source_of(visit: Visit, topic: TopicMetadata, *, committed: bool) -> Source:
    """Return a Source for the topic's partitions. With `committed`, it reads only committed records."""
    cluster = visit.cluster
    known = {each.partition: each for each in topic.partitions}

    def leader_of(partition: int) -> Leader | None:
        leader_id = cluster.metadata.reachable_leader(known[partition])
        return None if leader_id is None else Leader(leader_id, known[partition].leader_epoch)

    return Source(
        topic.name,
        leader_of,
        lambda partition: cluster.led(topic.name, known[partition]),
        cluster.remote_partitions(),
        cluster.long_work,
        committed=committed,
    )


def without_defaults(given: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters of a search that differ from their default values."""
    return {name: value for name, value in given.items() if _DEFAULTS.get(name) != value}


def unread(found: Outcome) -> list[dict[str, Any]]:
    """Return the places that a search could not read, as table rows."""
    return [
        {
            "partition": each.partition,
            "offset": None if each.offset < 0 else each.offset,
            "reason": each.reason,
        }
        for each in found.problems
    ]


async def shown(
    visit: Visit, records: Sequence[Found], show_key: str, show_value: str
) -> list[dict[str, Any]]:
    """Return the records as table rows, with keys and values decoded in the given formats."""
    contents: list[bytes | None] = []
    if show_key in (AUTO, SCHEMA):
        contents += [each.key for each in records]
    if show_value in (AUTO, SCHEMA):
        contents += [each.value for each in records]
    ids = schema_ids(contents)
    registry = visit.observed.registry
    schemas: Schemas = {}
    if registry is not None:
        schemas = await registry.schemas(ids)
    elif SCHEMA in (show_key, show_value):
        schemas = dict.fromkeys(ids, _NO_REGISTRY)
    return await visit.cluster.long_work.in_thread(partial(_rows, records, show_key, show_value, schemas))


def _rows(records: Iterable[Found], show_key: str, show_value: str, schemas: Schemas) -> list[dict[str, Any]]:
    # Keys and values have separate formats, because keys often have no schema even if values have one.
    return [
        {
            "partition": each.partition,
            "offset": each.offset,
            "timestamp_ms": each.timestamp_ms,
            "timestamp_type": _timestamp_type(each),
            "key": decoded(each.key, show_key, schemas, size_bytes=each.key_bytes)._asdict(),
            "value": decoded(each.value, show_value, schemas, size_bytes=each.value_bytes)._asdict(),
            "headers": [
                {"name": name, **decoded(content, AUTO, {})._asdict()} for name, content in each.headers
            ],
        }
        for each in records
    ]


def _timestamp_type(found: Found) -> str | None:
    """Return CreateTime or LogAppendTime, or None for record format 0, which has no timestamps."""
    if not found.batch.magic:
        return None
    is_create = found.batch.timestamp_type is TimestampType.CREATE_TIME
    return "CreateTime" if is_create else "LogAppendTime"
