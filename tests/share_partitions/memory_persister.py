"""The stored state of share-partitions in memory, with errors on demand."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from kafka_compat.errors import ErrorCode
from kafka_compat.share_coordinator.persister import (
    UNKNOWN_OFFSET,
    SharePartitionKey,
    StateBatch,
    StateSummary,
    StoredState,
)


class Stored:
    """The state of one share-partition, by offset."""

    def __init__(self, state_epoch: int, start_offset: int) -> None:
        self.state_epoch = state_epoch
        self.leader_epoch = 0
        self.start_offset = start_offset
        self.complete_count = 0
        self.records: dict[int, tuple[int, int]] = {}
        """Delivery state and delivery count of each offset."""

    def batches(self) -> tuple[StateBatch, ...]:
        """Return the states, with equal neighbors joined."""
        offsets = sorted(offset for offset in self.records if offset >= self.start_offset)
        starts = [
            offset
            for before, offset in pairwise([-2, *offsets])
            if before + 1 != offset or self.records[before] != self.records[offset]
        ]
        found = []
        for first in starts:
            last = first
            while self.records.get(last + 1) == self.records[first]:
                last += 1
            found.append(StateBatch(first, last, *self.records[first]))
        return tuple(found)


class MemoryPersister:
    """A persister that responds at once, or, with `is_held`, when `release` is called."""

    def __init__(self, *, initializes: bool = False) -> None:
        """With `initializes`, reading a state that is missing creates it."""
        self.stored: dict[SharePartitionKey, Stored] = {}
        self.is_held = False
        self.read_error = ErrorCode.NONE
        self.write_error = ErrorCode.NONE
        self._initializes = initializes
        self._held: list[Callable[[], None]] = []

    def release(self) -> None:
        """Respond to the held operations."""
        held, self._held = self._held, []
        for each in held:
            each()

    def _respond(self, respond: Callable[[], None]) -> None:
        if self.is_held:
            self._held.append(respond)
        else:
            respond()

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, done: Callable[[ErrorCode], None]
    ) -> None:
        self.stored[key] = Stored(state_epoch, start_offset)
        done(ErrorCode.NONE)

    def read(
        self,
        key: SharePartitionKey,
        leader_epoch: int,
        done: Callable[[ErrorCode, StoredState | None], None],
    ) -> None:
        def respond() -> None:
            if self._initializes:
                self.stored.setdefault(key, Stored(1, UNKNOWN_OFFSET))
            found = self.stored.get(key)
            if self.read_error != ErrorCode.NONE or found is None:
                done(self.read_error or ErrorCode.INVALID_REQUEST, None)
                return
            found.leader_epoch = leader_epoch
            done(ErrorCode.NONE, StoredState(found.state_epoch, found.start_offset, found.batches()))

        self._respond(respond)

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
        def respond() -> None:
            found = self.stored.get(key)
            if self.write_error != ErrorCode.NONE or found is None:
                done(self.write_error or ErrorCode.INVALID_REQUEST)
                return
            if state_epoch != found.state_epoch or leader_epoch < found.leader_epoch:
                done(ErrorCode.FENCED_STATE_EPOCH)
                return
            if start_offset != UNKNOWN_OFFSET:
                found.start_offset = start_offset
            found.complete_count = delivery_complete_count
            for batch in batches:
                for offset in range(batch.first_offset, batch.last_offset + 1):
                    found.records[offset] = (batch.delivery_state, batch.delivery_count)
            for offset in [each for each in found.records if each < found.start_offset]:
                del found.records[offset]
            done(ErrorCode.NONE)

        self._respond(respond)

    def delete(self, key: SharePartitionKey, done: Callable[[ErrorCode], None]) -> None:
        self.stored.pop(key, None)
        done(ErrorCode.NONE)

    def read_summary(
        self, key: SharePartitionKey, done: Callable[[ErrorCode, StateSummary | None], None]
    ) -> None:
        found = self.stored.get(key)
        if found is None:
            done(ErrorCode.INVALID_REQUEST, None)
        else:
            done(
                ErrorCode.NONE,
                StateSummary(found.state_epoch, found.leader_epoch, found.start_offset, found.complete_count),
            )
