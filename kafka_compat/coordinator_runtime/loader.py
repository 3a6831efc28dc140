"""Load a shard, and drop superseded records of its log before decoding any of them.

A log that is not compacted yet contains many records per key. All but the last are superseded and skipped.
The loaded state is the same as after replaying every record in order (see the rules in `runtime.py`).
"""

from collections.abc import Iterator
from typing import Protocol

from kafka_compat.coordinator_runtime.coordinator_log import NO_PRODUCER_ID, ReplayedBatch

LoadedRecord = tuple[bytes, bytes, int, int]
"""A record that is not superseded: key, value, the offset after its batch, and the producer ID, which is -1
unless the record belongs to an open transaction.
"""


_Latest = dict[bytes, tuple[bytes, int]]
"""Maps each key to its last value and the offset after its batch. Deleted keys are absent."""


class RecordLoader(Protocol):
    """A collector of the records that are not superseded. All batches are passed to `feed`, before `records`
    returns the records in the order in which they are replayed.
    """

    record_count: int
    """Number of records in all batches."""

    def feed(self, batch: ReplayedBatch) -> None: ...

    def records(self) -> Iterator[LoadedRecord]: ...


class Loader:
    """A collector of the records that are not superseded. Pass all batches to `feed`; then read `records`."""

    def __init__(self) -> None:
        self.record_count = 0
        self._latest: _Latest = {}
        self._open: dict[int, _Latest] = {}

    def feed(self, batch: ReplayedBatch) -> None:
        """Add a batch. Records of a transaction take effect when its commit marker is read, but keep their
        position in the log: a later record outside transactions supersedes them.
        """
        if batch.committed is not None:
            ended = self._open.pop(batch.producer_id, None)
            if ended and batch.committed:
                self._commit(ended)
            return
        into = self._latest
        if batch.producer_id != NO_PRODUCER_ID:
            into = self._open.setdefault(batch.producer_id, {})
        end_offset = batch.end_offset
        for key, value in batch.records:
            if value is not None:
                into[key] = (value, end_offset)
            else:
                self._delete(key, into)
        self.record_count += len(batch.records)

    def _commit(self, ended: _Latest) -> None:
        for key, latest in ended.items():
            known = self._latest.get(key)
            if known is None or known[1] < latest[1]:
                self._latest[key] = latest

    def _delete(self, key: bytes, latest: _Latest) -> None:
        """Delete a key. A deletion outside transactions also removes the key from all open transactions."""
        latest.pop(key, None)
        if latest is self._latest:
            for pending in self._open.values():
                pending.pop(key, None)

    def records(self) -> Iterator[LoadedRecord]:
        for key, (value, log_offset) in self._latest.items():
            yield key, value, log_offset, NO_PRODUCER_ID
        for producer_id, pending in self._open.items():
            for key, (value, log_offset) in pending.items():
                yield key, value, log_offset, producer_id
