"""Copy a topic: as a fork on a standalone broker, otherwise record by record in the background."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from kafka_compat.client.consumed import AbortedTransactions, whole_batches
from kafka_compat.control.topic_fork import copy_positions, fork_topic
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.http.routes import CONFLICT, NOT_FOUND, BadCall
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.page import fields
from kafka_compat.page.copies import Copy
from kafka_compat.page.records import source_of
from kafka_compat.page.views.produce import NotAppended, append
from kafka_compat.page.views.topics import OWN, described, known_topic, named_topic
from kafka_compat.page.visit import Data, Done, Visit, path_of
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.search.source import Content, Unreadable
from kafka_compat.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.records.batch import BatchHeader
from kafka_compat.storage.records.kinds import CompressionType, TimestampType
from kafka_compat.storage.records.legacy import records_of
from kafka_compat.storage.records.records import Record, build_batch, iter_records

BODY: Final = {
    "name": "string: topic to copy",
    "target": "string: name of the copy",
    "groups": "boolean: also copy committed offsets (standalone brokers only)",
}
_CREATE_VERSION: Final = 7
_TIMEOUT_MS: Final = 30_000


async def see(visit: Visit) -> Data:
    """Return the fields of the form, and the most recent copies in this process."""
    topic = known_topic(visit)
    return {
        "name": topic.name,
        "is_internal": topic.is_internal,
        "is_fork": _is_standalone(visit),
        "copies": [
            each.as_data()
            for each in visit.observed.copies.all
            if visit.rights.may_see_topic(each.source) and visit.rights.may_see_topic(each.target)
        ],
    }


async def act(visit: Visit) -> Done:
    """Start copying a topic. On a standalone broker, the copy is complete when this function returns."""
    topic = named_topic(visit, fields.needed(visit.body, "name"))
    target = fields.needed(visit.body, "target")
    with_groups = fields.is_on(visit.body, "groups")
    visit.rights.require(Operation.READ, ResourceType.TOPIC, topic.name)
    visit.rights.require(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name)
    visit.rights.require(Operation.WRITE, ResourceType.TOPIC, target)
    if not visit.rights.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        visit.rights.require(Operation.CREATE, ResourceType.TOPIC, target)
    if topic.is_internal:
        raise BadCall(f"{topic.name} is an internal topic and cannot be copied")
    if _is_standalone(visit):
        groups = await _fork(visit, topic.name, target, with_groups=with_groups)
        return Done(
            {"name": topic.name, "target": target, "state": "done", "groups": groups},
            path_of("/topic", name=target),
        )
    if with_groups:
        raise BadCall("groups: only a standalone broker can copy group offsets with a topic")
    await _make(visit, topic, target)
    copy = visit.observed.copies.begin(topic.name, target, partial(copy_records, look=visit.later))
    return Done({"name": topic.name, **copy.as_data()}, path_of("/copy", name=topic.name))


def _is_standalone(visit: Visit) -> bool:
    return bool(visit.cluster.services[0].membership.is_standalone)


async def _fork(visit: Visit, source: str, target: str, *, with_groups: bool) -> list[str]:
    groups: list[str] = []

    async def then() -> None:
        wanted = [
            group_id
            for coordinator in visit.cluster.coordinators()
            for group_id in coordinator.group_ids()
            if visit.rights.may(Operation.READ, ResourceType.GROUP, group_id)
        ]
        groups.extend(await copy_positions(visit.cluster.services, source, target, wanted))

    async def nothing() -> None: ...

    try:
        await fork_topic(visit.cluster.services, source, target, then if with_groups else nothing)
    except KafkaError as error:
        raise BadCall(f"{error.code.name} {error.message or ''}".strip(), CONFLICT) from None
    return sorted(groups)


async def _make(visit: Visit, topic: TopicMetadata, target: str) -> None:
    """Create the target topic with the partition count, replication factor and settings of `topic`."""
    from kafka_compat.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig

    settings = await described(visit, ResourceType.TOPIC, topic.name)
    configs = [
        CreatableTopicConfig(name=each["name"], value=each["value"])
        for each in settings
        if each["source"] == OWN
    ]
    wanted = CreatableTopic(
        name=target,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=configs,
    )
    controller = visit.cluster.metadata.controller_id
    answer = await visit.ask(
        ApiKey.CREATE_TOPICS, _CREATE_VERSION, controller, topics=[wanted], timeout_ms=_TIMEOUT_MS
    )
    (result,) = answer.topics
    if result.error_code:
        raise BadCall(f"{ErrorCode(result.error_code).name} {result.error_message or ''}".strip(), CONFLICT)


# --- copying in the background, for topics that cannot be forked


_READ_BYTES: Final = 512 * 1024
_RETRIES: Final = 20
_RETRY_AFTER_S: Final = 0.5
_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""Errors to retry: the leader has changed or does not know the topic yet, and stored no records."""


