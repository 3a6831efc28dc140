"""The record batches that a share fetch has read from a log."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from kafka_compat.share_partitions.acquisition import OffsetRange
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.records import read_marker
from kafka_compat.storage.segments.file_slice import FileSlice
from kafka_compat.storage.segments.scan import scan_headers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_compat.storage.segments.txn_index import AbortedTransaction

_CHUNK_BYTES: Final = 16 * 1024


class FetchedRecords:
    """The offsets of the batches in a slice of a log. Their records stay in the file."""

    __slots__ = ("_records", "_starts", "aborted", "batches", "is_single")

    def __init__(
        self, records: FileSlice, through_offset: int, aborted: Sequence[AbortedTransaction] = ()
    ) -> None:
        """Read the headers of the batches, up to the batch that contains `through_offset`. `aborted` are the
        aborted transactions that have records in the slice. Raises StorageError or OSError.
        """
        self._records = records
        self._starts: list[int] = []
        """Positions in the file where the batches begin, and where the last one ends."""
        self.batches: list[OffsetRange] = []
        self.aborted: list[OffsetRange] = []
        """The batches of aborted transactions."""
        self.is_single = True
        """Whether the slice contains only one complete batch."""
        begun = [(each.first_offset, each.producer_id) for each in aborted]
        heapq.heapify(begun)
        open_ids: set[int] = set()
        end = records.position + records.size_bytes
        for scanned in scan_headers(records.file, records.position, end, _CHUNK_BYTES):
            header = scanned.header
            if self.batches:
                self.is_single = False
                if self.batches[-1].last >= through_offset:
                    break
            self._starts.append(scanned.position)
            batch = OffsetRange(header.base_offset, header.last_offset)
            self.batches.append(batch)
            if aborted and header.has_producer_id:
                while begun and begun[0][0] <= batch.last:
                    open_ids.add(heapq.heappop(begun)[1])
                if header.is_control:
                    data = records.file.pread(header.size_bytes, scanned.position)
                    marker = read_marker(data)
                    if marker is not None and marker.type is ControlRecordType.ABORT:
                        open_ids.discard(header.producer_id)
                elif header.is_transactional and header.producer_id in open_ids:
                    self.aborted.append(batch)
            end_position = scanned.position + header.size_bytes
        if self._starts:
            self._starts.append(end_position)

    def part(self, first: int, last: int) -> FileSlice:
        """Return the batches that contain offsets of [first, last]."""
        begin = max(_index(self.batches, first), 0)
        end = max(_index(self.batches, last), begin)
        start = self._starts[begin]
        return FileSlice(self._records.file, start, self._starts[end + 1] - start)


def _index(batches: Sequence[OffsetRange], offset: int) -> int:
    """Return the index of the last batch that begins at or before `offset`, or -1."""
    return bisect_right(batches, offset, key=lambda batch: batch.first) - 1
