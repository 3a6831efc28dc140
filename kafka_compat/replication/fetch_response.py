"""Build Fetch responses, convert records for old clients, and count the traffic."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode
from kafka_compat.long_work import batched
from kafka_compat.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafka_compat.replication.fetch_reader import NO_RECORDS, unread
from kafka_compat.storage.errors import StorageError, UnsupportedCompressionType
from kafka_compat.storage.segments.file_slice import SENDFILE_BYTES_MIN, FileSlice

if TYPE_CHECKING:
    from kafka_compat.long_work import Steps
    from kafka_compat.replication.fetch_context import FetchContext
    from kafka_compat.replication.fetch_reader import Found, ReadResult
    from kafka_compat.replication.fetch_session import FetchPlan, FetchTarget
    from kafka_compat.replication.partition import Partition

FIRST_VERSION_WITH_FORMAT_2: Final = 4
_FIRST_VERSION_WITH_STORAGE_ERRORS: Final = 6
_FIRST_VERSION_WITH_ZSTD: Final = 10
PARTITIONS_AT_ONCE: Final = 128
_FAILURES: Final = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR)
"""Errors that count as failed fetches. Kafka counts other errors elsewhere."""
_FIXED_BYTES: Final = 16
_TOPIC_BYTES: Final = 20
_PARTITION_BYTES: Final = 40
"""Approximate sizes in bytes of a response without records: fixed, per topic, and per partition."""


def response_of(ctx: FetchContext, plan: FetchPlan, result: ReadResult, replica_id: int) -> FetchResponse:
    """Build the response without opening a session. Records for a follower, whose ID is `replica_id`, count
    toward the leader's replication quota.
    """
    response = FetchResponse()
    response.session_id = plan.session_id
    is_small = result.total_bytes < SENDFILE_BYTES_MIN
    _add(ctx, plan, result.found, replica_id, response.responses, is_small)
    return response


def response_in_steps(
    ctx: FetchContext, plan: FetchPlan, result: ReadResult, replica_id: int
) -> Steps[FetchResponse]:
    """Build the response, including partitions that the client may not read. Yield to the event loop between
    partitions, because there may be many and their records may require conversion.
    """
    if ctx.api_version < FIRST_VERSION_WITH_FORMAT_2:
        yield from _convert(ctx, result.found, replica_id)
    topics: list[FetchableTopicResponse] = []
    for first in range(0, len(result.found), PARTITIONS_AT_ONCE):
        _add(ctx, plan, result.found[first : first + PARTITIONS_AT_ONCE], replica_id, topics, False)
        yield None
    for denied in batched(plan.denied, PARTITIONS_AT_ONCE):
        for target in denied:
            data = unread(target.partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if plan.send(target, data, 0):
                _partitions_of(topics, target.topic).append(data)
        yield None
    return FetchResponse(session_id=plan.session_id, responses=topics)


def _convert(ctx: FetchContext, found: list[Found], replica_id: int) -> Steps[None]:
    magic = 0 if ctx.api_version < 2 else 1
    for number, (target, data, _, held) in enumerate(found):
        adapted = _for_old_client(ctx, target, data, held, replica_id)
        if adapted is not data:
            found[number] = (target, adapted, 0, held)
        elif held is not None and isinstance(data.records, FileSlice):
            if ctx.has_left:
                data.records = NO_RECORDS
                continue
            try:
                messages, count = yield partial(_down_converted, data.records, magic, target.fetch_offset)
            except UnsupportedCompressionType as error:
                found[number] = (target, _withheld(target.partition, code_of(error)), 0, held)
            except (StorageError, OSError) as failure:
                damaged = held.log.unreadable(failure, target.fetch_offset)
                failed = unread(target.partition, code_of(damaged))
                found[number] = (target, _for_old_client(ctx, target, failed, held, replica_id), 0, held)
            else:
                data.records = messages
                held.counts.converted_out += count
                found[number] = (target, data, len(messages), held)


def _down_converted(records: FileSlice, magic: int, fetch_offset: int) -> tuple[bytes, int]:
    """Convert records, and return (messages, number of messages). A compressed set counts as one."""
    # Import these functions here, because few clients request old formats.
    from kafka_compat.storage.records.legacy import count_messages, down_convert

    messages = down_convert(records.read(), magic, first_offset=fetch_offset)
    return messages, count_messages(messages)


def _for_old_client(
    ctx: FetchContext, target: FetchTarget, data: PartitionData, held: Partition | None, replica_id: int
) -> PartitionData:
    """Adapt a partition's response data for Fetch versions 0 to 9, which do not support all errors and record
    formats. As in Kafka, zstd (KIP-110) is detected from the topic's compression.type, not from the batches.
    """
    version = ctx.api_version
    if version < _FIRST_VERSION_WITH_STORAGE_ERRORS and data.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
        data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if held is None:
        return data
    config = held.log.config
    if config.compression_type == "zstd":
        return _withheld(target.partition, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if version < FIRST_VERSION_WITH_FORMAT_2 and replica_id < 0 and not config.message_downconversion_enable:
        return _withheld(target.partition, ErrorCode.UNSUPPORTED_VERSION)
    return data


def _withheld(partition: int, code: ErrorCode) -> PartitionData:
    """Return the response data for records that the client cannot read. Its records are null."""
    data = unread(partition, code)
    data.records = None
    return data


def _add(
    ctx: FetchContext,
    plan: FetchPlan,
    found: Sequence[Found],
    replica_id: int,
    topics: list[FetchableTopicResponse],
    is_small: bool,
) -> None:
    """Add partitions to `topics`, and count them. The records of a small response are read into memory."""
    is_follower = replica_id >= 0
    replicas = ctx.services.replicas
    if is_follower and replicas.quotas.leader.has_replicas:
        _record_throttled(ctx, found)
    # `_convert` handles versions before FIRST_VERSION_WITH_FORMAT_2.
    is_old = FIRST_VERSION_WITH_FORMAT_2 <= ctx.api_version < _FIRST_VERSION_WITH_ZSTD
    for target, data, size_bytes, held in found:
        if plan.send(target, data, size_bytes):
            if is_old:
                adapted = _for_old_client(ctx, target, data, held, replica_id)
                if adapted is not data:
                    data, size_bytes = adapted, 0
            records = data.records
            if held is not None and isinstance(records, FileSlice):
                try:
                    # Read small slices now, to detect a truncated segment before the response's size is sent.
                    if is_small:
                        data.records = records.read()
                    else:
                        records.load()
                except (StorageError, OSError) as error:
                    damaged = held.log.unreadable(error, target.fetch_offset)
                    data, size_bytes = unread(target.partition, code_of(damaged)), 0
            _partitions_of(topics, target.topic).append(data)
        if held is None:
            continue
        counts = held.counts
        counts.fetches += 1
        if size_bytes > 0:
            if is_follower:
                counts.replicated_bytes_out += size_bytes
            else:
                counts.bytes_out += size_bytes
            if is_small or size_bytes < ctx.sendfile_bytes_min:
                replicas.counts.fetched_copied_bytes += size_bytes
            else:
                replicas.counts.fetched_sendfile_bytes += size_bytes
        elif data.error_code in _FAILURES:
            counts.failed_fetches += 1


def _record_throttled(ctx: FetchContext, found: Sequence[Found]) -> None:
    broker = ctx.services
    quota = broker.replicas.quotas.leader
    for _, _, size_bytes, held in found:
        if size_bytes and held is not None and quota.is_throttled(held.topic, held.partition):
            quota.record(size_bytes, broker.clock.monotonic_ms())


def _partitions_of(topics: list[FetchableTopicResponse], topic: str | UUID) -> list[PartitionData]:
    """Return the topic's list of partitions. Append the topic to `topics` unless it is already the last."""
    last = topics[-1] if topics else None
    if isinstance(topic, str):
        if last is None or last.topic != topic:
            last = FetchableTopicResponse()
            last.topic = topic
            topics.append(last)
    elif last is None or (last.topic_id is not topic and last.topic_id != topic):
        last = FetchableTopicResponse()
        last.topic_id = topic
        topics.append(last)
    return last.partitions


# --- response size, for consumer quotas (KIP-219)


def response_bytes(plan: FetchPlan, result: ReadResult) -> int:
    """Return the approximate size of the response in bytes. The size of records is their size in the log."""
    return result.total_bytes + _FIXED_BYTES + _bytes_of(plan, result.found)


def response_bytes_in_steps(plan: FetchPlan, result: ReadResult) -> Steps[int]:
    """Compute `response_bytes` for many partitions. Yields to the event loop between them."""
    size_bytes = result.total_bytes + _FIXED_BYTES + (_TOPIC_BYTES + _PARTITION_BYTES) * len(plan.denied)
    for some in batched(result.found, PARTITIONS_AT_ONCE):
        size_bytes += _bytes_of(plan, some)
        yield None
    return size_bytes


def _bytes_of(plan: FetchPlan, found: Sequence[Found]) -> int:
    size_bytes, topic = 0, None
    for target, data, records_bytes, _ in found:
        if plan.would_send(target, data, records_bytes):
            size_bytes += _PARTITION_BYTES
            if target.topic != topic:
                size_bytes += _TOPIC_BYTES
                topic = target.topic
    return size_bytes
