"""Load a shard of `__share_group_state`, and drop superseded records before decoding any of them.

A snapshot supersedes all earlier records of its share-partition. Updates are merged in order, so all of them
since the last snapshot are needed.
"""

from collections.abc import Iterator

from kafka_compat.coordinator_runtime.coordinator_log import NO_PRODUCER_ID, ReplayedBatch
from kafka_compat.coordinator_runtime.loader import LoadedRecord
from kafka_compat.share_coordinator.records import SNAPSHOT_TYPE

_TYPE_BYTES = 2


class ShareStateLoader:
    """A collector of the records that are not superseded. Pass all batches to `feed`; then read `records`."""

    def __init__(self) -> None:
        self.record_count = 0
        self._latest: dict[bytes, list[tuple[bytes, bytes, int]]] = {}
        """Maps each share-partition, encoded, to its last snapshot and the later updates: key, value, and the
        offset after the record, or a lower one if its batch contains several records.
        """

    def feed(self, batch: ReplayedBatch) -> None:
        offset = batch.base_offset + 1
        for key, value in batch.records:
            share_partition = bytes(key[_TYPE_BYTES:])
            if int.from_bytes(key[:_TYPE_BYTES], "big") != SNAPSHOT_TYPE:
                if value is not None:
                    self._latest.setdefault(share_partition, []).append((key, value, offset))
            elif value is None:
                self._latest.pop(share_partition, None)
            else:
                self._latest[share_partition] = [(key, value, offset)]
        self.record_count += len(batch.records)

    def records(self) -> Iterator[LoadedRecord]:
        for latest in self._latest.values():
            for key, value, offset in latest:
                yield key, value, offset, NO_PRODUCER_ID
