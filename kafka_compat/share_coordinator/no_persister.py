"""The persister of a broker that cannot reach a share coordinator: all calls fail."""

from collections.abc import Callable, Sequence

from kafka_compat.errors import ErrorCode
from kafka_compat.share_coordinator.persister import (
    SharePartitionKey,
    StateBatch,
    StateSummary,
    StoredState,
)

_ERROR = ErrorCode.COORDINATOR_NOT_AVAILABLE


class NoPersister:
    """A `Persister` without a share coordinator."""

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        done(_ERROR)

    def read(
        self,
        key: SharePartitionKey,
        leader_epoch: int,
        done: Callable[[ErrorCode, StoredState | None], None],
    ) -> None:
        done(_ERROR, None)

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
        done(_ERROR)

    def delete(self, key: SharePartitionKey, done: Callable[[ErrorCode], None]) -> None:
        done(_ERROR)

    def read_summary(
        self, key: SharePartitionKey, done: Callable[[ErrorCode, StateSummary | None], None]
    ) -> None:
        done(_ERROR, None)
