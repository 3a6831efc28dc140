"""Find gaps and duplicates in sets of offsets, which are stored as runs in Arrow arrays. No I/O.

A run is a range of offsets without a gap, from the first to the last, inclusive. A partition without
transactions or compaction is one run, so checks of millions of records need little memory.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_compat.pipelines.errors import RecordsLost


@dataclass(frozen=True, slots=True)
class OffsetRuns:
    """The runs of one partition: `first[i]` to `last[i]` inclusive, in int64 arrays of equal length."""

    first: Any
    last: Any

    @property
    def rows(self) -> int:
        """Number of offsets in the runs."""
        return (pc.sum(self.last).as_py() or 0) - (pc.sum(self.first).as_py() or 0) + len(self.first)


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps in a range of offsets: the number of missing offsets, and the first gaps as [first, last]."""

    count: int
    ranges: list[list[int]]


def runs_of(chunks: Iterable[Any]) -> OffsetRuns:
    """Convert int64 arrays of offsets to runs. Raises RecordsLost unless the offsets strictly increase."""
    firsts, lasts = [], []
    previous = None
    for chunk in chunks:
        count = len(chunk)
        if count == 0:
            continue
        if previous is not None and chunk[0].as_py() <= previous:
            raise RecordsLost(f"Offset {chunk[0].as_py()} follows {previous} in one file.")
        previous = chunk[-1].as_py()
        head, tail = chunk.slice(0, count - 1), chunk.slice(1)
        step = pc.subtract(tail, head)
        if count > 1 and pc.min(step).as_py() <= 0:
            raise RecordsLost(
                f"Offsets between {chunk[0].as_py()} and {previous} are not in increasing order."
            )
        broken = pc.not_equal(step, 1)
        firsts += [chunk.slice(0, 1), pc.filter(tail, broken)]
        lasts += [pc.filter(head, broken), chunk.slice(count - 1)]
    return OffsetRuns(_joined(firsts), _joined(lasts))


def merged(parts: Iterable[OffsetRuns]) -> OffsetRuns:
    """Merge the sorted runs of a partition's files. Raises RecordsLost if an offset is duplicated."""
    parts = list(parts)
    first, last = _joined([part.first for part in parts]), _joined([part.last for part in parts])
    order = pc.sort_indices(first)
    first, last = pc.take(first, order), pc.take(last, order)
    if len(first) > 1:
        overlaps = pc.less_equal(first.slice(1), last.slice(0, len(last) - 1))
        if pc.any(overlaps).as_py():
            at = pc.index(overlaps, True).as_py()
            raise RecordsLost(f"Offset {first[at + 1].as_py()} was read twice.")
    return OffsetRuns(first, last)


def gaps_in(runs: OffsetRuns, start: int, end: int, ranges_max: int = 20) -> Gaps:
    """Return the offsets in [start, end) that are in no run. Raises RecordsLost if a run exceeds the range.

    Compaction and transaction markers cause legitimate gaps.
    """
    if end < start:
        raise RecordsLost(f"The range of offsets goes backwards, from {start} to {end}.")
    edges_last = pa.concat_arrays([pa.array([start - 1], pa.int64()), runs.last])
    edges_first = pa.concat_arrays([runs.first, pa.array([end], pa.int64())])
    sizes = pc.subtract(pc.subtract(edges_first, edges_last), 1)
    if pc.min(sizes).as_py() < 0:
        raise RecordsLost(f"Records outside of the batch's range of offsets, {start} to {end}, were read.")
    holes = pc.greater(sizes, 0)
    lows = pc.add(pc.filter(edges_last, holes).slice(0, ranges_max), 1).to_pylist()
    highs = pc.subtract(pc.filter(edges_first, holes).slice(0, ranges_max), 1).to_pylist()
    return Gaps(pc.sum(sizes).as_py(), [list(pair) for pair in zip(lows, highs, strict=True)])


def int64_bytes(array: Any) -> bytes:
    """Return an int64 array without nulls as bytes in native byte order, for `int64_array`."""
    data: bytes = array.buffers()[1].slice(array.offset * 8, len(array) * 8).to_pybytes()
    return data


def int64_array(data: bytes) -> Any:
    """Convert bytes from `int64_bytes` to an int64 array."""
    return pa.Array.from_buffers(pa.int64(), len(data) // 8, [None, pa.py_buffer(data)])


def _joined(arrays: list[Any]) -> Any:
    return pa.concat_arrays([pa.array([], pa.int64()), *arrays])
