"""Commits of one group's offsets: the checks, the records, and the responses when these are committed."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kafka_compat.coordinator_runtime.coordinator_log import STORE_ERRORS, TransactionalProducer
from kafka_compat.coordinator_runtime.machine import Now, Outbox, Waiter, Write
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.records import OffsetRecord, Record
from kafka_compat.groups.requests import (
    Commit,
    EncodedRecord,
    OffsetAndMetadata,
    PartitionErrors,
    TopicPartition,
)
from kafka_compat.groups.typed_group import TypedGroup

_STORE_ERRORS: Final = STORE_ERRORS | {
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
"""Maps error codes of a failed append to error codes for an offset commit."""


class OffsetsStored(NamedTuple):
    """A commit whose records are being written. `partitions` are the partitions of these records, and
    `errors` maps rejected partitions to error codes.
    """

    waiter: Waiter
    partitions: tuple[TopicPartition, ...]
    errors: PartitionErrors


class Commits:
    """The commits of one group. `metadata_max_bytes` limits the metadata (offset.metadata.max.bytes)."""

    __slots__ = ("_counts", "_group_id", "_metadata_max_bytes", "_outbox")

    def __init__(self, group_id: str, metadata_max_bytes: int, outbox: Outbox, counts: GroupCounts) -> None:
        self._group_id = group_id
        self._metadata_max_bytes = metadata_max_bytes
        self._outbox = outbox
        self._counts = counts

    def commit(self, group: TypedGroup, request: Commit, waiter: Waiter, now: Now) -> None:
        """Process an OffsetCommit or TxnOffsetCommit request. `group` decides whether it is accepted."""
        most = self._metadata_max_bytes
        fitting: dict[TopicPartition, OffsetAndMetadata] = {}
        errors: PartitionErrors = {}
        for partition, value in request.offsets.items():
            if java_length(value.metadata) <= most:
                fitting[partition] = value
            else:
                errors[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE
        error = group.commit_error(request, fitting, now)
        if error:
            self._outbox.respond(waiter, dict.fromkeys(request.offsets, error))
            return
        if not fitting:
            self._outbox.respond(waiter, errors)
            return
        self._counts.offset_commits += len(fitting)
        encoded = None if request.encoded is None else [request.encoded[each] for each in fitting]
        self._write(fitting, waiter, errors, request.producer, encoded)

    def put(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], waiter: Waiter) -> None:
        """Store offsets without any checks."""
        self._write(offsets, waiter, {}, None)

    def _write(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        waiter: Waiter,
        errors: PartitionErrors,
        producer: TransactionalProducer | None,
        encoded: Sequence[EncodedRecord] | None = None,
    ) -> None:
        records: list[Record] = [
            OffsetRecord(self._group_id, topic, partition, value)
            for (topic, partition), value in offsets.items()
        ]
        purpose = OffsetsStored(waiter, tuple(offsets), errors)
        self._outbox.write(Write(records, purpose, producer, commits=True, encoded=encoded))

    def written(self, purpose: OffsetsStored, error: ErrorCode) -> None:
        """Respond to a commit. If `error` is NONE, its records are committed."""
        error = _STORE_ERRORS.get(error, error)
        self._outbox.respond(purpose.waiter, purpose.errors | dict.fromkeys(purpose.partitions, error))


def java_length(text: str) -> int:
    """Return the length of `text` in UTF-16 code units, which offset.metadata.max.bytes limits."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
