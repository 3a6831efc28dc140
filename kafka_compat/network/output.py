"""Output queue of one connection: responses that are written to the socket in the order of the requests.

Rules
1. Responses are sent in the order of their requests, as the protocol requires, regardless of the order in
   which they become available. A pending response has a slot; later responses wait until the slot is filled.
2. One queue owns all writes. Bytes that the socket accepts at once never enter the queue. File slices are
   sent by sendfile if the socket does not use TLS. No part is sent before the previous part is complete.
3. `unsent_bytes` counts all unsent bytes. `memory_bytes` and the server's response budget count only unsent
   bytes in memory.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Final

from kafka_compat.network.tls import CHUNK_BYTES, Wire
from kafka_compat.protocol.buffers import size_of
from kafka_compat.storage.errors import CorruptRecord
from kafka_compat.storage.segments.file_slice import SENDFILE_BYTES_MIN as SENDFILE_BYTES_MIN
from kafka_compat.storage.segments.file_slice import FileSlice

if TYPE_CHECKING:
    from kafka_compat.api.api import Part
    from kafka_compat.network.budget import AnswerBudget

# Maximum size, in bytes, of in-memory parts that are joined with adjacent parts.
_JOINED_BYTES_MAX: Final = 64 * 1024
# Maximum number of parts in a batch. Responses to requests that arrived together are sent in a batch.
_BATCH_PARTS_MAX: Final = 64
# Serve other connections after this many bytes, however fast the client reads.
_DRAIN_BYTES_MAX: Final = 8 * 1024 * 1024


class Slot:
    """The position of one pending response in the order of responses."""

    __slots__ = ("done", "parts")

    def __init__(self) -> None:
        self.done = False
        self.parts: list[Part] | None = None


class Output:
    """The output queue of one connection. `on_sent` is called when queued bytes have been sent, and
    `on_failure` after an error of the socket or of a file.
    """

    __slots__ = (
        "_batch",
        "_budget",
        "_head_sent_bytes",
        "_loop",
        "_on_failure",
        "_on_sent",
        "_queue",
        "_socket",
        "_use_sendfile",
        "_watching",
        "memory_bytes",
        "slots",
        "taken_s",
        "unsent_bytes",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connected: Wire,
        budget: AnswerBudget,
        use_sendfile: bool,
        on_sent: Callable[[], None],
        on_failure: Callable[[str], None],
    ) -> None:
        self.unsent_bytes = 0
        self.memory_bytes = 0
        self.slots: deque[Slot] = deque()
        """Slots of the responses that are not in the queue yet, in the order of the requests."""
        self.taken_s = 0.0
        """Time in seconds when the client last read queued bytes, or when bytes were first queued."""
        self._loop = loop
        self._socket = connected
        self._budget = budget
        self._use_sendfile = use_sendfile
        self._on_sent = on_sent
        self._on_failure = on_failure
        self._queue: deque[Part] = deque()
        self._head_sent_bytes = 0
        self._watching = False
        self._batch: list[Part] | None = None

    @property
    def all_sent(self) -> bool:
        return not self._queue

    def respond(self, parts: list[Part]) -> None:
        """Send the response to the current request."""
        if self.slots:
            slot = Slot()
            self.slots.append(slot)
            slot.done = True
            slot.parts = parts
            self._count(parts, 1)
        elif self._batch is not None:
            self._batch.extend(parts)
        elif len(parts) == 1 and not self._queue and not isinstance(parts[0], FileSlice):
            self._write(parts[0])
        else:
            self._send(parts)

    def complete(self, slot: Slot, parts: list[Part] | None) -> None:
        """Set the response to an earlier request. `parts` is None if the request expects no response."""
        if slot.done:
            return  # The response was dropped by `drop_later`.
        slot.done = True
        slot.parts = parts
        slots = self.slots
        if slots[0] is not slot:
            if parts:
                self._count(parts, 1)
            return
        slots.popleft()
        ready: list[Part] = parts or []
        while slots and slots[0].done:
            behind = slots.popleft().parts
            if behind:
                self._count(behind, -1)
                ready.extend(behind)
        if not ready:
            return
        if self._batch is not None:
            self._batch.extend(ready)
        else:
            self._send(ready)

    def drop_later(self, slot: Slot) -> None:
        """Drop the responses to all requests after the request of `slot`."""
        slots = self.slots
        while slots and slots[-1] is not slot:
            dropped = slots.pop()
            if dropped.parts:
                self._count(dropped.parts, -1)
            dropped.done = True

    def begin_batch(self) -> None:
        """Collect responses until `end_batch` is called, to send them with a single system call."""
        self._batch = []

    def send_large_batch(self) -> None:
        """If the batch is large, send it and begin a new batch."""
        batch = self._batch
        if batch and (len(batch) > _BATCH_PARTS_MAX or size_of(batch[-1]) > _JOINED_BYTES_MAX):
            self.end_batch()
            self._batch = []

    def end_batch(self) -> None:
        batch = self._batch
        self._batch = None
        if batch:
            self._send(batch)

    def _send(self, parts: list[Part]) -> None:
        if self._queue:
            self._enqueue(parts)
            return
        small: list[bytes | bytearray | memoryview] = []
        for i, part in enumerate(parts):
            if isinstance(part, FileSlice):
                if part.size_bytes < SENDFILE_BYTES_MIN:
                    try:
                        small.append(part.read())
                    except (OSError, CorruptRecord) as error:
                        # The response's size was already sent, so close the connection. The client retries.
                        self._on_failure(f"reading records failed: {error}")
                        return
                    continue
            elif len(part) <= _JOINED_BYTES_MAX:
                small.append(part)
                continue
            if small:
                self._write(b"".join(small))
                small = []
            waited = bool(self._queue)
            self._enqueue(parts[i:])
            if not waited:
                self._drain()
            return
        if small:
            self._write(b"".join(small))

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes if the queue is empty. Queue the bytes that the socket does not accept at once."""
        try:
            sent = self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._on_failure(f"sending failed: {error}")
            return
        if sent < len(data):
            self._enqueue([memoryview(data)[sent:]])
            self._watch()

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self.taken_s = monotonic()
            self._loop.add_writer(self._socket.fileno(), self._drain)

    def _enqueue(self, parts: list[Part]) -> None:
        for part in parts:
            if isinstance(part, FileSlice):
                # Drop the data of queued file slices, so that they use no memory.
                part.unload()
        self._queue.extend(parts)
        self._count(parts, 1)

    def _count(self, parts: list[Part], sign: int) -> None:
        all_bytes = memory_bytes = 0
        for part in parts:
            if isinstance(part, FileSlice):
                all_bytes += part.size_bytes
            else:
                size_bytes = len(part)
                all_bytes += size_bytes
                memory_bytes += size_bytes
        self.unsent_bytes += sign * all_bytes
        if memory_bytes:
            self.memory_bytes += sign * memory_bytes
            self._budget.change(sign * memory_bytes)

    def _drain(self) -> None:
        """Send as much as the socket accepts. Called again when the socket becomes writable."""
        queue = self._queue
        unsent_before = self.unsent_bytes
        try:
            while queue:
                part = queue[0]
                if isinstance(part, FileSlice):
                    if self._use_sendfile:
                        self._send_slice(part)
                    else:
                        self._send_read_slice(part)
                else:
                    self._send_head(part)
                if unsent_before - self.unsent_bytes > _DRAIN_BYTES_MAX:
                    break
        except (BlockingIOError, InterruptedError):
            pass
        except (OSError, EOFError) as error:
            self._on_failure(f"sending failed: {error}")
            return
        if queue:
            self._watch()
        elif self._watching:
            self._watching = False
            self._loop.remove_writer(self._socket.fileno())
        if self.unsent_bytes != unsent_before:
            self.taken_s = monotonic()
            self._on_sent()

    def _send_head(self, part: bytes | bytearray | memoryview) -> None:
        size_bytes = len(part)
        while self._head_sent_bytes < size_bytes:
            sent = self._socket.send(memoryview(part)[self._head_sent_bytes :])
            self._head_sent_bytes += sent
            self.unsent_bytes -= sent
        # Update the counts only now, because the whole part stays in memory until its last byte is sent.
        self.memory_bytes -= size_bytes
        self._budget.change(-size_bytes)
        self._next_part()

    def _send_slice(self, part: FileSlice) -> None:
        descriptor = self._socket.fileno()
        while self._head_sent_bytes < part.size_bytes:
            position = part.position + self._head_sent_bytes
            sent = os.sendfile(descriptor, part.fd, position, part.size_bytes - self._head_sent_bytes)
            if sent == 0:
                # The frame cannot be completed, so the connection must be closed. The client retries.
                raise EOFError("a segment ended before the announced slice")
            self._head_sent_bytes += sent
            self.unsent_bytes -= sent
        # Set TCP_NODELAY again, to send the last segment immediately. After sendfile, it might otherwise wait
        # about 40 ms for the client's delayed acknowledgment.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._next_part()

    def _send_read_slice(self, part: FileSlice) -> None:
        """Send a file slice without sendfile. Bytes that the socket does not accept are read again."""
        while self._head_sent_bytes < part.size_bytes:
            size_bytes = min(part.size_bytes - self._head_sent_bytes, CHUNK_BYTES)
            data = part.file.pread(size_bytes, part.position + self._head_sent_bytes)
            if len(data) < size_bytes:
                raise EOFError("a segment ended before the announced slice")
            sent = self._socket.send(data)
            self._head_sent_bytes += sent
            self.unsent_bytes -= sent
        self._next_part()

    def _next_part(self) -> None:
        self._queue.popleft()
        self._head_sent_bytes = 0

    def clear(self) -> None:
        """Drop all unsent bytes before the socket is closed."""
        if self._watching:
            self._watching = False
            self._loop.remove_writer(self._socket.fileno())
        self._budget.change(-self.memory_bytes)
        self.memory_bytes = self.unsent_bytes = 0
        self._queue.clear()
        self.slots.clear()
        self._batch = None
        # Break a reference cycle: the callbacks refer to the connection, which refers to this object.
        self._on_sent = self._on_failure = _ignore


def _ignore(*_: object) -> None:
    """Do nothing. Replaces the callbacks of an output whose connection is closed."""
