"""Interface of a coordinator's log. Each shard, a partition of `__consumer_offsets` or `__transaction_state`,
has its own log.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from kafka_compat.errors import ErrorCode

NO_PRODUCER_ID: Final = -1
"""The producer ID of records outside transactions."""


class ReplayedBatch(NamedTuple):
    """One batch of a shard's log, or a part of a large batch.

    `end_offset` is the offset after the last record of the batch. `producer_id` is -1 outside transactions.
    `committed` is None, except for a transaction marker, which has no records. `base_offset` is the offset of
    the first record of the batch.
    """

    end_offset: int
    producer_id: int
    committed: bool | None
    records: list[tuple[bytes, bytes | None]]
    base_offset: int = -1


class TransactionalProducer(NamedTuple):
    """The producer for transactional records. The records take effect when its transaction commits."""

    producer_id: int
    producer_epoch: int


class CoordinatorLog(Protocol):
    @property
    def shard_count(self) -> int:
        """The number of partitions of the topic, or 0 if the topic does not exist."""

    def append(
        self,
        shard: int,
        records: Sequence[tuple[bytes, bytes | None]],
        producer: TransactionalProducer | None = None,
        *,
        commits: bool = False,
    ) -> int:
        """Append (key, value) records as one batch. Return the offset after it. Raises KafkaError on failure.

        `commits` is true if the records are committed consumer offsets.
        """

    def when_committed(self, shard: int, offset: int, callback: Callable[[ErrorCode], None]) -> None:
        """Call `callback` with NONE once all records below `offset` are committed, or with an error code.
        After some error codes, the records are nevertheless committed (see `is_committed`).

        The callback is called exactly once, immediately if there is nothing to wait for. Callbacks for
        smaller offsets are called before those for larger offsets.
        """

    def replay(self, shard: int) -> Iterator[ReplayedBatch]:
        """Read the whole log, oldest first. Raises KafkaError if it cannot be read."""


def is_committed(error: ErrorCode) -> bool:
    """Return whether an error code from `when_committed` means that the records are committed. With
    NOT_ENOUGH_REPLICAS_AFTER_APPEND, they are committed on fewer replicas than min.insync.replicas.
    """
    return error is ErrorCode.NONE or error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


STORE_ERRORS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""Maps error codes of the log to error codes for clients. Each kind of coordinator adds its own."""