async def copy_records(copy: Copy, look: Callable[[], Visit]) -> None:
    """Copy to a new topic all records that read_committed consumers can read now, with the same partitions,
    timestamps, headers and codecs. The new offsets have no gaps. `look` returns a Visit with the current
    cluster and the same rights. Raises BadCall, Unreadable, StorageError, OSError and NoBrokerRuns.
    """
    visit = look()
    topic = visit.cluster.metadata.topics.get(copy.source)
    if topic is None:
        raise BadCall(f"unknown topic {copy.source}", NOT_FOUND)
    bounds = await source_of(visit, topic, committed=True).bounds(each.partition for each in topic.partitions)
    spans: dict[int, tuple[int, int]] = {}
    for partition, found in bounds.items():
        if isinstance(found, Unreadable):
            raise Unreadable(f"partition {partition}: {found}")
        spans[partition] = found
    copy.total = sum(end - first for first, end in spans.values())
    for partition, (first, end) in sorted(spans.items()):
        while first < end:
            first = await _step(copy, look, partition, first, end)


async def _step(copy: Copy, look: Callable[[], Visit], partition: int, first: int, end: int) -> int:
    """Copy one batch of records, and return the next source offset."""
    visit = look()
    topic = visit.cluster.metadata.topics.get(copy.source)
    if topic is None:
        raise BadCall(f"the topic {copy.source} was deleted", NOT_FOUND)
    source = source_of(visit, topic, committed=True)
    content = await source.content(partition, first, end, _READ_BYTES)
    if content is None:
        copy.done += end - first
        return end
    rebuilt = await visit.cluster.long_work.in_thread(partial(_rebuilt, content, first, end))
    for batch, count, next_offset in rebuilt:
        if batch is not None:
            await _append(look, copy.target, partition, batch)
            copy.records += count
        copy.done += next_offset - first
        first = next_offset
    return first


async def _append(look: Callable[[], Visit], target: str, partition: int, batch: bytes) -> None:
    for left in reversed(range(_RETRIES)):
        try:
            await append(look(), target, partition, batch)
            return
        except NotAppended as error:
            if error.code not in _MOVED or not left:
                raise
        await asyncio.sleep(_RETRY_AFTER_S)


def _rebuilt(content: Content, first: int, end: int) -> list[tuple[bytes | None, int, int]]:
    """Return (batch to append or None if skipped, number of records, next source offset) for each batch."""
    transactions = AbortedTransactions(content.aborted)
    rebuilt: list[tuple[bytes | None, int, int]] = []
    for header, batch in whole_batches(content.load()):
        if header.magic == 2 and header.base_offset >= end:
            rebuilt.append((None, 0, end))
            break
        next_offset = min(header.next_offset, end)
        records: list[Record] = []
        if not transactions.skip(header, batch):
            found = iter_records(batch) if header.magic > 1 else records_of(batch)
            records = [each for each in found if first <= each.offset < end]
        if next_offset > first or records:
            rebuilt.append((_batch(header, records), len(records), max(next_offset, first)))
    if not rebuilt:
        raise StorageError(f"the data at offset {first} is not a batch")
    return rebuilt


def _batch(header: BatchHeader, records: list[Record]) -> bytes | None:
    if not records:
        return None
    # Use CreateTime, as all producers do. With LogAppendTime, the leader sets the timestamps.
    return build_batch(
        records, compression=CompressionType(header.compression), timestamp_type=TimestampType.CREATE_TIME
    )
