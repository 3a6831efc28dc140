"""Partitions in memory with gaps, codecs, transactions and markers, and the records that a search of them
must find.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from kafka_compat.search.matching import Match
from kafka_compat.search.scan import Scanned, scanned
from kafka_compat.search.search import Bounds, Read, Search
from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.records.kinds import CompressionType, ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, Record, build_batch, build_marker

PRODUCER = 7


class Stored(NamedTuple):
    """A record that a search may find."""

    partition: int
    offset: int
    record: Record


class FakePartition:
    """A sequence of random batches."""

    def __init__(self, number: int, seed: int, *, count: int, sorted_times: bool = True) -> None:
        """Create about `count` records."""
        chance = random.Random(f"{number} {seed}")
        self.number = number
        self.batches: list[bytes] = []
        self.aborted: list[tuple[int, int]] = []
        self.records: list[Stored] = []
        """The committed records."""
        self.end = self.start = chance.choice((0, 0, 5, 1000))
        time_ms = 1_000_000
        while len(self.records) < count:
            size = chance.choice((1, 1, 2, 5, 30))
            made = []
            for _ in range(size):
                time_ms += chance.randrange(0, 50) if sorted_times else chance.randrange(-200, 300)
                key = chance.choice((None, b"", b"red", b"blue", b"red blue"))
                value = chance.choice((None, b"x" * chance.randrange(100), b"needle", b"a needle in hay"))
                headers = [("h", chance.choice((None, b"1", b"2")))] if chance.random() < 0.3 else []
                made.append(Record(0, time_ms, key, value, headers))
            kind = chance.choice(("plain", "plain", "plain", "aborted", "committed", "gap"))
            codec = chance.choice(tuple(CompressionType))
            base_offset = self.end
            if kind == "gap":
                self.end += chance.randrange(1, 400)
                continue
            batch = build_batch(
                made,
                base_offset=base_offset,
                compression=codec,
                transactional=kind != "plain",
                producer_id=PRODUCER if kind != "plain" else -1,
                producer_epoch=0 if kind != "plain" else -1,
            )
            self.batches.append(batch)
            self.end += size
            if kind != "aborted":
                self.records += [
                    Stored(number, base_offset + delta, record) for delta, record in enumerate(made)
                ]
            else:
                self.aborted.append((PRODUCER, base_offset))
            if kind != "plain":
                ended = ControlRecordType.ABORT if kind == "aborted" else ControlRecordType.COMMIT
                marker = EndTransactionMarker(ended, 0)
                self.batches.append(
                    build_marker(
                        marker,
                        producer_id=PRODUCER,
                        producer_epoch=0,
                        timestamp=time_ms,
                        base_offset=self.end,
                    )
                )
                self.end += 1

    def read(self, read: Read, max_bytes: int) -> Scanned | None:
        """Read like a log: return at most `max_bytes`, but at least one batch."""
        content = b""
        for batch in self.batches:
            if read_header(batch).last_offset < read.offset:
                continue
            if content and len(content) + len(batch) > max_bytes:
                break
            content += batch
        aborted = [
            (producer, first)
            for producer, first in self.aborted
            if self._marker_after(first) >= read.offset and first < read.wanted.end
        ]
        return scanned(content, read.wanted, aborted) if content else None

    def _marker_after(self, offset: int) -> int:
        headers = [read_header(batch) for batch in self.batches]
        return next(each.base_offset for each in headers if each.is_control and each.base_offset > offset)


def serve(search: Search, partitions: Sequence[FakePartition], max_bytes: int) -> None:
    """Serve the reads of a search until it is done."""
    by_number = {each.number: each for each in partitions}
    while (read := search.next()) is not None:
        content = by_number[read.wanted.partition].read(read, max_bytes)
        if content is None:
            search.nothing(read)
        else:
            search.feed(read, content)


def pages(
    partitions: Sequence[FakePartition],
    match: Match,
    *,
    newest: bool,
    limit: int,
    bounds: Bounds,
    max_bytes: int,
) -> list[list[tuple[int, int]]]:
    """Return the (partition, offset) pairs found by each request, until the search is complete."""
    left = {each.number: (each.start, each.end) for each in partitions}
    total = sum(end - first for first, end in left.values())
    found: list[list[tuple[int, int]]] = []
    done = -1.0
    while left:
        search = Search(
            left, match, newest=newest, limit=limit, total=total, bounds=bounds, kept_bytes=1 << 20
        )
        serve(search, partitions, max_bytes)
        assert len(search.found) <= limit and not search.problems
        found.append([(each.partition, each.offset) for each in search.found])
        cursor = search.cursor
        left = {} if cursor is None else dict(cursor.left)
        now = 1.0 if cursor is None else cursor.done
        assert now > done or search.found, "a request made no progress"
        done = now
    return found


def expected(partitions: Sequence[FakePartition], match: Match) -> list[Stored]:
    """Return all matching records, by partition and offset."""
    fits = match.test()
    return [each for partition in partitions for each in partition.records if fits(each.record)]
