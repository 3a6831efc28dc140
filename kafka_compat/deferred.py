"""A response that is completed after its handler returns."""

from collections.abc import Callable
from typing import Any, Protocol


class HungUp(Exception):
    """Raised to disconnect the client without a response, in cases where Kafka closes the connection."""


class Cancelable(Protocol):
    """Work that produces a response and can be canceled."""

    def cancel(self) -> None: ...


class Deferred:
    """The response to a request whose handler has returned. It is completed exactly once: with a response,
    with None if the request expects none, or by `hang_up`.

    Register a callback with `when_done`. After `cancel`, the response is never completed. If `is_serial` is
    true, later requests from the same client wait until `release` is called or the response is completed.
    """

    __slots__ = (
        "_on_done",
        "_on_release",
        "is_canceled",
        "is_done",
        "is_hung_up",
        "is_serial",
        "mangle",
        "response",
        "sent",
        "throttle_time_ms",
        "work",
    )

    def __init__(self, work: Cancelable | None = None, is_serial: bool = False) -> None:
        """`cancel` also cancels `work`. If `work` is None, only the response can be canceled."""
        self.work = work
        self.is_serial = is_serial
        self.is_done = False
        self.is_canceled = False
        self.is_hung_up = False
        self.response: Any = None
        self.throttle_time_ms = 0
        """The throttle time of the client in ms before its next request (KIP-219)."""
        self.mangle: Callable[[bytes], bytes] | None = None
        """Function that modifies the response bytes, including the size. If they become shorter, the client
        is disconnected.
        """
        self.sent: Callable[[int], None] | None = None
        """Function that is called with the size of the response in bytes when it is sent."""
        self._on_done: Callable[[Deferred], None] | None = None
        self._on_release: Callable[[], None] | None = None

    def complete(self, response: Any) -> None:
        """Set the response, or None if the request expects none."""
        if self.is_done:
            if self.is_canceled:
                return
            raise RuntimeError(f"a second response to a request: {type(response).__name__}")
        self.response = response
        self._end()

    def hang_up(self) -> None:
        """Disconnect the client without a response."""
        if not self.is_done:
            self.is_hung_up = True
            self._end()

    def _end(self) -> None:
        self.is_done = True
        # Break a reference cycle: `work` refers to this object.
        self.work = None
        done = self._on_done
        self._on_done = None
        if done is not None:
            done(self)
        if self.is_serial:
            self.release()

    def release(self) -> None:
        """Let later requests from the same client proceed."""
        self.is_serial = False
        released = self._on_release
        self._on_release = None
        if released is not None:
            released()

    def when_done(self, done: "Callable[[Deferred], None]") -> None:
        """Call `done` when the response is complete, or immediately if it already is."""
        if self.is_done:
            done(self)
        else:
            self._on_done = done

    def when_released(self, released: Callable[[], None]) -> None:
        """Call `released` when later requests may proceed, or immediately if they already may."""
        if self.is_serial:
            self._on_release = released
        else:
            released()

    def cancel(self) -> None:
        """Cancel the response, because it is no longer needed."""
        if not self.is_done:
            self.is_done = True
            self.is_canceled = True
            self._on_done = self._on_release = None
            work = self.work
            self.work = None
            if work is not None:
                work.cancel()

    def follow(self, other: "Deferred") -> None:
        """Complete this response, and release later requests, at the same time as `other`."""
        if self.is_canceled:
            other.cancel()
            return
        if self.is_serial and not other.is_serial:
            self.release()
        self.work = other
        other.when_done(self._followed)
        if other.is_serial:
            other.when_released(self.release)

    def _followed(self, other: "Deferred") -> None:
        self.mangle = other.mangle
        self.sent = other.sent
        self.throttle_time_ms = other.throttle_time_ms
        if other.is_hung_up:
            self.hang_up()
        else:
            self.complete(other.response)
