"""The search for the batch of an offset finds the same batch as a scan of all headers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.storage.records.batch import HEADER_SIZE
from kafka_compat.storage.records.records import Record, build_batch
from kafka_compat.storage.segments.scan import position_of_offset, scan_headers


class MemoryFile:
    """A file in memory."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def pread(self, size_bytes: int, position: int) -> bytes:
        return self.content[position : position + size_bytes]


def log_of(gaps: list[tuple[int, int]]) -> bytes:
    """Return batches, each given by the gap in offsets before it and its number of records."""
    batches = []
    offset = 0
    for gap, count in gaps:
        offset += gap
        batches.append(bytes(build_batch([Record(value=b"v" * 50)] * count, base_offset=offset)))
        offset += count
    return b"".join(batches)


@given(
    gaps=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 20)), max_size=12),
    offset=st.integers(0, 300),
    chunk_size_bytes=st.integers(1, 3000),
    damage=st.none() | st.tuples(st.integers(0, 3000), st.integers(0, 255)),
    missing=st.integers(0, 100),
)
def test_the_batch_of_an_offset_is_found(
    gaps: list[tuple[int, int]],
    offset: int,
    chunk_size_bytes: int,
    damage: tuple[int, int] | None,
    missing: int,
) -> None:
    content = bytearray(log_of(gaps))
    if damage is not None and damage[0] < len(content):
        content[damage[0]] = damage[1]
    end = max(len(content) - missing, 0)
    file = MemoryFile(bytes(content[:end]))
    chunk_size_bytes = max(chunk_size_bytes, HEADER_SIZE)
    wanted = next(
        (
            batch.position
            for batch in scan_headers(file, 0, end, chunk_size_bytes)  # type: ignore[arg-type]
            if batch.header.last_offset >= offset
        ),
        end,
    )
    assert position_of_offset(file, 0, end, offset, chunk_size_bytes) == wanted  # type: ignore[arg-type]
