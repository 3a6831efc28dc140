"""Cutting a byte stream into request frames: a four-byte big-endian size, then so many bytes.

Pure: no socket. A connection asks for a place to receive into, says how many bytes arrived, and gets the
frames that are now whole. All connections of a server receive into one shared scratch buffer, because most
reads end on a frame boundary; only the head of an unfinished frame is copied to a buffer of the connection's
own, sized for just that frame.
"""

from __future__ import annotations

from struct import Struct

_SIZE = Struct(">i")
SCRATCH_BYTES = 256 * 1024
# A connection that sends large frames keeps its buffer for the next one up to this size: fresh pages cost
# more than the copy.
SPARE_BYTES_MAX = 4 * 1024 * 1024


class InvalidFrame(Exception):
    """The size prefix is not positive or above socket.request.max.bytes: the peer does not speak this
    protocol.
    """


class FrameReader:
    """Frames of one connection. Frames are views that are valid until the next call of `writable`."""

    __slots__ = ("_filled", "_need", "_partial", "_scratch", "_spare", "max_frame_bytes")

    def __init__(self, scratch: memoryview, max_frame_bytes: int) -> None:
        self._scratch = scratch
        self._partial: memoryview | None = None
        self._spare: memoryview | None = None
        self._filled = 0
        self._need = 0
        self.max_frame_bytes = max_frame_bytes

    @property
    def mid_frame(self) -> bool:
        """Whether the first bytes of a frame arrived and its last ones did not."""
        return self._partial is not None

    def writable(self) -> memoryview:
        """Where the next bytes of the stream belong."""
        if self._partial is None:
            return self._scratch
        return self._partial[self._filled : self._need]

    def received(self, count: int) -> list[memoryview]:
        """Take `count` bytes written to `writable()`; returns the bodies of the frames that are whole. Raises
        InvalidFrame.
        """
        if self._partial is not None:
            return self._received_partial(count)
        buffer = self._scratch
        frames: list[memoryview] = []
        position = 0
        while count - position >= 4:
            size = _SIZE.unpack_from(buffer, position)[0]
            self._check(size)
            end = position + 4 + size
            if end > count:
                break
            frames.append(buffer[position + 4 : end])
            position = end
        if position < count:
            self._keep(buffer[position:count])
        return frames

    def release_spare(self) -> None:
        """Give back the memory kept for the next large frame; called on idle connections."""
        self._spare = None

    def _check(self, size: int) -> None:
        if size <= 0 or size > self.max_frame_bytes:
            raise InvalidFrame(f"frame size {size} is outside 1..{self.max_frame_bytes}")

    def _keep(self, head: memoryview) -> None:
        need = 4 + _SIZE.unpack_from(head)[0] if len(head) >= 4 else 4
        self._partial = self._buffer(need)
        self._partial[: len(head)] = head
        self._filled = len(head)
        self._need = need

    def _buffer(self, size: int) -> memoryview:
        spare = self._spare
        if spare is not None and len(spare) >= size:
            return spare
        fresh = memoryview(bytearray(size))
        if 4 < size <= SPARE_BYTES_MAX:
            self._spare = fresh
        return fresh

    def _received_partial(self, count: int) -> list[memoryview]:
        partial = self._partial
        assert partial is not None
        self._filled += count
        if self._filled < self._need:
            return []
        if self._need == 4:
            size = _SIZE.unpack_from(partial)[0]
            self._check(size)
            self._keep(partial[:4])
            return []
        self._partial = None
        return [partial[4 : self._need]]
