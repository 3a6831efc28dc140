"""The operations of the share coordinator as messages of Kafka's protocol (API keys 83 to 87)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from kafka_compat.errors import ErrorCode, known_code
from kafka_compat.long_work import Steps
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages import delete_share_group_state as delete
from kafka_compat.protocol.messages import initialize_share_group_state as initialize
from kafka_compat.protocol.messages import read_share_group_state as read
from kafka_compat.protocol.messages import read_share_group_state_summary as summary
from kafka_compat.protocol.messages import write_share_group_state as write
from kafka_compat.share_coordinator.operations import (
    Delete,
    Initialize,
    Operation,
    Read,
    ReadSummary,
    Result,
    Write,
)
from kafka_compat.share_coordinator.persister import (
    SharePartitionKey,
    StateBatch,
    StateSummary,
    StoredState,
)
from kafka_compat.share_coordinator.state_batches import BATCHES_MAX, combine_in_steps

_BATCHES_AT_ONCE: Final = 1_000
"""Number of batches of a large write that are converted in one step."""


class StateApi(NamedTuple):
    """One API: the classes of its request and response, and their conversion. `version` is the version that
    brokers use among themselves.
    """

    key: ApiKey
    version: int
    request: type[Any]
    topic: type[Any]
    partition: Callable[[int, Any], Any]
    """Return the element of the request that asks for an operation on a partition."""
    operation: Callable[[Any], Operation]
    """Return the operation that an element of the request asks for."""
    response: type[Any]
    topic_result: type[Any]
    partition_result: Callable[[int, Result], Any]
    """Return the element of the response that reports the result for a partition."""
    result: Callable[[Any], Result]
    """Return the result that an element of the response reports."""

    def request_for(self, group_id: str, asked: Iterable[tuple[SharePartitionKey, Operation]]) -> Any:
        """Return a request for operations on share-partitions of one group."""
        topics: dict[Any, Any] = {}
        for key, operation in asked:
            topic = topics.get(key.topic_id)
            if topic is None:
                topic = topics[key.topic_id] = self.topic(topic_id=key.topic_id)
            topic.partitions.append(self.partition(key.partition, operation))
        return self.request(group_id=group_id, topics=list(topics.values()))

    def results_of(self, group_id: str, response: Any) -> Iterator[tuple[SharePartitionKey, Result]]:
        """Yield the results in a response."""
        for topic in response.results:
            for part in topic.partitions:
                yield SharePartitionKey(group_id, topic.topic_id, part.partition), self.result(part)


def _initialize_partition(partition: int, operation: Initialize) -> initialize.PartitionData:
    return initialize.PartitionData(
        partition=partition, state_epoch=operation.state_epoch, start_offset=operation.start_offset
    )


def _initialize_operation(part: initialize.PartitionData) -> Initialize:
    return Initialize(part.state_epoch, part.start_offset)


def _read_partition(partition: int, operation: Read) -> read.PartitionData:
    return read.PartitionData(partition=partition, leader_epoch=operation.leader_epoch)


def _read_operation(part: read.PartitionData) -> Read:
    return Read(part.leader_epoch)


def _write_partition(partition: int, operation: Write) -> write.PartitionData:
    return write.PartitionData(
        partition=partition,
        state_epoch=operation.state_epoch,
        leader_epoch=operation.leader_epoch,
        start_offset=operation.start_offset,
        delivery_complete_count=operation.delivery_complete_count,
        state_batches=_batch_messages(operation.batches),
    )


def _write_operation(part: write.PartitionData) -> Write:
    return Write(
        part.state_epoch,
        part.leader_epoch,
        part.start_offset,
        part.delivery_complete_count,
        _batches(part.state_batches),
    )


def large_write(part: write.PartitionData) -> Steps[Write | None]:
    """Return a write of very many batches, or None if they are too many. The batches are removed from the
    request, because freeing them all at once would take long.
    """
    combined = yield from combine_in_steps(_taken(part.state_batches))
    if len(combined) > BATCHES_MAX:
        return None
    return Write(
        part.state_epoch, part.leader_epoch, part.start_offset, part.delivery_complete_count, combined
    )


def _taken(batches: list[Any]) -> Iterator[Sequence[StateBatch]]:
    """Remove batches from the end of the list, which is quicker, and yield them."""
    while batches:
        some = _batches(batches[-_BATCHES_AT_ONCE:])
        del batches[-_BATCHES_AT_ONCE:]
        yield some


def _delete_partition(partition: int, _: Delete) -> delete.PartitionData:
    return delete.PartitionData(partition=partition)


def _delete_operation(_: delete.PartitionData) -> Delete:
    return Delete()


def _summary_partition(partition: int, operation: ReadSummary) -> summary.PartitionData:
    return summary.PartitionData(partition=partition, leader_epoch=operation.leader_epoch)


def _summary_operation(part: summary.PartitionData) -> ReadSummary:
    return ReadSummary(part.leader_epoch)


def _batch_messages(batches: Iterable[StateBatch]) -> list[read.StateBatch]:
    return [
        read.StateBatch(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            delivery_state=batch.delivery_state,
            delivery_count=batch.delivery_count,
        )
        for batch in batches
    ]


def _batches(batches: Iterable[read.StateBatch]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in batches
    )


def _plain_result(partition: int, result: Result) -> initialize.PartitionResult:
    return initialize.PartitionResult(
        partition=partition, error_code=result.error, error_message=result.message
    )


def _from_plain(part: initialize.PartitionResult) -> Result:
    return Result(known_code(part.error_code), part.error_message)


def _read_result(partition: int, result: Result) -> read.PartitionResult:
    part = read.PartitionResult(partition=partition, error_code=result.error, error_message=result.message)
    if isinstance(result.value, StoredState):
        part.state_epoch = result.value.state_epoch
        part.start_offset = result.value.start_offset
        part.state_batches = _batch_messages(result.value.batches)
    return part


def _from_read(part: read.PartitionResult) -> Result:
    error = known_code(part.error_code)
    if error:
        return Result(error, part.error_message)
    state = StoredState(part.state_epoch, part.start_offset, _batches(part.state_batches))
    return Result(value=state)


def _summary_result(partition: int, result: Result) -> summary.PartitionResult:
    part = summary.PartitionResult(partition=partition, error_code=result.error, error_message=result.message)
    if isinstance(result.value, StateSummary):
        part.state_epoch = result.value.state_epoch
        part.leader_epoch = result.value.leader_epoch
        part.start_offset = result.value.start_offset
        part.delivery_complete_count = result.value.delivery_complete_count
    return part


def _from_summary(part: summary.PartitionResult) -> Result:
    error = known_code(part.error_code)
    if error:
        return Result(error, part.error_message)
    progress = StateSummary(
        part.state_epoch, part.leader_epoch, part.start_offset, part.delivery_complete_count
    )
    return Result(value=progress)


INITIALIZE: Final = StateApi(
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    0,
    initialize.InitializeShareGroupStateRequest,
    initialize.InitializeStateData,
    _initialize_partition,
    _initialize_operation,
    initialize.InitializeShareGroupStateResponse,
    initialize.InitializeStateResult,
    _plain_result,
    _from_plain,
)
READ: Final = StateApi(
    ApiKey.READ_SHARE_GROUP_STATE,
    0,
    read.ReadShareGroupStateRequest,
    read.ReadStateData,
    _read_partition,
    _read_operation,
    read.ReadShareGroupStateResponse,
    read.ReadStateResult,
    _read_result,
    _from_read,
)
WRITE: Final = StateApi(
    ApiKey.WRITE_SHARE_GROUP_STATE,
    1,
    write.WriteShareGroupStateRequest,
    write.WriteStateData,
    _write_partition,
    _write_operation,
    write.WriteShareGroupStateResponse,
    write.WriteStateResult,
    _plain_result,
    _from_plain,
)
DELETE: Final = StateApi(
    ApiKey.DELETE_SHARE_GROUP_STATE,
    0,
    delete.DeleteShareGroupStateRequest,
    delete.DeleteStateData,
    _delete_partition,
    _delete_operation,
    delete.DeleteShareGroupStateResponse,
    delete.DeleteStateResult,
    _plain_result,
    _from_plain,
)
READ_SUMMARY: Final = StateApi(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    1,
    summary.ReadShareGroupStateSummaryRequest,
    summary.ReadStateSummaryData,
    _summary_partition,
    _summary_operation,
    summary.ReadShareGroupStateSummaryResponse,
    summary.ReadStateSummaryResult,
    _summary_result,
    _from_summary,
)

API_OF: Final[dict[type[Operation], StateApi]] = {
    Initialize: INITIALIZE,
    Read: READ,
    Write: WRITE,
    Delete: DELETE,
    ReadSummary: READ_SUMMARY,
}

NO_RESULT: Final = Result(ErrorCode.UNKNOWN_SERVER_ERROR)
"""The result of a share-partition that is missing in a response."""
