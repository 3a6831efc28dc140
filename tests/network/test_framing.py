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


def read(reader: FrameReader, stream: bytes, read_bytes: int) -> int:
    """Read at most `read_bytes` of the stream, like a connection, and return their number."""
    room = reader.room()
    if room is None:
        reader.received(stream[:read_bytes])
        return min(len(stream), read_bytes)
    count = min(len(room), len(stream), read_bytes)
    room[:count] = stream[:count]
    reader.filled(count)
    return count


def feed(
    reader: FrameReader, stream: bytes, cuts: list[int], pauses: list[bool] | None = None
) -> list[bytes]:
    """Feed the stream to the reader like a connection, and return the frames. Each read is limited by `cuts`.
    Where `pauses` is true, keep the unserved bytes.
    """
    pauses = pauses or [False]
    frames: list[bytes] = []
    position = turn = 0
    while position < len(stream):
        position += read(reader, stream[position:], cuts[turn % len(cuts)])
        turn += 1
        while reader.unserved:
            frame = reader.next_frame()
            if frame is not None:
                frames.append(bytes(frame))
            if pauses[len(frames) % len(pauses)]:
                reader.keep_unserved()
    return frames


def partial_buffer(reader: FrameReader) -> object:
    room = reader.room()
    assert room is not None
    return room.obj


@settings(deadline=None)
@given(
    bodies=BODIES,
    cuts=CUTS,
    pauses=st.lists(st.booleans(), min_size=1, max_size=7),
)
def test_frames_arrive_intact_however_they_are_split(
    bodies: list[bytes], cuts: list[int], pauses: list[bool]
) -> None:
    reader = FrameReader(100_000)
    stream = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    assert feed(reader, stream, cuts, pauses) == bodies
    assert not reader.mid_frame
    reader.release_spare()
    assert reader.held_bytes == 0


@given(body=st.binary(min_size=1, max_size=50), rest=st.binary(max_size=8), cut=st.integers(0, 60))
def test_only_a_frame_that_arrives_alone_is_returned_at_once(body: bytes, rest: bytes, cut: int) -> None:
    reader = FrameReader(50)
    stream = struct.pack(">i", len(body)) + body
    assert reader.received_alone(stream) == body
    assert not reader.unserved
    data = (stream + rest)[:cut]
    if data == stream or not data:
        return
    assert reader.received_alone(data) is None
    assert reader.next_frame() == (body if len(data) > len(stream) else None)


@given(
    bodies=st.lists(st.binary(max_size=20), max_size=12),
    cuts=CUTS,
    pauses=st.lists(st.booleans(), min_size=1, max_size=7),
)
def test_empty_frames_are_delivered_where_allowed(
    bodies: list[bytes], cuts: list[int], pauses: list[bool]
) -> None:
    reader = FrameReader(100)
    reader.min_frame_bytes = 0
    stream = b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    assert feed(reader, stream, cuts, pauses) == bodies
    assert not reader.mid_frame and not reader.unserved


@settings(deadline=None)
@given(announced=st.integers(1, 2**31 - 1), came=st.integers(0, 200_000), cuts=CUTS)
def test_buffered_bytes_are_bounded_by_received_bytes(announced: int, came: int, cuts: list[int]) -> None:
    reader = FrameReader(2**31 - 1)
    stream = struct.pack(">i", announced) + bytes(min(came, announced - 1))
    position = turn = 0
    while position < len(stream):
        position += read(reader, stream[position:], cuts[turn % len(cuts)])
        turn += 1
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
    reader = FrameReader(1000)
    with pytest.raises(InvalidFrame) as refused:
        feed(reader, struct.pack(">i", size) + b"x" * 60, [cut])
    assert (refused.value.size_bytes, refused.value.prefix) == (size, struct.pack(">i", size))
    assert reader.held_bytes == 0


def test_the_buffer_of_a_large_frame_is_reused_for_the_next_frame() -> None:
    reader = FrameReader(10_000)
    stream = struct.pack(">i", 5000) + b"a" * 5000
    feed(reader, stream, [64, 5000])
    feed(reader, stream[:10], [10])
    first = partial_buffer(reader)
    feed(reader, stream[10:], [5000])
    feed(reader, stream[:10], [10])
    assert partial_buffer(reader) is first
    feed(reader, stream[10:], [5000])
    reader.release_spare()
    feed(reader, stream[:10], [10])
    assert partial_buffer(reader) is not first
