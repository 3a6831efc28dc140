"""Execute one request of a search, from its query to its results."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from kafka_compat.long_work import LongWork
from kafka_compat.search.matching import Match
from kafka_compat.search.query import BadQuery, Query, chosen
from kafka_compat.search.scan import WHOLE, Found, Problem, Scanned, Wanted, scanned
from kafka_compat.search.search import Bounds, Search
from kafka_compat.search.source import Content, Source, Unreadable

KEPT_BYTES_MAX: Final = 16 * 1024
KEPT_BYTES_MIN: Final = 1024
"""Minimum number of bytes of each key, value and header that a list of records shows."""
_ALL_KEPT_BYTES: Final = 1024 * 1024
"""Approximate maximum of all bytes shown in a list, because a large response blocks the event loop."""


_BREATH_S: Final = 0.00005
"""Time in seconds in which another thread can wake up."""


class Outcome(NamedTuple):
    """The records found, and the cursor for the next request (None if the search is complete)."""

    records: Sequence[Found]
    problems: Sequence[Problem]
    cursor: str | None
    done: float
    """Progress of the whole search, from 0 to 1."""
    bytes_read: int
    records_seen: int


async def run_query(
    query: Query,
    source: Source,
    known: Iterable[int],
    long_work: LongWork,
    bounds: Bounds | None = None,
    accepts: Callable[[Found], bool] | None = None,
) -> Outcome:
    """Search a topic with the partitions `known`. `accepts` is a filter (see Search). Raises BadQuery if the
    query does not fit the topic.
    """
    partitions = chosen(query, known)
    left, problems = await _left(query, source, partitions)
    search = Search(
        left,
        query.match,
        newest=query.newest,
        limit=query.limit,
        total=None if query.cursor is None else query.cursor.total,
        bounds=bounds,
        kept_bytes=max(KEPT_BYTES_MIN, min(KEPT_BYTES_MAX, _ALL_KEPT_BYTES // query.limit)),
        accepts=accepts,
    )
    await carry_out(search, source, long_work)
    cursor = search.cursor
    return Outcome(
        search.found,
        [*problems, *search.problems],
        None if cursor is None else cursor.text(),
        1.0 if cursor is None else cursor.done,
        search.bytes_read,
        search.records_seen,
    )


async def one_record(source: Source, partition: int, offset: int, long_work: LongWork) -> Found | None:
    """Return the whole record at an offset, or None if it is missing. Raises Unreadable if reading fails."""
    search = Search({partition: (offset, offset + 1)}, Match(), newest=False, limit=1, kept_bytes=WHOLE)
    await carry_out(search, source, long_work)
    if search.problems:
        raise Unreadable(search.problems[0].reason)
    return search.found[0] if search.found else None


async def carry_out(search: Search, source: Source, long_work: LongWork) -> None:
    """Read from the source until the search is done."""
    while (read := search.next()) is not None:
        wanted = read.wanted
        try:
            content = await source.content(wanted.partition, read.offset, wanted.end, read.max_bytes)
            if content is None:
                search.nothing(read)
                continue
            found = await long_work.in_thread(partial(_scanned, content, wanted))
        except (Unreadable, OSError) as error:
            search.unreadable(read, str(error))
        else:
            search.feed(read, found)


def _scanned(content: Content, wanted: Wanted) -> Scanned:
    return scanned(content.load(), wanted, content.aborted, breathe)


def breathe() -> None:
    """Pause this thread, so that the event loop can run. Otherwise, the loop would wait for Python's switch
    interval (5 ms) after each system call, several times per client request.
    """
    time.sleep(_BREATH_S)


async def _left(
    query: Query, source: Source, partitions: Sequence[int]
) -> tuple[dict[int, tuple[int, int]], list[Problem]]:
    """Return the range to search in each partition, and the problems of partitions that cannot be read."""
    left: dict[int, tuple[int, int]] = {}
    problems: list[Problem] = []
    goes_on = query.cursor.left if query.cursor is not None else None
    if goes_on is not None and not goes_on.keys() <= set(partitions):
        raise BadQuery("cursor: it belongs to a search of other partitions")
    bounds = await source.bounds(partitions if goes_on is None else goes_on)
    for partition, found in bounds.items():
        if isinstance(found, Unreadable):
            problems.append(Problem(partition, -1, str(found)))
            continue
        try:
            first, end = found if goes_on is not None else await _asked(query, source, partition, found)
        except Unreadable as error:
            problems.append(Problem(partition, -1, str(error)))
            continue
        if goes_on is not None:
            first, end = max(first, goes_on[partition][0]), min(end, goes_on[partition][1])
        if first < end:
            left[partition] = (first, end)
    return left, problems


async def _asked(query: Query, source: Source, partition: int, bounds: tuple[int, int]) -> tuple[int, int]:
    first, end = bounds
    if query.first is not None:
        first = max(first, query.first)
    if query.end is not None:
        end = min(end, query.end)
    match = query.match
    if match.from_ms is not None and first < end:
        offset = await source.offset_at(partition, match.from_ms)
        first = end if offset is None else max(first, offset)
    if match.to_ms is not None and first < end:
        offset = await source.offset_at(partition, match.to_ms)
        if offset is not None:
            end = min(end, offset)
    return first, end
