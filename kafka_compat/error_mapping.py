"""The one place where causes become Kafka's error codes."""

from __future__ import annotations

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
