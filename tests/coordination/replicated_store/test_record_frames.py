"""Frames around the records of the metadata log."""

import pytest

from kafka_compat.coordination.replicated_store import records
from kafka_compat.coordination.replicated_store.record_frames import UNREADABLE, frame, unframe


@pytest.mark.parametrize("record_type", [0, 1, 127, 128, 1000, 2**31 - 1])
@pytest.mark.parametrize("version", [0, 1, 300])
def test_a_frame_is_split_into_its_parts(record_type: int, version: int) -> None:
    framed = frame(record_type, version, b"payload")
    assert unframe(7, framed) == (7, record_type, version, b"payload")


def test_frames_have_kafkas_layout() -> None:
    # As Kafka writes a NoOp record: frame version 1, type 20, version 0, no tagged fields.
    assert frame(20, 0, b"\0") == b"\x01\x14\x00\x00"
    assert frame(1000, 0, b"")[:3] == b"\x01\xe8\x07"


@pytest.mark.parametrize(
    "value",
    [b"", b"\x01", b"\x01\x80", b"\x01\x14", b"\x02\x00\x00", b"\x01\xff\xff\xff\xff\xff\x01"],
)
def test_a_record_with_an_unreadable_frame_stops_the_store(value: bytes) -> None:
    record = unframe(5, value)
    assert record == (5, UNREADABLE, 0, value)
    with pytest.raises(records.BadRecord, match="frame at offset 5"):
        records.decode_change(record)
