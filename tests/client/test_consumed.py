"""Records returned by a consumer for a given fetch response."""

from __future__ import annotations

from kafka_compat.client.consumed import consumed, whole_batches
from kafka_compat.storage.records.records import Record, build_batch


def batch_of(*values: bytes, base_offset: int) -> bytes:
    batch = bytearray(build_batch([Record(timestamp=1_700_000_000_000, value=value) for value in values]))
    batch[:8] = base_offset.to_bytes(8, "big")
    return bytes(batch)


def test_records_before_the_requested_offset_are_skipped() -> None:
    content = batch_of(b"a", b"b", b"c", base_offset=5)
    ((next_offset, records),) = consumed("t", 3, content, 6, None)
    assert next_offset == 8
    assert [(record.topic, record.partition, record.offset, record.value) for record in records] == [
        ("t", 3, 6, b"b"),
        ("t", 3, 7, b"c"),
    ]


def test_a_truncated_batch_is_left_for_the_next_fetch() -> None:
    first, second = batch_of(b"a", base_offset=0), batch_of(b"b", base_offset=1)
    for size in range(len(first), len(first) + len(second)):
        assert [header.next_offset for header, _ in whole_batches((first + second)[:size])] == [1]
    assert [header.next_offset for header, _ in whole_batches(first + second)] == [1, 2]
