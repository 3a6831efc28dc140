"""Find the matching records in a chunk of a partition's bytes, within bounds. No I/O.

Scans run in another thread, since decompression and iteration are slow. Transaction markers are skipped.
With read_committed, records of aborted transactions are skipped as well.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from kafka_compat.client.consumed import AbortedTransactions, whole_batches
from kafka_compat.protocol.buffers import Buffer
from kafka_compat.search.matching import Match
from kafka_compat.storage.errors import CorruptRecord, StorageError
from kafka_compat.storage.records.batch import BatchHeader, crc_ok
from kafka_compat.storage.records.legacy import records_of
from kafka_compat.storage.records.records import Header, Record, iter_body, records_body

WHOLE: Final = 1 << 62
"""Value of `kept_bytes` that keeps records entirely."""


RECORDS_AT_ONCE: Final = 256


class Found(NamedTuple):
    """A record, and the header of its batch. The key, the value and header values may be truncated.
    `key_bytes` and `value_bytes` are the sizes before truncation (-1 for null).
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]
    key_bytes: int
    value_bytes: int
    batch: BatchHeader
    key_hash: int
    """Hash of the whole key, to compare the keys of records in this process."""


class Wanted(NamedTuple):
    """A request to search a chunk of a partition for at most `limit` records with offsets in [first, end).
    With `newest`, the search starts at the end. Keys and values are truncated to `kept_bytes`.
    """

    partition: int
    first: int
    end: int
    limit: int
    newest: bool
    match: Match
    kept_bytes: int


class Problem(NamedTuple):
    """A batch or a partition that was skipped, because it could not be read."""

    partition: int
    offset: int
    reason: str


class Scanned(NamedTuple):
    """The records found by a scan, ordered by offset. All offsets before `next_offset` were scanned."""

    records: Sequence[Found]
    first: int | None
    """Offset of the first batch or, with `newest`, of the first record within the limit. None if no batch was
    in range.
    """
    next_offset: int
    was_cut: bool
    """Whether more records than the limit matched."""
    edge_ms: int
    """Timestamp of the last record scanned. Further records are probably not older (`newest`: not newer)."""
    batch_bytes: int
    """Size of the batches in bytes, uncompressed if they were decompressed."""
    record_count: int
    problems: Sequence[Problem]


def scanned(
    content: Buffer,
    wanted: Wanted,
    aborted: Iterable[tuple[int, int]] | None,
    breathe: Callable[[], object] = lambda: None,
) -> Scanned:
    """Scan the batches of `content`, whose last batch may be incomplete. `aborted` contains (producer ID,
    first offset) of the transactions whose records are skipped. If it is None, all records are kept.
    `breathe` is called after every RECORDS_AT_ONCE records.
    """
    scan = _Scan(wanted, breathe)
    transactions = AbortedTransactions(aborted)
    for header, batch in whole_batches(content):
        if header.base_offset >= wanted.end and header.magic == 2:
            scan.next_offset = wanted.end
            break
        try:
            is_skipped = transactions.skip(header, batch)
        except StorageError:
            # Skip corrupt markers too: they contain no records.
            is_skipped = True
        if is_skipped:
            scan.pass_over(header)
        else:
            scan.look_into(header, batch)
            if scan.is_full:
                break
    return scan.result()


class _Scan:
    """One pass over a chunk of bytes."""

    def __init__(self, wanted: Wanted, breathe: Callable[[], object]) -> None:
        self._wanted = wanted
        self._breathe = breathe
        self._fits = None if wanted.match.is_all else wanted.match.test()
        self._rare = wanted.match.rare()
        self._found: deque[Found] = deque()
        self._first: int | None = None
        """Offset of the first batch, or of the first record within the limit."""
        self.next_offset = wanted.first
        self._edge_ms = -1
        self._bytes = 0
        self._count = 0
        self._problems: list[Problem] = []
        self.is_full = False
        """Whether another record would exceed the limit."""
        self._was_cut = False

    def pass_over(self, header: BatchHeader, size_bytes: int = 0) -> None:
        self._begin(header)
        self._bytes += size_bytes or header.size_bytes
        self._count += header.record_count
        self.next_offset = max(self.next_offset, min(header.next_offset, self._wanted.end))

    def _begin(self, header: BatchHeader) -> None:
        if self._first is None:
            self._first = header.base_offset
            if self._wanted.newest:
                self._edge_ms = header.max_timestamp
        if not self._wanted.newest:
            self._edge_ms = header.max_timestamp

    def look_into(self, header: BatchHeader, batch: memoryview) -> None:
        match = self._wanted.match
        if header.magic == 2 and match.from_ms is not None and header.max_timestamp < match.from_ms:
            self.pass_over(header)
            return
        try:
            if header.magic == 2:
                if not crc_ok(batch, 0, header):
                    raise CorruptRecord("its CRC is wrong")
                body = records_body(batch, header)
                if any(each not in body for each in self._rare):
                    self.pass_over(header, len(body))
                    return
                records: Iterable[Record] = iter_body(header, body)
                size_bytes = len(body)
            else:
                records, size_bytes = list(records_of(batch)), len(batch)
                if records:
                    header = header.replace(base_offset=records[0].offset, last_offset_delta=0)
                    header = header.replace(last_offset_delta=records[-1].offset - header.base_offset)
            self._begin(header)
            self._bytes += size_bytes
            self._gather(header, records)
        except (StorageError, ValueError) as error:
            self._problems.append(Problem(self._wanted.partition, header.base_offset, str(error)))
            self._begin(header)
            self.next_offset = max(self.next_offset, min(header.next_offset, self._wanted.end))

    def _gather(self, header: BatchHeader, records: Iterable[Record]) -> None:
        wanted, fits, found = self._wanted, self._fits, self._found
        for record in records:
            self._count += 1
            if not self._count % RECORDS_AT_ONCE:
                self._breathe()
            offset = record.offset
            if offset < wanted.first:
                continue
            if offset >= wanted.end:
                break
            if fits is not None and not fits(record):
                continue
            found.append(_kept(wanted, header, record))
            if len(found) > wanted.limit:
                self._was_cut = True
                if wanted.newest:
                    found.popleft()
                    self._first = found[0].offset
                    self._edge_ms = found[0].timestamp_ms
                else:
                    over = found.pop()
                    self.next_offset, self._edge_ms = over.offset, over.timestamp_ms
                    self.is_full = True
                    return
        self.next_offset = max(self.next_offset, min(header.next_offset, wanted.end))

    def result(self) -> Scanned:
        wanted = self._wanted
        first = None if self._first is None else max(wanted.first, self._first)
        return Scanned(
            list(self._found),
            first,
            self.next_offset,
            self._was_cut,
            self._edge_ms,
            self._bytes,
            self._count,
            self._problems,
        )


def _kept(wanted: Wanted, header: BatchHeader, record: Record) -> Found:
    key, value, least = record.key, record.value, wanted.kept_bytes
    return Found(
        wanted.partition,
        record.offset,
        record.timestamp,
        key if key is None else key[:least],
        value if value is None else value[:least],
        [(name, content and content[:least]) for name, content in record.headers],
        -1 if key is None else len(key),
        -1 if value is None else len(value),
        header,
        hash(key),
    )
