"""Interface of the stored state of share-partitions (KIP-932). Apache Kafka calls it a persister.

A share-partition is a partition as one share group consumes it. Its leader reads and writes the delivery
state of the records, and the group coordinator initializes and deletes it. The share coordinator of the
share-partition, which may be on another broker, stores it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kafka_compat.errors import ErrorCode

if TYPE_CHECKING:
    from uuid import UUID

UNKNOWN_OFFSET: Final = -1
"""The start offset of a share-partition whose first fetch has not yet determined it."""
UNKNOWN_COUNT: Final = -1


class SharePartitionKey(NamedTuple):
    group_id: str
    topic_id: "UUID"
    partition: int


class StateBatch(NamedTuple):
    """The state of the records from `first_offset` to `last_offset`. `delivery_state` is 0 (available),
    2 (acknowledged), 3 (archiving) or 4 (archived).
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class StoredState(NamedTuple):
    """The state of a share-partition, as its leader reads it."""

    state_epoch: int
    start_offset: int
    batches: tuple[StateBatch, ...]


class StateSummary(NamedTuple):
    """The progress of a share-partition. `delivery_complete_count` is the number of records at or after the
    start offset whose delivery is complete (KIP-1226), or UNKNOWN_COUNT.
    """

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


class Persister(Protocol):
    """Each method calls its callback exactly once, later or before it returns. Retriable errors, such as a
    share coordinator that moves, have been retried before.
    """

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        """Create the state of a share-partition, or replace the state of a lower epoch."""

    def read(
        self,
        key: SharePartitionKey,
        leader_epoch: int,
        done: Callable[[ErrorCode, StoredState | None], None],
    ) -> None:
        """Return the state to the leader. Writes of former leaders are rejected from then on."""

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Store changes. `start_offset` is UNKNOWN_OFFSET if it has not changed."""

    def delete(self, key: SharePartitionKey, done: Callable[[ErrorCode], None]) -> None:
        """Delete the state of a share-partition. A missing state is no error."""

    def read_summary(
        self, key: SharePartitionKey, done: Callable[[ErrorCode, StateSummary | None], None]
    ) -> None:
        """Return the progress of a share-partition."""
