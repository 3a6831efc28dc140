"""Exceptions of the log store, one class per cause.

One table in the broker maps each class to a Kafka error code. The name in a docstring is the error code
that Apache Kafka returns to clients for that cause.
"""

from collections.abc import Sequence


class StorageError(Exception):
    """Base class of the log store's errors."""


class CorruptRecord(StorageError):
    """A batch with a wrong CRC, an unknown magic number or corrupt compressed data (CORRUPT_MESSAGE)."""


class InvalidRecord(StorageError):
    """A batch with invalid records or header fields (INVALID_RECORD).

    `record_errors` lists the invalid records as (index in the batch, message). Produce v8 and later return
    this list to the client (KIP-467).
    """

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.record_errors = list(record_errors)


class NotOneBatch(InvalidRecord):
    """Records that are not exactly one batch of format 2 (INVALID_RECORD)."""


class MisplacedBatch(InvalidRecord):
    """A client's batch with control records or invalid offsets, count or sequence (INVALID_RECORD)."""


class InvalidTimestamp(StorageError):
    """A timestamp beyond message.timestamp.{before,after}.max.ms, or of a wrong type (INVALID_TIMESTAMP)."""

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.record_errors = list(record_errors)


class UnsupportedCompressionType(StorageError):
    """A codec that the request version does not support (UNSUPPORTED_COMPRESSION_TYPE)."""


class MessageTooLarge(StorageError):
    """A batch that exceeds max.message.bytes, or the limit for decompressed data (MESSAGE_TOO_LARGE)."""


class RecordListTooLarge(StorageError):
    """A batch that does not fit into one segment (RECORD_LIST_TOO_LARGE)."""


class TakesLong(Exception):
    """Raised if an operation would block the event loop for too long. The caller retries it in a thread."""


class OffsetOutOfRange(StorageError):
    """An offset below the log start or above the log end (OFFSET_OUT_OF_RANGE)."""


class ProducerError(StorageError):
    """Base class of all errors in producer state checks."""


class OutOfOrderSequence(ProducerError):
    """A gap in the sequence numbers of an idempotent producer (OUT_OF_ORDER_SEQUENCE_NUMBER)."""


class EarlierSequence(OutOfOrderSequence):
    """A batch whose sequences come before those of the remembered batches. The log may contain it."""

    def __init__(self, text: str, remembered_offset: int) -> None:
        """`remembered_offset` is the first offset of the remembered batches."""
        super().__init__(text)
        self.remembered_offset = remembered_offset


class InvalidProducerEpoch(ProducerError):
    """A batch from a producer that was fenced by a newer producer epoch (INVALID_PRODUCER_EPOCH)."""


class InvalidProducerIdMapping(ProducerError):
    """A producer ID that does not belong to the transactional ID (INVALID_PRODUCER_ID_MAPPING)."""


class TransactionCoordinatorFenced(ProducerError):
    """A transaction marker from a coordinator that has been replaced (TRANSACTION_COORDINATOR_FENCED)."""


class InvalidTxnState(ProducerError):
    """A non-transactional write by a producer with an open transaction (INVALID_TXN_STATE)."""


class CorruptFile(StorageError):
    """An invalid snapshot, index or checkpoint file. The log is opened without the file, which is rebuilt."""


class LogDirFailure(StorageError):
    """A failed log directory, whose logs are offline (KAFKA_STORAGE_ERROR)."""


class RefusedForNow(StorageError):
    """Base class of errors from operations that had no effect and may be retried (KAFKA_STORAGE_ERROR)."""


class DiskFull(RefusedForNow):
    """A write that failed because the disk is full. Apache Kafka takes the log directory offline instead."""


class OutOfResources(RefusedForNow):
    """A shortage of file descriptors or memory in the process. It does not indicate a disk failure."""


class NotSettled(RefusedForNow):
    """A truncation of the log, or a deletion of a log with the same name, that is not durable yet."""


class DirectoryExists(StorageError):
    """A new partition directory whose path already exists (KAFKA_STORAGE_ERROR)."""


class LogDirInUse(StorageError):
    """A log directory that is locked by another broker."""


class InconsistentMetaProperties(StorageError):
    """A log directory with the ID of a different broker or cluster, or with an invalid meta.properties."""
