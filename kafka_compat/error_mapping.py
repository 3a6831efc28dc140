"""The one place where causes become Kafka's error codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from coordination.metadata_store import ConnectionLost, SessionExpired
from kafka_compat.errors import ErrorCode, KafkaError
from storage import errors as storage_errors

_CODES: dict[type[Exception], ErrorCode] = {
    storage_errors.CorruptRecord: ErrorCode.CORRUPT_MESSAGE,
    storage_errors.InvalidRecord: ErrorCode.INVALID_RECORD,
    storage_errors.InvalidTimestamp: ErrorCode.INVALID_TIMESTAMP,
    storage_errors.UnsupportedCompressionType: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    storage_errors.MessageTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    storage_errors.RecordListTooLarge: ErrorCode.RECORD_LIST_TOO_LARGE,
    storage_errors.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    storage_errors.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    storage_errors.InvalidProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    storage_errors.InvalidProducerIdMapping: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    storage_errors.TransactionCoordinatorFenced: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    storage_errors.InvalidTxnState: ErrorCode.INVALID_TXN_STATE,
    storage_errors.CorruptFile: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.DiskFull: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.LogDirFailure: ErrorCode.KAFKA_STORAGE_ERROR,
}


def code_of(error: Exception) -> ErrorCode:
    """The code that a client sees for `error`; UNKNOWN_SERVER_ERROR for what nobody foresaw."""
    if isinstance(error, KafkaError):
        return error.code
    for cause in type(error).__mro__:
        code = _CODES.get(cause)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR


@contextmanager
def store_failures_told(expired: ErrorCode = ErrorCode.REQUEST_TIMED_OUT) -> Iterator[None]:
    """A lost answer of the metadata store, or a lost session, as a KafkaError after which clients try again.

    The store may have done what it was asked. `expired` is the code for the end of this broker's session,
    with which a controller's reign is over, too.
    """
    try:
        yield
    except (SessionExpired, ConnectionLost) as error:
        code = expired if isinstance(error, SessionExpired) else ErrorCode.REQUEST_TIMED_OUT
        raise KafkaError(code, f"The metadata store did not answer: {error}") from error
