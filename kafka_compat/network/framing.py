"""Split a byte stream into request frames. A frame is a four-byte big-endian size and that many bytes.

No I/O. The caller requests a buffer to receive into (`writable`), reports the number of bytes read
(`received`), and takes frames (`next_frame`) until none is left.

Rules
1. Bytes are read into a scratch buffer that all connections of a server share. A small read is copied to a
   bytes object, from which values are read faster, and small frames are bytes (COPIED_BYTES_MAX). Large
   frames are views, valid until the next read. Of their bytes, only those that must be kept longer are
   copied: the start of an incomplete frame, or frames to be served later (`keep_unserved`).
2. An incomplete frame's buffer grows with the bytes received, not with the declared size: it is at most 4 KiB
   larger than twice the bytes received. `wants_bytes` is the memory needed next, so that the connection can
   delay the frame if memory is short; `writable` grows the buffer in any case.
3. A connection that sends large frames keeps its buffer, up to 4 MiB, for the next frame, because allocating
   new memory pages takes longer than the copy.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be

from kafka_compat.protocol.buffers import COPIED_BYTES_MAX

Frame = bytes | memoryview

SCRATCH_BYTES: Final = 256 * 1024
SPARE_BYTES_MAX: Final = 4 * 1024 * 1024
FIRST_BYTES: Final = 4096
"""Initial buffer size of an incomplete frame."""

# Limit each step of a buffer's growth, so that it takes at most one or two milliseconds.
_STEP_BYTES_MAX: Final = 4 * 1024 * 1024
_ZEROS: Final = memoryview(bytes(_STEP_BYTES_MAX))


class InvalidFrame(Exception):
    """Raised if the size prefix is not positive or exceeds the limit: the peer uses a different protocol, or
    needs a larger limit. `prefix` contains the four bytes.
    """

    def __init__(self, size_bytes: int, max_frame_bytes: int) -> None:
        super().__init__(f"frame size {size_bytes} is outside 1..{max_frame_bytes}")
        self.size_bytes = size_bytes
        self.prefix = size_bytes.to_bytes(4, "big", signed=True)


class FrameReader:
    """The reader of one connection's frames. A large frame is valid until the next call of `writable`."""

    __slots__ = (
        "_end",
        "_filled",
        "_given",
        "_kept_bytes",
        "_need",
        "_partial",
        "_position",
        "_scratch",
        "_source",
        "_spare",
        "held_bytes",
        "max_frame_bytes",
        "min_frame_bytes",
    )

    def __init__(self, scratch: memoryview, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.min_frame_bytes = 1
        """Minimum frame size. It is 0 during authentication, because a GSSAPI token may be an empty frame."""
        self.held_bytes = 0
        """Memory used by this connection alone, without the shared scratch buffer."""
        self._scratch = scratch
        # The bytes to split: source[position:end], in the scratch buffer or a copy of it.
        self._source: Frame = scratch
        self._kept_bytes = 0
        self._position = 0
        self._end = 0
        # The incomplete frame after these bytes, with its size prefix: partial[:filled] of `need` bytes.
        self._partial: bytearray | None = None
        self._filled = 0
        self._need = 0
        self._given = memoryview(b"")
        self._spare: bytearray | None = None

    def writable(self) -> memoryview:
        """Return the buffer for the stream's next bytes. Call this method only if `unserved` is false."""
        partial = self._partial
        if partial is None:
            return self._scratch
        if self._filled == len(partial):
            self.grow()
        self._given = memoryview(partial)[self._filled : self._need]
        return self._given

    def received(self, count: int) -> None:
        """Process `count` bytes that were written to `writable()`."""
        if self._partial is None:
            self._position = 0
            self._end = count
            self._source = bytes(self._scratch[:count]) if count <= COPIED_BYTES_MAX else self._scratch
        else:
            self._filled += count

    @property
    def mid_frame(self) -> bool:
        """Whether only part of a frame has been received."""
        return self._partial is not None and self._filled < self._need

    @property
    def wants_bytes(self) -> int:
        """Number of bytes to allocate for more of the incomplete frame, or 0 if its buffer has room."""
        partial = self._partial
        if partial is None or self._filled < len(partial) or self._filled == self._need:
            return 0
        return self._step_bytes(len(partial))

    def grow(self) -> None:
        """Allocate the memory that the incomplete frame needs."""
        partial = self._partial
        assert partial is not None
        # Release the view, because a bytearray with views cannot grow.
        self._given.release()
        step_bytes = self._step_bytes(len(partial))
        partial += _ZEROS[:step_bytes]
        self.held_bytes += step_bytes

    def _step_bytes(self, capacity_bytes: int) -> int:
        doubled_bytes = max(FIRST_BYTES, min(capacity_bytes, _STEP_BYTES_MAX))
        return min(self._need - capacity_bytes, doubled_bytes)

    @property
    def unserved(self) -> bool:
        """Whether `next_frame` has bytes to process, even if they are an incomplete frame."""
        return self._position < self._end or (self._partial is not None and self._filled == self._need)

    def next_frame(self) -> Frame | None:
        """Return a frame's body, or None if it is incomplete. Raises InvalidFrame for an invalid size."""
        position = self._position
        left = self._end - position
        if left >= 4:
            source = self._source
            if isinstance(source, bytes):
                size = int(read_i32_be(source, position))
            else:
                size = int(read_i32_be(bytes(source[position : position + 4]), 0))
            if size < self.min_frame_bytes or size > self.max_frame_bytes:
                raise InvalidFrame(size, self.max_frame_bytes)
            stop = position + 4 + size
            if stop <= self._end:
                self._position = stop
                if stop == self._end:
                    self._drop_source()
                if isinstance(source, bytes):
                    return source[position + 4 : stop]
                return _compact(source[position + 4 : stop])
            self._begin(source[position : self._end], 4 + size)
        elif left:
            self._begin(self._source[position : self._end], 4)
        elif self._partial is not None and self._filled == self._need:
            return self._finish(self._partial)
        self._position = self._end = 0
        self._drop_source()
        return None

    def keep_unserved(self) -> None:
        """Keep the bytes that `next_frame` has not returned: connections share the scratch buffer."""
        if self._position < self._end and not self._kept_bytes:
            rest = self._source[self._position : self._end]
            # A copy of a view must be mutable, because appending a batch modifies a large frame in place.
            self._source = rest if isinstance(rest, bytes) else memoryview(bytearray(rest))
            self._position, self._end = 0, len(rest)
            self._kept_bytes = len(rest)
            self.held_bytes += self._kept_bytes

    def release_spare(self) -> None:
        """Release the memory kept for the next large frame."""
        if self._spare is not None:
            self.held_bytes -= len(self._spare)
            self._spare = None

    def close(self) -> None:
        """Release all memory. The reader cannot be used afterwards."""
        self.release_spare()
        self._partial = None
        self._position = self._end = 0
        self._source = self._scratch
        self._given = memoryview(b"")
        self.held_bytes = self._kept_bytes = 0

    def _drop_source(self) -> None:
        if self._kept_bytes:
            self.held_bytes -= self._kept_bytes
            self._kept_bytes = 0
        self._source = self._scratch

    def _begin(self, head: Frame, need: int) -> None:
        spare = self._spare
        if spare is not None and len(spare) >= need > 4:
            partial = spare
            self._spare = None
        else:
            if need > 4:
                self.release_spare()
            partial = bytearray(min(need, max(len(head), FIRST_BYTES)))
            self.held_bytes += len(partial)
        # Write through a view: assigning to a slice of a bytearray would copy the bytes first.
        with memoryview(partial) as view:
            view[: len(head)] = head
        self._partial = partial
        self._filled = len(head)
        self._need = need

    def _finish(self, partial: bytearray) -> Frame | None:
        self._partial = None
        if self._need == 4:
            # The size prefix arrived in parts and is now complete.
            self.held_bytes -= 4
            size = int(read_i32_be(bytes(partial), 0))
            if size < self.min_frame_bytes or size > self.max_frame_bytes:
                raise InvalidFrame(size, self.max_frame_bytes)
            if size == 0:
                return b""
            self._begin(memoryview(partial), 4 + size)
            return None
        frame = _compact(memoryview(partial)[4 : self._need])
        self.release_spare()
        if FIRST_BYTES < len(partial) <= SPARE_BYTES_MAX:
            self._spare = partial
        else:
            self.held_bytes -= len(partial)
        return frame


def _compact(view: memoryview) -> Frame:
    return bytes(view) if len(view) <= COPIED_BYTES_MAX else view
