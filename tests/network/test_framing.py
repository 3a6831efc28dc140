"""Framing of requests: frames are complete and in order however the bytes are split and however late they are
served, and the memory used is bounded by the bytes received.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.network.framing import FIRST_BYTES, FrameReader, InvalidFrame

BODIES = st.lists(
    st.one_of(st.binary(min_size=1, max_size=300), st.integers(300, 20_000).map(lambda size: b"x" * size)),
    max_size=12,
)
CUTS = st.lists(st.integers(min_value=1, max_value=9000), min_size=1, max_size=20)


def feed(
    reader: FrameReader, stream: bytes, cuts: list[int], pauses: list[bool] | None = None
) -> list[bytes]:
    """Feed the stream to the reader like a connection, and return the frames. Each receive is limited by
    `cuts` and the reader's buffer. Where `pauses` is true, keep the unserved bytes and overwrite the scratch
    buffer, as other connections would.
    """
    pauses = pauses or [False]
    frames: list[bytes] = []
    position = turn = 0
    while position < len(stream):
        target = reader.writable()
        count = min(len(target), len(stream) - position, cuts[turn % len(cuts)])
        turn += 1
        target[:count] = stream[position : position + count]
        position += count
        reader.received(count)
        while reader.unserved:
            frame = reader.next_frame()
            if frame is not None:
                frames.append(bytes(frame))
            if pauses[len(frames) % len(pauses)]:
                reader.keep_unserved()
                reader._scratch[:] = b"?" * len(reader._scratch)
    return frames


@settings(deadline=None)
@given(
    bodies=BODIES,
    cuts=CUTS,
    scratch_bytes=st.integers(min_value=8, max_value=5000),
    pauses=st.lists(st.booleans(), min_size=1, max_size=7),
)
def test_frames_arrive_intact_however_they_are_split(
    bodies: list[bytes], cuts: list[int], scratch_bytes: int, pauses: list[bool]
) -> None:
    reader = FrameReader(memoryview(bytearray(scratch_bytes)), 100_000)
    stream = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    assert feed(reader, stream, cuts, pauses) == bodies
    assert not reader.mid_frame
    reader.release_spare()
    assert reader.held_bytes == 0


@given(
    bodies=st.lists(st.binary(max_size=20), max_size=12),
    cuts=CUTS,
    scratch_bytes=st.integers(min_value=8, max_value=100),
    pauses=st.lists(st.booleans(), min_size=1, max_size=7),
)
def test_empty_frames_are_delivered_where_allowed(
    bodies: list[bytes], cuts: list[int], scratch_bytes: int, pauses: list[bool]
) -> None:
    reader = FrameReader(memoryview(bytearray(scratch_bytes)), 100)
    reader.min_frame_bytes = 0
    stream = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    assert feed(reader, stream, cuts, pauses) == bodies
    assert not reader.mid_frame and not reader.unserved


@settings(deadline=None)
@given(announced=st.integers(1, 2**31 - 1), came=st.integers(0, 200_000), cuts=CUTS)
def test_buffered_bytes_are_bounded_by_received_bytes(announced: int, came: int, cuts: list[int]) -> None:
    reader = FrameReader(memoryview(bytearray(4096)), 2**31 - 1)
    stream = struct.pack(">i", announced) + bytes(min(came, announced - 1))
    position = turn = 0
    while position < len(stream):
        target = reader.writable()
        count = min(len(target), len(stream) - position, cuts[turn % len(cuts)])
        turn += 1
        target[:count] = stream[position : position + count]
        position += count
        reader.received(count)
        assert reader.next_frame() is None
        assert reader.held_bytes <= 2 * position + FIRST_BYTES
        if reader.wants_bytes:
            before = reader.held_bytes
            wanted = reader.wants_bytes
            reader.grow()
            assert reader.held_bytes == before + wanted
            assert not reader.wants_bytes


@pytest.mark.parametrize("size", [-1, 0, 1001, -(2**31), 2**31 - 1])
@pytest.mark.parametrize("cut", [1, 4, 64])
def test_a_frame_size_outside_the_limits_is_rejected_without_allocating_memory(size: int, cut: int) -> None:
    reader = FrameReader(memoryview(bytearray(64)), 1000)
    with pytest.raises(InvalidFrame) as refused:
        feed(reader, struct.pack(">i", size) + b"x" * 60, [cut])
    assert (refused.value.size_bytes, refused.value.prefix) == (size, struct.pack(">i", size))
    assert reader.held_bytes == 0


def test_the_buffer_of_a_large_frame_is_reused_for_the_next_frame() -> None:
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
