"""kazoo's threads in the service of an event loop.

kazoo has one thread per connection, which reads what ZooKeeper sends. All of it is handed to the loop in its
order: an event that came before an answer is told before it, which is ZooKeeper's promise about watches.
kazoo's usual handlers have a thread for events and one for answers, and so lose that order.
"""

import asyncio
import contextlib
import socket as sockets
import threading
from collections.abc import Callable
from socket import socket as Socket
from typing import Any

from kazoo.handlers import utils
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import Callback
from kazoo.retry import RetryFailedError

OnResult = Callable[[Any, Exception | None], None]


class Result:
    """The answer to one request, in the form that kazoo fills in; `future` has it on the loop.

    `on_result(value, error)` runs on the loop at the answer's place in the order, before whoever awaits the
    future, and may raise an error that takes the answer's place.
    """

    def __init__(self, handler: "LoopHandler") -> None:
        self._handler = handler
        self.future: asyncio.Future[Any] = handler.loop.create_future()
        self.on_result: OnResult | None = None

    def set(self, value: Any = None) -> None:
        """kazoo has the answer."""
        self._handler.call(self._resolve, value, None)

    def set_exception(self, error: Exception) -> None:
        """kazoo has the error."""
        self._handler.call(self._resolve, None, error)

    def _resolve(self, value: Any, error: Exception | None) -> None:
        # kazoo may report one failure of the connection twice; an awaiting caller may have given up.
        if self.future.done():
            return
        if self.on_result:
            try:
                self.on_result(value, error)
            except Exception as replaced:
                error = replaced
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


class LoopHandler:
    """kazoo's IHandler without worker threads. Made on the loop that it serves; `connect_timeout_s` bounds
    one attempt to open a connection.
    """

    name = "event_loop_handler"
    timeout_exception = KazooTimeoutError
    running = True

    def __init__(self, connect_timeout_s: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.last_error: OSError | None = None
        self._connect_timeout_s = connect_timeout_s
        self._ended = threading.Event()

    def call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Run on the loop, after everything that was handed over before."""
        # The loop may have been closed before the connection's thread has ended.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *arguments)

    def end(self) -> None:
        """Have the connection's thread end instead of connecting again. From any thread."""
        self._ended.set()

    def sleep_func(self, seconds: float) -> None:
        """The wait before another attempt."""
        if self._ended.wait(seconds):
            raise RetryFailedError("the session is over")

    def create_connection(self, *arguments: Any, **named: Any) -> Socket:
        """A connection to a server; OSError when there is none, or when the session is over."""
        if self._ended.is_set():
            raise ConnectionAbortedError("the session is over")
        named["timeout"] = min(named.get("timeout") or self._connect_timeout_s, self._connect_timeout_s)
        try:
            opened: Socket = utils.create_tcp_connection(sockets, *arguments, **named)
        except OSError as error:
            self.last_error = error
            raise
        return opened

    def start(self) -> None:
        """Nothing to start: the loop runs."""

    def stop(self) -> None:
        """Nothing to stop."""

    def async_result(self) -> Result:
        return Result(self)

    def dispatch_callback(self, callback: Callback) -> None:
        self.call(callback.func, *callback.args)

    def spawn(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> threading.Thread:
        thread = threading.Thread(
            target=function, args=arguments, kwargs=named, name="zookeeper-connection", daemon=True
        )
        thread.start()
        return thread

    def select(self, *arguments: Any, **named: Any) -> Any:
        return utils.selector_select(*arguments, **named)

    def socket(self) -> Socket:
        created: Socket = utils.create_tcp_socket(sockets)
        return created

    def create_socket_pair(self) -> tuple[Socket, Socket]:
        return sockets.socketpair()

    def event_object(self) -> threading.Event:
        return threading.Event()

    def lock_object(self) -> Any:
        return threading.Lock()

    def rlock_object(self) -> Any:
        return threading.RLock()
