"""The status of a transactional ID, and the outputs of its state machine, as plain values."""

from enum import StrEnum
from typing import Final, NamedTuple

from kafka_compat.errors import ErrorCode

TopicPartition = tuple[str, int]

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
EPOCH_MAX: Final = 32_767
VERSION_WITH_EPOCH_BUMP: Final = 2
"""The first transaction.version in which every transaction has its own epoch (KIP-890 part 2)."""
NO_TIME: Final = -1


class TransactionState(StrEnum):
    """States of a transactional ID. The values are their names in DescribeTransactions."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


class ProducerIdentity(NamedTuple):
    producer_id: int
    producer_epoch: int


class Status(NamedTuple):
    """The stored status of a transactional ID. `start_ms` (-1 before the first transaction) and
    `last_update_ms` are times of day.

    `previous_producer_id` and `next_producer_id` (-1: none) are the producer IDs before and after the
    transaction that is ending. `client_version` is the transaction.version of the last transaction's client,
    or of the coordinator if the coordinator aborted that transaction.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    start_ms: int
    last_update_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0

    @property
    def identity(self) -> ProducerIdentity:
        return ProducerIdentity(self.producer_id, self.producer_epoch)


class StatusRecord(NamedTuple):
    """A record in `__transaction_state`. The value None deletes the ID."""

    transactional_id: str
    value: Status | None

    @property
    def machine_key(self) -> str:
        return self.transactional_id


class IdentityResult(NamedTuple):
    """The response to InitProducerId, and to EndTxn of transaction.version 2: the producer's next identity,
    or an error without an identity.
    """

    error: ErrorCode
    identity: ProducerIdentity = ProducerIdentity(NO_PRODUCER_ID, NO_EPOCH)


Result = IdentityResult | ErrorCode


class Markers(NamedTuple):
    """The markers at the end of a transaction, one for each of its partitions. With `bumped_epoch`, the
    transaction's records have an older epoch than its markers (transaction.version 2).
    """

    identity: ProducerIdentity
    committed: bool
    partitions: frozenset[TopicPartition]
    bumped_epoch: bool


class RetryCompletion(NamedTuple):
    """The end of the transaction could not be stored. The caller must call `markers_written` again later."""
