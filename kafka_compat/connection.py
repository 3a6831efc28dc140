"""One client connection: bytes in, frames to the dispatcher, responses out in the order of their requests.

Rules
1. Responses leave in request order (the protocol promises it), though they may be ready in any order: a
   request that is not answered at once takes a slot, and a ready slot waits for the slots before it.
2. While a serial request (an `async def` handler) runs, later requests of this connection wait, as they do in
   Kafka: a client that sends CreateTopics and then Metadata on one connection counts on it.
3. Reading stops while too many requests or response bytes are outstanding, so one client cannot fill the
   memory.
4. One queue owns all writes. File slices go out by sendfile on a duplicate of the descriptor, because asyncio
   lets nobody else watch the descriptor of a transport; nothing overtakes a slice that is half sent.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, cast

from kafka_compat.framing import FrameReader, InvalidFrame
from storage.segment import FileSlice

if TYPE_CHECKING:
    from kafka_compat.server import Server

log = logging.getLogger(__name__)

Part = bytes | bytearray | memoryview | FileSlice

OUTSTANDING_REQUESTS_MAX = 1024
UNSENT_BYTES_MAX = 8 * 1024 * 1024
# Below this a pread and one joined write are cheaper than a sendfile call of its own.
SENDFILE_BYTES_MIN = 32 * 1024
_SIZE = Struct(">i")


class Slot:
    """The place of one unanswered request in the order of responses."""

    __slots__ = ("done", "parts")

    def __init__(self) -> None:
        self.done = False
        self.parts: list[Part] | None = None


class Connection(asyncio.BufferedProtocol):
    """See the rules above. Made by Server for each accepted socket."""

    def __init__(self, server: Server, listener_name: str) -> None:
        self.server = server
        self.listener_name = listener_name
        self.peer_host = ""
        self.local_host = ""
        self.local_port = 0
        self.last_active_s = 0.0
        self.frame_started_s = 0.0
        self.closed = False
        self.software: tuple[str, str] = ("unknown", "unknown")
        self._reader = FrameReader(server.scratch, server.request_max_bytes)
        self._slots: deque[Slot] = deque()
        self._held: deque[bytearray] = deque()
        self._serial_running = False
        self._reading = True
        self._transport: asyncio.Transport | None = None
        self._transport_full = False
        self._queue: deque[Part] = deque()
        self._unsent_bytes = 0
        self._socket: socket.socket
        self._descriptor = -1
        self._slice_sent_bytes = 0
        self._watching_writable = False
        self._batch: list[Part] | None = None

    # --- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        local = transport.get_extra_info("sockname")
        self.peer_host = peer[0] if peer else ""
        self.local_host, self.local_port = (local[0], local[1]) if local else ("", 0)
        self.last_active_s = self.server.loop.time()
        self._transport.set_write_buffer_limits(high=0)
        # asyncio sets it on sockets that know their protocol, which those of a listener from outside do not.
        # Without it, an answer behind another one waits for the client's delayed acknowledgement, some 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.server.limits.send_buffer_bytes > 0:
            # A buffer that fits the cache: with one that the kernel grows, large fetches cost twice the CPU.
            transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDBUF, self.server.limits.send_buffer_bytes
            )
        if not self.server.admit(self):
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.writable()

    def buffer_updated(self, nbytes: int) -> None:
        self.last_active_s = now_s = self.server.loop.time()
        reader = self._reader
        try:
            frames = reader.received(nbytes)
        except InvalidFrame as error:
            log.info("closing the connection from %s: %s", self.peer_host, error)
            self.abort()
            return
        if frames:
            self.frame_started_s = now_s if reader.mid_frame else 0.0
            self._handle(frames)
        elif self.frame_started_s == 0.0:
            self.frame_started_s = now_s

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._stop_watching()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._queue.clear()
        self._slots.clear()
        self._held.clear()
        self.server.forget(self)

    def pause_writing(self) -> None:
        self._transport_full = True

    def resume_writing(self) -> None:
        self._transport_full = False
        self._drain()

    # --- requests

    def _handle(self, frames: list[memoryview]) -> None:
        # Answers to frames that arrived together leave together: one system call instead of one each.
        batch: list[Part] = []
        self._batch = batch
        dispatch = self.server.dispatch
        for frame in frames:
            if self._serial_running:
                self._held.append(bytearray(frame))
            elif not dispatch(self, frame):
                self.abort()
            if self.closed:
                break
        self._batch = None
        if batch and not self.closed:
            self._send(batch)
        if self._reading and (
            self._held or len(self._slots) > OUTSTANDING_REQUESTS_MAX or self._unsent_bytes > UNSENT_BYTES_MAX
        ):
            self._pause_reading()

    def begin_serial(self) -> None:
        """Later requests wait until `end_serial`."""
        self._serial_running = True

    def end_serial(self) -> None:
        self._serial_running = False
        while self._held and not self._serial_running and not self.closed:
            self._handle([memoryview(self._held.popleft())])
        self._maybe_resume_reading()

    def take_slot(self) -> Slot:
        slot = Slot()
        self._slots.append(slot)
        return slot

    @property
    def idle(self) -> bool:
        return not self._slots and not self._queue and not self._serial_running

    # --- responses

    def respond(self, parts: list[Part]) -> None:
        """The answer to the request being dispatched right now."""
        if self._slots:
            slot = self.take_slot()
            slot.done = True
            slot.parts = parts
        elif self._batch is not None:
            self._batch.extend(parts)
        else:
            self._send(parts)

    def complete(self, slot: Slot, parts: list[Part] | None) -> None:
        """The answer to an earlier request; None where the request wants no answer."""
        slot.done = True
        slot.parts = parts
        if self.closed:
            return
        slots = self._slots
        ready: list[Part] = []
        while slots and slots[0].done:
            done = slots.popleft()
            if done.parts is not None:
                ready.extend(done.parts)
        if ready:
            if self._batch is not None:
                self._batch.extend(ready)
            else:
                self._send(ready)
        self._maybe_resume_reading()

    def _send(self, parts: list[Part]) -> None:
        if self._queue or self._transport_full:
            for part in parts:
                self._enqueue(part)
            return
        transport = self._transport
        assert transport is not None
        if len(parts) == 1 and not isinstance(parts[0], FileSlice):
            transport.write(parts[0])
            return
        small: list[bytes | bytearray | memoryview] = []
        for i, part in enumerate(parts):
            if isinstance(part, FileSlice):
                if part.size_bytes < SENDFILE_BYTES_MIN or not self.server.use_sendfile:
                    small.append(part.read())
                    continue
                if small:
                    transport.write(b"".join(small))
                    small = []
                for rest in parts[i:]:
                    self._enqueue(rest)
                self._drain()
                return
            small.append(part)
        if small:
            transport.write(b"".join(small))

    def _enqueue(self, part: Part) -> None:
        self._queue.append(part)
        self._unsent_bytes += part.size_bytes if isinstance(part, FileSlice) else len(part)

    def _drain(self) -> None:
        """Write what the kernel takes; returns once the queue is empty or someone will call again."""
        queue = self._queue
        transport = self._transport
        assert transport is not None
        while queue and not self._transport_full and not self.closed:
            part = queue[0]
            if not isinstance(part, FileSlice):
                queue.popleft()
                self._unsent_bytes -= len(part)
                transport.write(part)
            elif not self.server.use_sendfile:
                queue.popleft()
                self._unsent_bytes -= part.size_bytes
                transport.write(part.read())
            elif not self._sendfile(part):
                return
        if not queue:
            self._maybe_resume_reading()

    def _sendfile(self, part: FileSlice) -> bool:
        """Send the slice at the head of the queue; False when a later call must go on."""
        if self._descriptor < 0:
            assert self._transport is not None
            self._socket = self._transport.get_extra_info("socket")
            self._descriptor = os.dup(self._socket.fileno())
        remaining = part.size_bytes - self._slice_sent_bytes
        while remaining > 0:
            try:
                sent = os.sendfile(
                    self._descriptor, part.fd, part.position + self._slice_sent_bytes, remaining
                )
            except BlockingIOError:
                if not self._watching_writable:
                    self.server.loop.add_writer(self._descriptor, self._drain)
                    self._watching_writable = True
                return False
            except OSError as error:
                log.info("sending to %s failed: %s", self.peer_host, error)
                self.abort()
                return False
            if sent == 0:
                # The file is shorter than promised: the framing cannot be kept, the client must ask again.
                log.error("a segment ended before a slice that was promised to %s", self.peer_host)
                self.abort()
                return False
            self._slice_sent_bytes += sent
            self._unsent_bytes -= sent
            remaining -= sent
        # sendfile may leave the last segment corked, waiting for more; setting the option again pushes it out
        # (else the client's delayed acknowledgement decides, some 40 ms later).
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stop_watching()
        self._slice_sent_bytes = 0
        self._queue.popleft()
        self.last_active_s = self.server.loop.time()
        return True

    # --- flow and end

    def _stop_watching(self) -> None:
        if self._watching_writable:
            self.server.loop.remove_writer(self._descriptor)
            self._watching_writable = False

    def _pause_reading(self) -> None:
        self._reading = False
        if self._transport is not None and not self.closed:
            self._transport.pause_reading()

    def _maybe_resume_reading(self) -> None:
        if (
            not self._reading
            and not self.closed
            and not self._held
            and len(self._slots) <= OUTSTANDING_REQUESTS_MAX // 2
            and self._unsent_bytes <= UNSENT_BYTES_MAX // 2
        ):
            self._reading = True
            assert self._transport is not None
            self._transport.resume_reading()

    def release_memory(self) -> None:
        """Give back buffers kept for speed; called when the connection has been quiet."""
        self._reader.release_spare()

    def abort(self) -> None:
        """Close at once, unsent responses are dropped."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Close after what was written has been sent."""
        if self._transport is not None and not self.closed:
            self._transport.close()
