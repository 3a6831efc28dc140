"""ListOffsets (API key 2): return offsets by timestamp, and special offsets such as earliest and latest.

Negative timestamps select special offsets: -1 the latest offset (with read_committed, the last stable
offset), -2 the earliest, -3 the offset of the record with the greatest timestamp (7+, KIP-734), -4 the
earliest local offset (8+), -5 the latest offset in tiered storage (9+), and -6 the earliest offset that is
not in tiered storage yet (11+). Tiered storage is not supported. Version 0 returns a list of segment start
offsets, for the oldest clients.

A follower (replica ID 0 or above) sees the whole log. Other clients get OFFSET_NOT_AVAILABLE from a new
leader, which does not know the committed offset until its followers have reached its epoch.

A lookup by timestamp may decompress and scan whole batches. Lookups run in another thread, one at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import Denied
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.replication.partition import Partition

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
READ_COMMITTED: Final = 1
_CONSUMER: Final = -1
_DEBUGGER: Final = -2
_FIRST_VERSION_OF_OFFSET_NOT_AVAILABLE: Final = 5
_OF_TIERED_STORAGE: Final = (LATEST_TIERED, EARLIEST_PENDING_UPLOAD)
_FIRST_VERSION: Final = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


@handler(0, 11)
def list_offsets(ctx: RequestContext, request: ListOffsetsRequest) -> Steps[ListOffsetsResponse]:
    seen: set[tuple[str, int]] = set()
    duplicates: set[tuple[str, int]] = set()
    for topic in request.topics if ctx.api_version > 0 else ():
        for wanted in topic.partitions:
            key = (topic.name, wanted.partition_index)
            (duplicates if key in seen else seen).add(key)
            yield None
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    response = ListOffsetsResponse()
    refused: list[ListOffsetsTopicResponse] = []
    for topic in request.topics:
        is_denied = topic.name in denied
        answers: list[ListOffsetsPartitionResponse] = []
        topics = refused if is_denied else response.topics
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        for wanted in topic.partitions:
            if is_denied:
                answers.append(_error(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif (topic.name, wanted.partition_index) in duplicates:
                answers.append(_error(wanted, ErrorCode.INVALID_REQUEST))
            else:
                answers.append((yield from _answer(ctx, request, topic.name, wanted)))
            yield None
    response.topics += refused
    return response


def _answer(
    ctx: RequestContext, request: ListOffsetsRequest, topic: str, wanted: ListOffsetsPartition
) -> Steps[ListOffsetsPartitionResponse]:
    if wanted.timestamp < 0 and ctx.api_version < _FIRST_VERSION.get(wanted.timestamp, 1 << 15):
        return _error(wanted, ErrorCode.UNSUPPORTED_VERSION)
    replicas = ctx.services.replicas
    partition = replicas.get(topic, wanted.partition_index)
    if partition is None:
        return _error(wanted, replicas.missing(topic, wanted.partition_index))
    code = partition.check_leader_epoch(
        wanted.current_leader_epoch, leader_only=request.replica_id != _DEBUGGER
    )
    if code != ErrorCode.NONE:
        return _error(wanted, code)
    try:
        if ctx.api_version == 0:
            return ListOffsetsPartitionResponse(
                partition_index=wanted.partition_index,
                old_style_offsets=_segment_starts(
                    partition, wanted, is_consumer=request.replica_id == _CONSUMER
                ),
            )
        if request.replica_id != _CONSUMER:
            end = partition.log.log_end_offset
        elif request.isolation_level == READ_COMMITTED:
            end = partition.last_stable_offset
        else:
            end = partition.high_watermark
        timestamp, offset, epoch = yield from _find(partition, wanted.timestamp, end)
        if offset < 0 or wanted.timestamp == LATEST:
            unsure = partition.is_leader and partition.epoch_start_offset > partition.high_watermark
            if unsure and request.replica_id == _CONSUMER and wanted.timestamp not in _OF_TIERED_STORAGE:
                new = ctx.api_version >= _FIRST_VERSION_OF_OFFSET_NOT_AVAILABLE
                return _error(
                    wanted, ErrorCode.OFFSET_NOT_AVAILABLE if new else ErrorCode.LEADER_NOT_AVAILABLE
                )
    except (StorageError, KafkaError) as error:
        return _error(wanted, code_of(error))
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, timestamp=timestamp, offset=offset, leader_epoch=epoch
    )


def _find(partition: Partition, timestamp: int, end: int) -> Steps[tuple[int, int, int]]:
    """Return the timestamp, offset and leader epoch for the requested timestamp, with -1 for missing values.
    Records at `end` or later are ignored.
    """
    log = partition.log
    if timestamp == LATEST:
        return -1, end, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        epoch = log.leader_epochs.epoch_for(log.log_start_offset)
        return -1, log.log_start_offset, partition.leader_epoch if epoch < 0 else epoch
    if timestamp in _OF_TIERED_STORAGE:
        return -1, -1, -1
    found = yield from (
        log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    )
    if found is None or found.offset >= end:
        return -1, -1, -1
    return found.timestamp, found.offset, found.leader_epoch


def _segment_starts(partition: Partition, wanted: ListOffsetsPartition, *, is_consumer: bool) -> list[int]:
    """Return the start offsets of the segments last modified no later than the timestamp, and the log end
    offset, newest first (UnifiedLog.legacyFetchOffsetsBefore). Raises KafkaError if the maximum number of
    offsets is negative.
    """
    log = partition.log
    starts = log.segment_starts()
    if log.segments.active.size_bytes:
        starts.append((log.log_end_offset, log.now_ms()))
    newest = len(starts)
    if wanted.timestamp == EARLIEST:
        newest = 1
    elif wanted.timestamp != LATEST:
        while newest and starts[newest - 1][1] > wanted.timestamp:
            newest -= 1
    if wanted.max_num_offsets < 0:
        # Return the same error as Kafka, which tries to create an array of this negative size.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    offsets = sorted((offset for offset, _ in starts[:newest][::-1][: wanted.max_num_offsets]), reverse=True)
    end = partition.high_watermark
    if is_consumer and offsets and offsets[0] > end:
        return [end, *(offset for offset in offsets if offset <= end)]
    return offsets


def _error(wanted: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, error_code=code, timestamp=-1, offset=-1, leader_epoch=-1
    )
