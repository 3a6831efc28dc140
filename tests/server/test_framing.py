"""Frames come out whole and in order, however the bytes are cut on their way."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_compat.framing import FrameReader, InvalidFrame


def feed(reader: FrameReader, stream: bytes, cuts: list[int]) -> list[bytes]:
    """As a connection does: receive into the given buffer, at most as many bytes as the cut allows."""
    frames: list[bytes] = []
    position = 0
    cut = 0
    while position < len(stream):
        target = reader.writable()
        count = min(len(target), len(stream) - position, cuts[cut % len(cuts)])
        cut += 1
        target[:count] = stream[position : position + count]
        position += count
        frames.extend(bytes(frame) for frame in reader.received(count))
    return frames


@given(
    bodies=st.lists(st.binary(min_size=1, max_size=300), max_size=20),
    cuts=st.lists(st.integers(min_value=1, max_value=200), min_size=1, max_size=20),
    scratch_bytes=st.integers(min_value=8, max_value=256),
)
def test_frames_survive_any_cutting(bodies: list[bytes], cuts: list[int], scratch_bytes: int) -> None:
    reader = FrameReader(memoryview(bytearray(scratch_bytes)), 1000)
    stream = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    assert feed(reader, stream, cuts) == bodies
    assert not reader.mid_frame


@pytest.mark.parametrize("size", [-1, 0, 1001, -(2**31), 2**31 - 1])
@pytest.mark.parametrize("cut", [1, 4, 64])
def test_a_size_outside_the_limits_is_refused_before_any_memory_is_taken(size: int, cut: int) -> None:
    reader = FrameReader(memoryview(bytearray(64)), 1000)
    with pytest.raises(InvalidFrame):
        feed(reader, struct.pack(">i", size) + b"x" * 60, [cut])


def test_a_large_frame_keeps_its_buffer_for_the_next_one() -> None:
    reader = FrameReader(memoryview(bytearray(64)), 10_000)
    stream = struct.pack(">i", 5000) + b"a" * 5000
    feed(reader, stream, [64, 5000])
    feed(reader, stream[:10], [10])
    first = reader.writable().obj
    feed(reader, stream[10:], [5000])
    feed(reader, stream[:10], [10])
    assert reader.writable().obj is first
    feed(reader, stream[10:], [5000])
    reader.release_spare()
    feed(reader, stream[:10], [10])
    assert reader.writable().obj is not first
