"""What a producer is told of a batch that was not appended."""

from __future__ import annotations

from typing import Final

from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.produce import BatchIndexAndErrorMessage, PartitionProduceResponse

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
"""Errors of batches that Kafka refuses before it looks at the log."""


def refused(index: int, code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    """With that code, and nothing else."""
    return PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        error_message=message,
    )


def failure(index: int, error: Exception, log_start_offset: int) -> PartitionProduceResponse:
    """For the error that the append ended with."""
    answer = refused(index, code_of(error), str(error) or None)
    if answer.error_code not in _ERRORS_WITHOUT_LOG_START:
        answer.log_start_offset = log_start_offset
    for batch_index, message in getattr(error, "record_errors", ()):
        answer.record_errors.append(
            BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
        )
    return answer


def unverified(index: int, error: ErrorCode) -> PartitionProduceResponse:
    """The refusal of a batch whose transaction does not include the partition."""
    message: str | None = None
    if error in _VERIFY_AGAIN:
        # Clients that know nothing of verification try again upon this one.
        message = (
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {error.name}"
        )
        error = ErrorCode.NOT_ENOUGH_REPLICAS
    elif error is ErrorCode.INVALID_TXN_STATE:
        message = "Partition was not added to the transaction"
    return refused(index, error, message)
