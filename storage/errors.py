"""Exceptions of the log store, one class per cause.

The broker maps each class to one Kafka error code in one place; the number in each docstring is the code that
Apache Kafka returns to clients for that cause.
"""

from __future__ import annotations

from collections.abc import Sequence


class StorageError(Exception):
    """Root of every error that this package raises on purpose."""


class CorruptRecord(StorageError):
    """Bytes that no producer wrote: bad CRC, unknown magic, broken compressed data. Kafka code 2."""


class InvalidRecord(StorageError):
    """A well-formed batch whose content breaks a rule. Kafka code 87.

    `record_errors` names the records at fault as (index in the batch, message); Produce v8 and later carry
    them to the client (KIP-467).
    """

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.record_errors = list(record_errors)


class MisplacedBatch(InvalidRecord):
    """A batch whose offsets, count or sequence cannot be, or that only a broker may write. Kafka code 87."""


class InvalidTimestamp(StorageError):
    """A timestamp outside message.timestamp.{before,after}.max.ms, or of a forbidden type. Kafka code 32."""

    def __init__(self, message: str, record_errors: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.record_errors = list(record_errors)


class UnsupportedCompressionType(StorageError):
    """A codec that the version of the request does not know. Kafka code 76."""


class MessageTooLarge(StorageError):
    """A batch above max.message.bytes, or one that decompresses beyond every reason. Kafka code 10."""


class RecordListTooLarge(StorageError):
    """A batch that would not fit into one segment. Kafka code 18."""


class TakesLong(Exception):
    """Work that was to be quick is not. This is no failure: the caller has another thread do it."""


class OffsetOutOfRange(StorageError):
    """An offset below the log start or above the log end. Kafka code 1."""


class ProducerError(StorageError):
    """Root of what the producer state refuses."""


class OutOfOrderSequence(ProducerError):
    """A gap in the sequence numbers of an idempotent producer. Kafka code 45."""


class InvalidProducerEpoch(ProducerError):
    """A batch from a producer that a newer one has fenced. Kafka code 47."""


class InvalidProducerIdMapping(ProducerError):
    """A producer id that does not belong to the transactional id. Kafka code 49."""


class TransactionCoordinatorFenced(ProducerError):
    """A transaction marker from a coordinator that has been replaced. Kafka code 52."""


class InvalidTxnState(ProducerError):
    """A transactional write that the state of its transaction forbids. Kafka code 48."""


class CorruptFile(StorageError):
    """A snapshot, index or checkpoint whose content cannot be believed; the log is rebuilt without it."""


class LogDirFailure(StorageError):
    """A disk that failed: its logs are offline. Kafka code 56."""


class RefusedForNow(StorageError):
    """Root of what was refused without a change, and may be tried again. Kafka code 56, upon which clients
    try again.
    """


class DiskFull(RefusedForNow):
    """No space is left for what was to be written. Genuine Kafka takes the whole directory offline."""


class OutOfResources(RefusedForNow):
    """The process has no descriptor or memory left, which says nothing about the disk."""


class NotSettled(RefusedForNow):
    """What was decided before about this log is not durable yet: its truncation, or the deletion of another
    of its name.
    """


class DirectoryExists(StorageError):
    """Something that is no log has the name of a log's directory. Kafka code 56."""


class LogDirInUse(StorageError):
    """A log directory that another broker holds locked."""


class InconsistentMetaProperties(StorageError):
    """A log directory that belongs to another broker id or cluster."""
