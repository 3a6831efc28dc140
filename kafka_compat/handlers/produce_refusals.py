"""Error responses for batches that were not appended, and for topics to which a producer may not write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.buffers import Records, in_memory
from kafka_compat.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka_compat.storage.errors import MessageTooLarge, NotOneBatch, ProducerError, RecordListTooLarge
from kafka_compat.storage.records.batch import HEADER_SIZE, TRANSACTIONAL_FLAG

if TYPE_CHECKING:
    from kafka_compat.api.handler import RequestContext
    from kafka_compat.long_work import Steps

MAGIC_POSITION: Final = 16
ATTRIBUTES_LOW_BYTE: Final = 22

_VERIFY_AGAIN: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_COORDINATOR,
)
_ERRORS_WITHOUT_LOG_START: Final = (
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
)
"""Error codes for batches that Kafka rejects before it accesses the log."""
_ERRORS_WITHOUT_MESSAGE: Final = (MessageTooLarge, RecordListTooLarge, ProducerError)
"""Errors for valid batches. Responses omit the message, so that clients show Kafka's, which scripts match."""


def refused(index: int, code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    """Return a partition's response with an error code and message."""
    return PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        error_message=message,
    )


def failure(index: int, error: Exception, log_start_offset: int) -> PartitionProduceResponse:
    """Return the response for a partition whose append raised `error`."""
    message = None if isinstance(error, _ERRORS_WITHOUT_MESSAGE) else str(error) or None
    answer = refused(index, code_of(error), message)
    if answer.error_code not in _ERRORS_WITHOUT_LOG_START and not isinstance(error, NotOneBatch):
        answer.log_start_offset = log_start_offset
    for batch_index, message in getattr(error, "record_errors", ()):
        answer.record_errors.append(
            BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
        )
    return answer


def unverified(index: int, error: ErrorCode) -> PartitionProduceResponse:
    """Return the response for a batch whose transaction could not be verified."""
    message: str | None = None
    if error in _VERIFY_AGAIN:
        # Return NOT_ENOUGH_REPLICAS, because old clients retry only after errors that they know.
        message = (
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {error.name}"
        )
        error = ErrorCode.NOT_ENOUGH_REPLICAS
    elif error is ErrorCode.INVALID_TXN_STATE:
        message = "Partition was not added to the transaction"
    return refused(index, error, message)


def start_of(records: Records | None) -> bytes:
    """Return at least the header of a batch, if it is complete. Empty if `records` is None."""
    if isinstance(records, bytes):
        return records
    batch = in_memory(records)
    return b"" if batch is None else bytes(batch[:HEADER_SIZE])


def is_transactional(records: Records | None) -> bool:
    """Return whether a batch is marked as part of a transaction."""
    start = start_of(records)
    return (
        len(start) > ATTRIBUTES_LOW_BYTE
        and start[MAGIC_POSITION] == 2
        and start[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_FLAG != 0
    )


def take_out_denied(ctx: RequestContext, request: ProduceRequest) -> Steps[list[TopicProduceResponse]]:
    """Remove unauthorized topics from the request, and return the responses for them.

    Each topic is checked only once. An unauthorized transactional ID fails the whole request.
    """
    # Import these here, because they are needed only with an authorizer.
    from kafka_compat.handlers.authorization import Denied, allows
    from kafka_compat.security.authorizer import Operation, ResourceType

    asked = request.topic_data
    transactional = False
    for topic in asked:
        transactional = transactional or any(is_transactional(data.records) for data in topic.partition_data)
        yield None
    if transactional:
        transactional_id = request.transactional_id
        if transactional_id is None or not allows(
            ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
        ):
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            request.topic_data = []
            return [_denied(topic, code) for topic in asked]
    denied = Denied(ctx, Operation.WRITE, ResourceType.TOPIC)
    allowed: list[TopicProduceData] = []
    answers: list[TopicProduceResponse] = []
    for topic in asked:
        name = topic.name if ctx.api_version < 13 else ctx.services.metadata.topic_name(topic.topic_id)
        if name in denied:
            answers.append(_denied(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            allowed.append(topic)
        yield None
    request.topic_data = allowed
    return answers


def _denied(topic: TopicProduceData, code: ErrorCode) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[refused(data.index, code) for data in topic.partition_data],
    )
