"""The answer to a Fetch, from what its partitions were found to have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafka_compat.storage.errors import StorageError, UnsupportedCompressionType
from kafka_compat.storage.segments.segment import FileSlice

if TYPE_CHECKING:
    from kafka_compat.long_work import Steps
    from kafka_compat.replication.fetch_context import FetchContext
    from kafka_compat.replication.fetch_session import FetchPlan, FetchTarget

NO_RECORDS: Final = b""
FIRST_VERSION_WITH_FORMAT_2: Final = 4
_FIRST_VERSION_WITH_STORAGE_ERRORS: Final = 6
_FIRST_VERSION_WITH_ZSTD: Final = 10
PARTITIONS_AT_ONCE: Final = 128
Found = tuple["FetchTarget", PartitionData, int]
"""A partition, what the answer says of it, and its bytes of records."""


class Look:
    """What partitions were found to have, in all `total_bytes` of records; the client must hear of it now
    when it is `urgent`.
    """

    __slots__ = ("found", "total_bytes", "urgent")

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.total_bytes = 0
        self.urgent = False


def response_of(ctx: FetchContext, plan: FetchPlan, look: Look, replica_id: int) -> FetchResponse:
    """The response, except for its session. A follower's records (`replica_id`) count for the leader's
    quota.
    """
    topics: dict[str | UUID, list[PartitionData]] = {}
    _add(ctx, plan, look.found, replica_id, topics)
    responses = [_topic(topic, partitions) for topic, partitions in topics.items()]
    return FetchResponse(session_id=plan.session_id, responses=responses)


def response_in_steps(
    ctx: FetchContext, plan: FetchPlan, look: Look, replica_id: int
) -> Steps[FetchResponse]:
    """The same for many partitions, for some that are denied, or for a client that reads old formats."""
    if ctx.api_version < FIRST_VERSION_WITH_FORMAT_2:
        yield from _convert(ctx, look.found, replica_id)
    topics: dict[str | UUID, list[PartitionData]] = {}
    for first in range(0, len(look.found), PARTITIONS_AT_ONCE):
        _add(ctx, plan, look.found[first : first + PARTITIONS_AT_ONCE], replica_id, topics)
        yield None
    for first in range(0, len(plan.denied), PARTITIONS_AT_ONCE):
        some = plan.denied[first : first + PARTITIONS_AT_ONCE]
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found = [(target, unread(target.partition, code), 0) for target in some]
        _add(ctx, plan, found, replica_id, topics)
        yield None
    response = FetchResponse(session_id=plan.session_id)
    for topic, partitions in topics.items():
        response.responses.append(_topic(topic, partitions))
        yield None
    return response


def _convert(ctx: FetchContext, found: list[Found], replica_id: int) -> Steps[None]:
    """Another thread does it, one partition after the other."""
    magic = 0 if ctx.api_version < 2 else 1
    for number, (target, data, _) in enumerate(found):
        adapted = _for_old_client(ctx, target, data, replica_id)
        if adapted is not data:
            found[number] = (target, adapted, 0)
        elif isinstance(data.records, FileSlice):
            if ctx.has_left:
                data.records = NO_RECORDS
                continue
            try:
                data.records = yield partial(_down_converted, data.records, magic, target.fetch_offset)
            except UnsupportedCompressionType as error:
                found[number] = (target, _withheld(target.partition, code_of(error)), 0)
            except (StorageError, OSError) as error:
                failed = unread(target.partition, code_of(error))
                found[number] = (target, _for_old_client(ctx, target, failed, replica_id), 0)


def _down_converted(records: FileSlice, magic: int, fetch_offset: int) -> bytes:
    # Few clients ask for old formats.
    from kafka_compat.storage.records.legacy import down_convert

    return down_convert(records.read(), magic, first_offset=fetch_offset)


def _for_old_client(
    ctx: FetchContext, target: FetchTarget, data: PartitionData, replica_id: int
) -> PartitionData:
    """What a client that speaks Fetch 0 to 9 gets of a partition: it may know neither zstd (KIP-110), nor
    format 2, nor the error of a failed disk. The topic's settings decide, not what is in the log.
    """
    version = ctx.api_version
    if version < _FIRST_VERSION_WITH_STORAGE_ERRORS and data.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
        data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    topic = target.topic
    held = ctx.services.replicas.get(topic, target.partition) if isinstance(topic, str) else None
    if held is None:
        return data
    config = held.log.config
    if config.compression_type == "zstd":
        return _withheld(target.partition, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if version < FIRST_VERSION_WITH_FORMAT_2 and replica_id < 0 and not config.message_downconversion_enable:
        return _withheld(target.partition, ErrorCode.UNSUPPORTED_VERSION)
    return data


def _withheld(partition: int, code: ErrorCode) -> PartitionData:
    """A partition whose records the client may not be sent: they are null."""
    data = unread(partition, code)
    data.records = None
    return data


def _add(
    ctx: FetchContext,
    plan: FetchPlan,
    found: Sequence[Found],
    replica_id: int,
    topics: dict[str | UUID, list[PartitionData]],
) -> None:
    """Put what the client must hear into `topics`."""
    if replica_id >= 0 and ctx.services.replicas.quotas.leader.has_replicas:
        _count_throttled(ctx, found)
    # Below, everything is adapted before it is converted.
    is_old = FIRST_VERSION_WITH_FORMAT_2 <= ctx.api_version < _FIRST_VERSION_WITH_ZSTD
    for target, data, size_bytes in found:
        if plan.must_send(target, data, size_bytes):
            if is_old:
                data = _for_old_client(ctx, target, data, replica_id)
            if isinstance(data.records, FileSlice):
                try:
                    # Else a segment that lost its end would be noticed when its size is promised already.
                    data.records.load()
                except (StorageError, OSError) as error:
                    data = unread(target.partition, _code_of_damage(ctx, target, error))
            topics.setdefault(target.topic, []).append(data)


def _code_of_damage(ctx: FetchContext, target: FetchTarget, error: StorageError | OSError) -> ErrorCode:
    """The error of a partition whose segment file has lost the records."""
    topic = target.topic
    name = ctx.services.metadata.topic_name(topic) if isinstance(topic, UUID) else topic
    held = ctx.services.replicas.get(name, target.partition) if name is not None else None
    if held is None:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return code_of(held.log.unreadable(error, target.fetch_offset))


def _count_throttled(ctx: FetchContext, found: Sequence[Found]) -> None:
    broker = ctx.services
    quota = broker.replicas.quotas.leader
    for target, data, size_bytes in found:
        topic = target.topic
        name = broker.metadata.topic_name(topic) if isinstance(topic, UUID) else topic
        if name is not None and size_bytes and quota.is_throttled(name, data.partition_index):
            quota.record(size_bytes, broker.clock.monotonic_ms())


def _topic(topic: str | UUID, partitions: list[PartitionData]) -> FetchableTopicResponse:
    if isinstance(topic, UUID):
        return FetchableTopicResponse(topic_id=topic, partitions=partitions)
    return FetchableTopicResponse(topic=topic, partitions=partitions)


def unread(partition: int, code: ErrorCode) -> PartitionData:
    """A partition that is not here."""
    return PartitionData(
        partition_index=partition,
        error_code=code,
        high_watermark=-1,
        last_stable_offset=-1,
        log_start_offset=-1,
        records=NO_RECORDS,
    )


def failed_read(partition: int, code: ErrorCode) -> PartitionData:
    """The same for one that is here: its list of aborted transactions is null."""
    data = unread(partition, code)
    data.aborted_transactions = None
    return data
