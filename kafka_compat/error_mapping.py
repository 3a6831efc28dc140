"""Mapping of exceptions to Kafka's error codes."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.store.embedded import StoreFailed
from kafka_compat.coordination.store.journal import CorruptJournal
from kafka_compat.coordination.store.metadata_store import (
    ConnectionLost,
    NotAllowed,
    SessionExpired,
    TransactionFailed,
)
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.storage import errors as storage_errors

log = logging.getLogger(__name__)

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
    storage_errors.RefusedForNow: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.DirectoryExists: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.LogDirFailure: ErrorCode.KAFKA_STORAGE_ERROR,
    ConnectionLost: ErrorCode.REQUEST_TIMED_OUT,
    SessionExpired: ErrorCode.REQUEST_TIMED_OUT,
    StoreFailed: ErrorCode.KAFKA_STORAGE_ERROR,
    CorruptJournal: ErrorCode.KAFKA_STORAGE_ERROR,
    TimeoutError: ErrorCode.REQUEST_TIMED_OUT,
    ConnectionError: ErrorCode.NETWORK_EXCEPTION,
    OSError: ErrorCode.KAFKA_STORAGE_ERROR,
}


MESSAGE_LENGTH_MAX: Final = 8_000
"""Maximum number of characters in an error message. Each takes at most 4 bytes."""


def code_of(error: Exception) -> ErrorCode:
    """Return the error code for an exception, or UNKNOWN_SERVER_ERROR if the exception is unexpected."""
    if isinstance(error, KafkaError):
        return error.code
    for cause in type(error).__mro__:
        code = _CODES.get(cause)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR


def readable(message: str | None) -> str | None:
    """Shorten an error message that quotes long names, because clients cannot read strings of more than
    32,767 bytes.
    """
    if message is None or len(message) <= MESSAGE_LENGTH_MAX:
        return message
    return message[: MESSAGE_LENGTH_MAX - 1] + "…"


def as_kafka_error(error: Exception, what: str) -> KafkaError:
    """Convert an exception to an error for the client, with a message if the client may see it. The client
    gets no details of unexpected exceptions, or of metadata store nodes that this broker must not change;
    such errors are logged under `what`, the name of the failed operation.

    Returns a new exception, because the traceback of `error` refers to the frames of its handlers. If one of
    these frames kept `error`, only the garbage collector could free both.
    """
    if isinstance(error, KafkaError):
        return KafkaError(error.code, error.message)
    code = code_of(error)
    cause = error.cause if isinstance(error, TransactionFailed) else error
    if isinstance(cause, NotAllowed):
        log.error("%s failed: %s", what, cause)
        return KafkaError(code)
    if code is ErrorCode.UNKNOWN_SERVER_ERROR and not isinstance(error, MalformedNode):
        log.error("%s failed", what, exc_info=error)
        return KafkaError(code)
    log.warning("%s failed: %s", what, error)
    return KafkaError(code, str(error))


def config_message(error: KafkaError) -> str | None:
    """Return the error's message. Without one, return None for UNKNOWN_SERVER_ERROR, otherwise ""."""
    return error.message or (None if error.code is ErrorCode.UNKNOWN_SERVER_ERROR else "")


@contextmanager
def store_errors_mapped(expired: ErrorCode = ErrorCode.REQUEST_TIMED_OUT) -> Iterator[None]:
    """Convert errors of the metadata store to KafkaError. A lost response or session becomes a retriable
    error. The message for a malformed node contains its path.

    The store may have executed the request. `expired` is the error code if this broker's session has expired,
    which also ends a controller's term.
    """
    try:
        yield
    except (SessionExpired, ConnectionLost) as error:
        code = expired if isinstance(error, SessionExpired) else ErrorCode.REQUEST_TIMED_OUT
        raise KafkaError(code, f"The metadata store did not respond: {error}") from error
    except MalformedNode as malformed:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(malformed)) from malformed
