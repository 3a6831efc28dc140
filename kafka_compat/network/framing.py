"""Split a byte stream into request frames. A frame is a four-byte big-endian size and that many bytes.

No I/O. If `room` returns a buffer, the caller reads into it and calls `filled`. Otherwise, it reads up to
READ_BYTES and passes them to `received`. Then it takes frames (`next_frame`) until none is left.

Rules
1. Most reads end at the end of a frame. Small frames (COPIED_BYTES_MAX) are bytes.
2. An incomplete frame has its own buffer, which grows with the bytes received, not with the declared size: it
   is at most 4 KiB larger than twice the bytes received. `wants_bytes` is the memory needed next, so that the
   connection can delay the frame if memory is short; `room` grows the buffer in any case. A large frame is a
   view of this buffer, valid until the next call of `room`.
3. A connection that sends large frames keeps its buffer, up to 4 MiB, for the next frame, because allocating
   new memory pages takes longer than the copy.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be

from kafka_compat.protocol.buffers import COPIED_BYTES_MAX

Frame = bytes | memoryview

READ_BYTES: Final = 64 * 1024
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
    """The reader of one connection's frames."""

    __slots__ = (
        "_filled",
        "_given",
        "_kept_bytes",
        "_need",
        "_position",
        "_source",
        "_spare",
        "held_bytes",
        "max_frame_bytes",
        "min_frame_bytes",
        "partial",
    )

    def __init__(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.min_frame_bytes = 1
        """Minimum frame size. It is 0 during authentication, because a GSSAPI token may be an empty frame."""
        self.held_bytes = 0
        """Memory that this connection uses between reads."""
        # The bytes to split: source[position:].
        self._source = b""
        self._position = 0
        self._kept_bytes = 0
        self.partial: bytearray | None = None
        """The incomplete frame after these bytes, with its size prefix: partial[:filled] of `need` bytes."""
        self._filled = 0
        self._need = 0
        self._given = memoryview(b"")
        self._spare: bytearray | None = None

    def room(self) -> memoryview | None:
        """Return the buffer for the next bytes of an incomplete frame, or None if no frame is incomplete.
        Call this method only if `unserved` is false.
        """
        partial = self.partial
        if partial is None:
            return None
        if self._filled == len(partial):
            self.grow()
        self._given = memoryview(partial)[self._filled : self._need]
        return self._given

    def filled(self, count: int) -> None:
        """Process `count` bytes that were written to `room()`."""
        self._filled += count

    def received(self, data: bytes) -> None:
        """Process bytes that were read when `room()` was None."""
        self._source = data
        self._position = 0

    def received_alone(self, data: bytes) -> Frame | None:
        """Process bytes like `received`, or return their frame if they are exactly one, as in most reads."""
        size_bytes = len(data) - 4
        if self.min_frame_bytes <= size_bytes <= self.max_frame_bytes and read_i32_be(data, 0) == size_bytes:
            return data[4:]
        self.received(data)
        return None

    @property
    def mid_frame(self) -> bool:
        """Whether only part of a frame has been received."""
        return self.partial is not None and self._filled < self._need

    @property
    def wants_bytes(self) -> int:
        """Number of bytes to allocate for more of the incomplete frame, or 0 if its buffer has room."""
        partial = self.partial
        if partial is None or self._filled < len(partial) or self._filled == self._need:
            return 0
        return self._step_bytes(len(partial))

    def grow(self) -> None:
        """Allocate the memory that the incomplete frame needs."""
        partial = self.partial
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
        return self._position < len(self._source) or (self.partial is not None and self._filled == self._need)

    def next_frame(self) -> Frame | None:
        """Return a frame's body, or None if it is incomplete. Raises InvalidFrame for an invalid size."""
        source, position = self._source, self._position
        end = len(source)
        if end - position >= 4:
            size = int(read_i32_be(source, position))
            if size < self.min_frame_bytes or size > self.max_frame_bytes:
                raise InvalidFrame(size, self.max_frame_bytes)
            stop = position + 4 + size
            if stop <= end:
                if stop == end:
                    self._drop_source()
                else:
                    self._position = stop
                return source[position + 4 : stop]
            self._begin(source[position:], 4 + size)
        elif end > position:
            self._begin(source[position:], 4)
        elif self.partial is not None and self._filled == self._need:
            return self._finish(self.partial)
        self._drop_source()
        return None

    def keep_unserved(self) -> None:
        """Keep the bytes that `next_frame` has not returned until the connection's next turn."""
        if self._position < len(self._source) and not self._kept_bytes:
            self._source = self._source[self._position :]
            self._position = 0
            self._kept_bytes = len(self._source)
            self.held_bytes += self._kept_bytes

    def release_spare(self) -> None:
        """Release the memory kept for the next large frame."""
        if self._spare is not None:
            self.held_bytes -= len(self._spare)
            self._spare = None

    def close(self) -> None:
        """Release all memory. The reader cannot be used afterwards."""
        self.release_spare()
        self.partial = None
        self._source = b""
        self._position = 0
        self._given = memoryview(b"")
        self.held_bytes = self._kept_bytes = 0

    def _drop_source(self) -> None:
        self._source = b""
        self._position = 0
        self.held_bytes -= self._kept_bytes
        self._kept_bytes = 0

    def _begin(self, head: bytes, need: int) -> None:
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
        self.partial = partial
        self._filled = len(head)
        self._need = need

    def _finish(self, partial: bytearray) -> Frame | None:
        self.partial = None
        if self._need == 4:
            # The size prefix arrived in parts and is now complete.
            self.held_bytes -= 4
            size = int(read_i32_be(bytes(partial), 0))
            if size < self.min_frame_bytes or size > self.max_frame_bytes:
                raise InvalidFrame(size, self.max_frame_bytes)
            if size == 0:
                return b""
            self._begin(bytes(partial), 4 + size)
            return None
        view = memoryview(partial)[4 : self._need]
        frame: Frame = bytes(view) if len(view) <= COPIED_BYTES_MAX else view
        self.release_spare()
        if FIRST_BYTES < len(partial) <= SPARE_BYTES_MAX:
            self._spare = partial
        else:
            self.held_bytes -= len(partial)
        return frame
