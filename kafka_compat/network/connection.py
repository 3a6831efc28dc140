"""One client connection: reads bytes, passes complete frames to the dispatcher, and sends responses
(output.py) in the order of the requests.

Rules
1. Requests are served one after the other within a turn (turns.py). Requests that remain at the end of the
   turn are kept, and reading stops until they are served.
2. While a serial request (an `async def` handler) runs, later requests of the connection wait, as in Kafka: a
   client that sends CreateTopics and then Metadata on one connection relies on this order.
3. A request is served only while the connection is below its limits for pending requests and unsent response
   bytes, and while the response budget allows it (budget.py). Requests are not served for a client that does
   not read its responses.
4. A request whose first bytes have arrived is read completely, as the request budget allows, even if serving
   is paused. Its deadline (kafka.compat.frame.timeout.ms) counts only the time during which the connection is
   read.
5. While the connection is muted because its client exceeds a quota (KIP-219), later requests wait, and at
   most FIRST_BYTES of them are read. If no request is waiting, a disconnection is detected at once, otherwise
   when the mute ends or the idle timeout passes. A mute does not keep a connection alive.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.api.api import Part
from kafka_compat.api.caller import Caller, Session
from kafka_compat.deferred import Deferred
from kafka_compat.network.admission import MAPPED
from kafka_compat.network.framing import FIRST_BYTES, READ_BYTES, Frame, FrameReader, InvalidFrame
from kafka_compat.network.host import Entrance, Host
from kafka_compat.network.output import SENDFILE_BYTES_MIN, Output, Slot
from kafka_compat.network.tls import TlsSocket, Wire
from kafka_compat.network.turns import TURN_S
from kafka_compat.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from kafka_compat.api.handler import RequestContext
    from kafka_compat.security.sasl.exchange import Exchange

log = logging.getLogger(__name__)

OUTSTANDING_REQUESTS_MAX: Final = 1024
UNSENT_BYTES_MAX: Final = 8 * 1024 * 1024
_SERIAL: Final = 1
_MUTED: Final = 2


class Connection:
    """The connection of one client. The server creates it for an accepted socket."""

    def __init__(
        self, server: Host, listener_name: str, accepted: socket.socket, peer: Any, entrance: Entrance | None
    ) -> None:
        """`entrance` is the listener's authentication, or None if the listener requires none."""
        self.server = server
        self.listener_name = listener_name
        self.peer_host, self.peer_port = (str(peer[0]), int(peer[1])) if peer else ("", 0)
        local_host, local_port = accepted.getsockname()[:2]
        # A socket for all addresses has IPv6 forms of IPv4 addresses, which not all clients can use.
        local_host = str(local_host).removeprefix(MAPPED)
        if server.reached_at is not None:
            local_host, local_port = server.reached_at(
                listener_name, self.peer_host.removeprefix(MAPPED), local_host, local_port
            )
        self.dispatch = server.dispatch
        """Function that serves a frame. `hold_out` replaces it until the client is authenticated."""
        self.authentication: Exchange | None = None
        """The state of the client's SASL authentication, or None if the listener does not use SASL."""
        self.session = Session(self)
        self.caller = Caller(
            ANONYMOUS,
            self.peer_host,
            listener_name,
            port=self.peer_port,
            local_host=local_host,
            local_port=int(local_port),
            session=self.session,
        )
        """The client's identity. It is replaced when the client authenticates or changes its client ID."""
        self.known: RequestContext | None = None
        """The last request's context. The next shares it if `kind`, `header` and the caller are the same."""
        self.kind = b""
        self.header = b""
        """The last request's API key and version, and its client ID with the fields around it, encoded."""
        self.last_active_s = monotonic()
        self.frame_started_s = 0.0
        self.closed = False
        self.parked: set[Deferred] = set()
        """Requests whose responses are not available yet. Closing the connection cancels them."""
        self.in_line = False
        self.began_slice = -1
        self._loop = server.loop
        self._turns = server.turns
        self._request_budget = server.request_budget
        self._answer_budget = server.answer_budget
        self._reader = FrameReader(server.limits.request_max_bytes)
        self._charged_bytes = 0
        self._was_served = False
        self._held = 0
        """_SERIAL, _MUTED, or both while requests must wait, or 0."""
        self._muted_until_s = 0.0
        self._mute_ends: asyncio.TimerHandle | None = None
        self._reading = True
        self._clock_stopped_s = 0.0
        self._closing = False
        accepted.setblocking(False)
        self._socket: Wire = accepted
        self._tls: TlsSocket | None = None
        if entrance is not None:
            tls = entrance.enter(self, accepted)
            if tls is not None:
                self._socket = self._tls = tls
        use_sendfile = server.use_sendfile and self._tls is None
        if use_sendfile:
            self.session.sendfile_bytes_min = SENDFILE_BYTES_MIN
        self._output = Output(
            server.loop, self._socket, server.answer_budget, use_sendfile, self.go_on, self._broke
        )
        self.respond = self._output.respond
        """Function that sends the response to the current request."""
        # Disable Nagle's algorithm, or a second response would wait 40 ms for a delayed acknowledgment.
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if server.limits.send_buffer_bytes > 0:
            # Use a buffer that fits the CPU cache: in a larger buffer, large fetches take twice the CPU time.
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, server.limits.send_buffer_bytes)
        server.loop.add_reader(accepted.fileno(), self._on_readable)

    @property
    def principal(self) -> Principal:
        """The client's principal, which is ANONYMOUS until the client is authenticated."""
        return self.caller.principal

    def _on_readable(self) -> None:
        now_s = monotonic()
        turns = self._turns
        if now_s >= turns.ends_s and not turns.begin(self, now_s):
            self._stop_clock(now_s)
            turns.line_up(self, first=self._was_served)
            return
        if self._read(now_s, now_s + TURN_S):
            turns.line_up(self, first=False)

    def take_turn(self, now_s: float, until_s: float) -> bool:
        """Serve one or more requests, until `until_s`. Return whether more requests can be served now."""
        if self._reader.unserved:
            return self._serve(now_s, until_s)
        if not self._reading:
            return False
        self._start_clock(now_s)
        return self._read(now_s, until_s)

    def let_in(self, principal: Principal) -> None:
        """Record that the client is authenticated as `principal`, and serve its requests."""
        self.caller = self.caller.with_principal(principal)
        self.dispatch = self.server.dispatch
        self.frame_started_s = 0.0
        self._reader.max_frame_bytes = self.server.limits.request_max_bytes
        self._reader.min_frame_bytes = 1

    def turn_away(self, reason: str, delay_ms: int = 0, answer: Callable[[], None] | None = None) -> None:
        """Reject the client, and serve no more requests. After `delay_ms`, which slows down password
        guessing, call `answer` and close the connection.
        """
        self.server.refused(self, reason)
        self.begin_serial()
        self._loop.call_later(delay_ms / 1000, self._turned_away, answer)

    def _turned_away(self, answer: Callable[[], None] | None) -> None:
        if not self.closed:
            if answer is not None:
                answer()
            self.close()

    def hold_out(self, dispatch: Callable[[Connection, Frame], bool], frame_max_bytes: int) -> None:
        """Pass frames of at most `frame_max_bytes` to `dispatch` until the client is authenticated."""
        self.dispatch = dispatch
        self._reader.max_frame_bytes = frame_max_bytes
        self._reader.min_frame_bytes = 0

    def _read(self, now_s: float, until_s: float) -> bool:
        reader = self._reader
        if self._answer_budget.short and not reader.mid_frame and not self._limits_hold():
            self._pause_reading()
            return False
        room = None if reader.partial is None else reader.room()
        data = b""
        try:
            if room is not None:
                count = self._socket.recv_into(room)
            else:
                is_limited = self._request_budget.short or self._held & _MUTED
                data = self._socket.recv(FIRST_BYTES if is_limited else READ_BYTES)
                count = len(data)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self.session.has_closed = isinstance(error, ConnectionResetError)
            self._broke(f"receiving failed: {error}")
            return False
        if not count:
            self.session.has_closed = True
            self.close()
            return False
        self.last_active_s = now_s
        self._was_served = True
        output, frame = self._output, None
        if room is not None:
            reader.filled(count)
        elif self._held or output.unsent_bytes or output.slots or self._answer_budget.short:
            reader.received(data)
        else:
            frame = reader.received_alone(data)
        has_more = False
        if frame is not None:
            self.frame_started_s = 0.0
            if not self.dispatch(self, frame):
                self.abort()
        if (
            frame is None
            or reader.held_bytes
            or self._charged_bytes
            or output.unsent_bytes
            or output.slots
            or self._answer_budget.short
        ):
            has_more = self._serve(now_s, until_s)
        tls = self._tls
        # Continue reading: bytes that TLS has already read from the socket do not make the socket readable.
        return has_more or (tls is not None and tls.has_more and self._reading and not self.closed)

    def _serve(self, now_s: float, until_s: float) -> bool:
        """Serve the complete frames until `until_s`. Return whether more frames could be served now."""
        reader = self._reader
        output = self._output
        dispatch = self.dispatch
        has_more = False
        rest = True
        try:
            # Check the limits only if responses are pending or memory is short: both are rare.
            free = not (output.unsent_bytes or output.slots or self._answer_budget.short)
            frame = None
            if (free or self._limits_hold()) and not self._held:
                frame = reader.next_frame()
            if frame is not None:
                self.frame_started_s = 0.0
                output.begin_batch()
                while frame is not None:
                    if not dispatch(self, frame):
                        output.end_batch()
                        self.abort()
                    if self.closed:
                        return False
                    rest = reader.unserved
                    if not rest:
                        break
                    output.send_large_batch()
                    if self._held or not self._limits_hold():
                        break
                    if monotonic() >= until_s:
                        has_more = True
                        break
                    frame = reader.next_frame()
                output.end_batch()
        except InvalidFrame as error:
            self.server.complain(self.peer_host, error)
            self.abort()
        if self.closed:
            return False
        if rest and reader.unserved:
            reader.keep_unserved()
            if not has_more:
                self._pause_reading()
        elif reader.held_bytes and reader.mid_frame:
            if self.frame_started_s == 0.0:
                self.frame_started_s = now_s
        elif (
            (output.unsent_bytes or output.slots or self._answer_budget.short)
            and self._reading
            and not self._limits_hold()
        ):
            self._pause_reading()
        if reader.held_bytes or self._charged_bytes:
            self._account()
        return has_more

    def _account(self) -> None:
        """Report this connection's memory use to the request budget, and request more memory if needed."""
        reader = self._reader
        budget = self._request_budget
        if not budget.keeps_spares:
            reader.release_spare()
        self._charge()
        if not reader.mid_frame:
            if budget.favoured is self and not reader.unserved:
                budget.leave(self)
        elif reader.wants_bytes:
            if reader.held_bytes + reader.wants_bytes <= FIRST_BYTES or (
                not self._held & _MUTED and budget.ask(self)
            ):
                reader.grow()
                self._charge()
            else:
                self._pause_reading()

    def _charge(self) -> None:
        charged_bytes = self._reader.held_bytes
        if charged_bytes <= FIRST_BYTES:
            charged_bytes = 0
        by_bytes = charged_bytes - self._charged_bytes
        if by_bytes:
            self._charged_bytes = charged_bytes
            self._request_budget.change(by_bytes)

    @property
    def wants_bytes(self) -> int:
        return self._reader.wants_bytes

    def grant_memory(self) -> None:
        """Allocate memory for the incomplete frame, because the request budget has room for it."""
        self._reader.grow()
        self._charge()
        self.go_on()

    def begin_serial(self) -> None:
        """Make later requests wait until `end_serial` is called."""
        self._held |= _SERIAL

    def end_serial(self) -> None:
        self._held &= ~_SERIAL
        self.go_on()

    def mute(self, for_s: float) -> None:
        """Mute the connection for `for_s` seconds (rule 5), unless it is already muted for longer."""
        until_s = monotonic() + for_s
        if self.closed or until_s <= self._muted_until_s:
            return
        self._muted_until_s = until_s
        self._held |= _MUTED
        if self._mute_ends is not None:
            self._mute_ends.cancel()
        self._mute_ends = self._loop.call_later(for_s, self._unmute)

    def unmute(self) -> None:
        """End the mute, if any, and serve the delayed requests."""
        if self._held & _MUTED:
            if self._mute_ends is not None:
                self._mute_ends.cancel()
            self._muted_until_s = 0.0
            self._unmute()

    def _unmute(self) -> None:
        self._held &= ~_MUTED
        self._mute_ends = None
        if self.closed:
            return
        if self._reader.wants_bytes:
            self._account()
        self.go_on()

    def add_slot(self, slot: Slot) -> Slot:
        """Reserve the position of the response to the current request. `complete` sets the response."""
        self._output.slots.append(slot)
        return slot

    def complete(self, slot: Slot, parts: list[Part] | None) -> None:
        """Set the response to an earlier request. `parts` is None if the request expects no response."""
        if not self.closed:
            self._output.complete(slot, parts)
            if not self._reading:
                self.go_on()

    def drop_later(self, slot: Slot) -> None:
        """Drop the responses to requests after the request of `slot`. The caller must then call `close`."""
        self._output.drop_later(slot)

    @property
    def answer_bytes(self) -> int:
        """Number of response bytes buffered in memory."""
        return self._output.memory_bytes

    @property
    def taken_s(self) -> float:
        """Time when the client last read queued response bytes, or when bytes were first queued."""
        return self._output.taken_s

    def _limits_hold(self, part: int = 1) -> bool:
        """Return whether rule 3 allows a request, if its connection limits are divided by `part`."""
        output = self._output
        return (
            output.unsent_bytes <= UNSENT_BYTES_MAX // part
            and len(output.slots) <= OUTSTANDING_REQUESTS_MAX // part
            and (not self._answer_budget.short or self._answer_budget.may_answer(self))
        )

    def _pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._stop_clock(monotonic())
            self._loop.remove_reader(self._socket.fileno())

    def _stop_clock(self, now_s: float) -> None:
        if not self._clock_stopped_s:
            self._clock_stopped_s = now_s

    def _start_clock(self, now_s: float) -> None:
        if self._clock_stopped_s:
            if self.frame_started_s:
                self.frame_started_s += now_s - self._clock_stopped_s
            self._clock_stopped_s = 0.0

    def go_on(self) -> None:
        """Resume reading and serving requests, unless the connection is muted, over a limit, or waiting for
        memory or a serial request. If it is closing, abort it once all output has been sent.
        """
        if self.closed:
            return
        if self._closing:
            if self._output.all_sent:
                self.abort()
            return
        reader = self._reader
        if self._reading or reader.wants_bytes:
            return
        if not reader.mid_frame and (self._held or not self._limits_hold(2)):
            return
        self._reading = True
        self._start_clock(monotonic())
        self._loop.add_reader(self._socket.fileno(), self._on_readable)
        if reader.unserved or (self._tls is not None and self._tls.has_more):
            self._turns.line_up(self, first=False)

    @property
    def idle(self) -> bool:
        """Whether no response to this client is pending."""
        return not self._output.slots and not self._held & _SERIAL

    @property
    def active_s(self) -> float:
        """Time in seconds when bytes were last received, or when queued bytes were last sent."""
        return max(self.last_active_s, self._output.taken_s)

    def frame_is_late(self, now_s: float, deadline_s: float) -> bool:
        """Return whether a frame is incomplete after `deadline_s` seconds, not counting pauses in reading."""
        started_s = self.frame_started_s
        return started_s > 0.0 and not self._clock_stopped_s and now_s - started_s > deadline_s

    def holds_up(self, now_s: float, stalled_s: float) -> bool:
        """Return whether requests occupy memory and the client has been inactive for `stalled_s` seconds."""
        return (
            self._charged_bytes > 0
            and now_s - self.active_s > stalled_s
            and not self._held & _SERIAL
            and not self.in_line
            and (not self._reader.wants_bytes or self._request_budget.favoured is self)
        )

    def release_memory(self) -> None:
        """Release the buffers kept for reuse. Called when the connection is idle."""
        self._reader.release_spare()
        self._charge()

    def _broke(self, reason: str) -> None:
        log.debug("Closed the connection from %s: %s", self.peer_host, reason)
        self.abort()

    def abort(self) -> None:
        """Close the connection at once, and drop unsent responses."""
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._socket.fileno())
            self._loop.call_soon(self.connection_lost)

    def close(self) -> None:
        """Close the connection after all responses have been sent."""
        if self.closed:
            return
        self._pause_reading()
        self._closing = True
        if self._output.all_sent:
            self.abort()

    def connection_lost(self) -> None:
        """Clean up after the connection was closed by either side."""
        if self._mute_ends is not None:
            # Cancel the timer: it may otherwise keep this connection in memory for hours.
            self._mute_ends.cancel()
        exchange = self.authentication
        if exchange is not None and exchange.unconfirmed is not None:
            self.server.refused(self, str(exchange.unconfirmed))
        self._output.clear()
        # Release the buffers, because other code may still refer to the connection.
        self._reader.close()
        self._socket.close()
        while self.parked:
            self.parked.pop().cancel()
        self.session.leave()
        self._answer_budget.leave(self)
        self._request_budget.leave(self)
        self._request_budget.change(-self._charged_bytes)
        self.server.forget(self)
