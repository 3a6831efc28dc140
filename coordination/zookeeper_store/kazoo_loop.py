"""Adapter between kazoo's connection threads and an asyncio event loop.

kazoo reads ZooKeeper's messages in one thread per connection. This adapter passes the messages to the event
loop in order: an event that arrived before a response is delivered before that response, as ZooKeeper
guarantees for watches. kazoo's own handlers lose this order, because they use separate threads for events and
responses.
"""

import asyncio
import contextlib
import socket as sockets
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from socket import socket as Socket
from typing import Any, Final

from kazoo import exceptions as kazoo_errors
from kazoo.exceptions import AuthFailedError, ConnectionDropped
from kazoo.handlers import utils
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import SASL
from kazoo.protocol.states import Callback
from kazoo.retry import RetryFailedError

from kafka_compat.coordination.store import metadata_store as stores
from kafka_compat.coordination.store.metadata_store import MetadataStoreError
from kafka_compat.coordination.zookeeper_store.digest_md5 import DigestError, DigestMd5Client
from kafka_compat.coordination.zookeeper_store.security import DigestLogin, Tls, Unusable

OnResult = Callable[[Any, Exception | None], None]
Select = Callable[..., Any]

_READ_BYTES: Final = 65536

_ERRORS: dict[type[Exception], type[MetadataStoreError]] = {
    kazoo_errors.NoNodeError: stores.NoNode,
    kazoo_errors.NodeExistsError: stores.NodeExists,
    kazoo_errors.BadVersionError: stores.BadVersion,
    kazoo_errors.NotEmptyError: stores.NotEmpty,
    kazoo_errors.NoChildrenForEphemeralsError: stores.NoChildrenForEphemerals,
    kazoo_errors.SessionExpiredError: stores.SessionExpired,
    kazoo_errors.ConnectionLoss: stores.ConnectionLost,
    kazoo_errors.ConnectionClosedError: stores.ConnectionLost,
    kazoo_errors.SessionMovedError: stores.ConnectionLost,
    kazoo_errors.OperationTimeoutError: stores.ConnectionLost,
    KazooTimeoutError: stores.ConnectionLost,
    kazoo_errors.NoAuthError: stores.NotAllowed,
    kazoo_errors.InvalidACLError: stores.NotAllowed,
    kazoo_errors.SessionClosedRequireSaslError: stores.LoginFailed,
}

_ADVICE: dict[type[Exception], str] = {
    kazoo_errors.NoAuthError: (
        "the node's ACL in ZooKeeper denies this: was it created with another login or certificate?"
    ),
    kazoo_errors.InvalidACLError: (
        "ZooKeeper has not authenticated this broker, but zookeeper.set.acl=true: does it request "
        "certificates (ssl.clientAuth), or have a login for it?"
    ),
    kazoo_errors.SessionClosedRequireSaslError: (
        "ZooKeeper requires a login (kafka.compat.zookeeper.sasl.jaas.config)"
    ),
}

_LOGIN_REFUSED: Final = (kazoo_errors.AuthFailedError.code, kazoo_errors.SessionClosedRequireSaslError.code)


class TlsStream:
    """A TLS connection in the form that kazoo's reader expects: a non-blocking socket for one thread.

    The reader waits with select(), which detects TLS records but not their content. A record may contain
    several responses, which the reader reads one at a time, so data may be available although the socket is
    not readable. A record, such as a TLS 1.3 ticket, may also contain no data. In that case, the socket is
    readable, but a reader would wait for a response that never arrives.
    """

    def __init__(self, connection: ssl.SSLSocket, explain: Callable[[OSError], OSError]) -> None:
        """`explain` converts a connection error to the error that the reader raises."""
        self._connection = connection
        self._explain = explain
        self._received = bytearray()
        self._failure: OSError | None = None
        self._ended = False

    def fileno(self) -> int:
        return self._connection.fileno()

    def setblocking(self, flag: bool) -> None:
        self._connection.setblocking(flag)

    def close(self) -> None:
        self._connection.close()

    def send(self, data: Any) -> int:
        """Send data, and return the number of bytes sent. Raises SSLWantReadError or SSLWantWriteError."""
        return self._connection.send(data)

    def pending(self) -> int:
        """Return the number of bytes that are available without reading from the socket."""
        return len(self._received)

    def recv(self, size: int) -> bytes:
        """Return up to `size` bytes, or b"" at the end. Raises ssl.SSLWantReadError if there is no data."""
        if not self._received and not self.fill():
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "nothing to read")
        if self._received:
            taken = bytes(self._received[:size])
            del self._received[:size]
            return taken
        if self._failure is not None:
            raise self._failure
        return b""

    def fill(self) -> bool:
        """Read available data from the socket, and return whether `recv` can return data."""
        while not self._ended:
            try:
                data = self._connection.recv(_READ_BYTES)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except OSError as error:
                self._failure = self._explain(error)
                data = b""
            self._ended = not data
            self._received += data
        return bool(self._received) or self._ended


def select_streams(
    plain: Select,
    reading: Sequence[Any],
    writing: Sequence[Any],
    failing: Sequence[Any],
    timeout: float | None,
) -> tuple[list[Any], list[Any], list[Any]]:
    """Call `plain`, a select() function, but report a TlsStream with buffered data as readable at once."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        waiting = [item for item in reading if isinstance(item, TlsStream) and item.pending()]
        left = 0.0 if waiting else None if deadline is None else max(0.0, deadline - time.monotonic())
        found, writable, failed = plain(reading, writing, failing, left)
        readable = waiting + [
            item for item in found if item not in waiting and (not isinstance(item, TlsStream) or item.fill())
        ]
        if readable or writable or failed or (left == 0.0 and not found):
            return readable, writable, failed


class Result:
    """The result of one request, set by kazoo. `future` receives the result on the event loop.

    `on_result(value, error)` runs on the event loop, in the order of responses, before the future is done. It
    may raise an error that replaces the result.
    """

    def __init__(self, handler: "LoopHandler") -> None:
        self._handler = handler
        self.future: asyncio.Future[Any] = handler.loop.create_future()
        self.on_result: OnResult | None = None

    def set(self, value: Any = None) -> None:
        """Pass a response from kazoo to the event loop."""
        self._handler.call(self._resolve, value, None)

    def set_exception(self, error: Exception) -> None:
        """Pass an error from kazoo to the event loop."""
        self._handler.call(self._resolve, None, error)

    def _resolve(self, value: Any, error: Exception | None) -> None:
        # kazoo may report a connection failure twice, and the caller may have been canceled.
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


def translated(error: Exception, path: str) -> MetadataStoreError:
    """Translate a kazoo error for a node into a MetadataStoreError."""
    advice = _ADVICE.get(type(error))
    return _ERRORS.get(type(error), MetadataStoreError)(
        f"{path}: {advice}" if advice else path if type(error) in _ERRORS else f"{path}: {error!r}"
    )


class LoopHandler:
    """An implementation of kazoo's IHandler without worker threads. It must be created in its event loop.
    `connect_timeout_s` is the maximum time of one connection attempt. With `tls`, connections use TLS.
    """

    name = "event_loop_handler"
    timeout_exception = KazooTimeoutError
    running = True

    def __init__(self, connect_timeout_s: float, tls: Tls | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.last_error: OSError | None = None
        self._tls = tls
        self._connect_timeout_s = connect_timeout_s
        self._ended = threading.Event()

    def call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function on the event loop, after all earlier calls."""
        # Ignore a closed event loop, because the connection's thread may outlive it.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *arguments)

    def end(self) -> None:
        """Make the connection's thread end instead of reconnecting. May be called from any thread."""
        self._ended.set()

    def sleep_func(self, seconds: float) -> None:
        """Wait before another connection attempt. Raises RetryFailedError if the session has ended."""
        if self._ended.wait(seconds):
            raise RetryFailedError("the session has ended")

    @property
    def other_form(self) -> str:
        """A clause about the protocol (TLS or plaintext) that an unresponsive server may expect."""
        return "it uses plain text" if self._tls else "it uses TLS (zookeeper.ssl.client.enable)"

    def create_connection(self, *arguments: Any, **named: Any) -> Socket | TlsStream:
        """Connect to a server. Raises OSError if this fails or the session has ended."""
        if self._ended.is_set():
            raise ConnectionAbortedError("the session has ended")
        named["timeout"] = min(named.get("timeout") or self._connect_timeout_s, self._connect_timeout_s)
        try:
            opened: Socket = utils.create_tcp_connection(sockets, *arguments, **named)
            tls = self._tls
            if tls is None:
                return opened
            try:
                opened.settimeout(named["timeout"])
                return TlsStream(tls.wrap(opened, named["hostname"]), self._explained)
            except BaseException:
                opened.close()
                raise
        except OSError as error:
            self.last_error = error
            raise

    def _explained(self, error: OSError) -> OSError:
        assert self._tls is not None
        self.last_error = self._tls.explain(error)
        return self.last_error

    def start(self) -> None:
        """Do nothing, because the loop is already running."""

    def stop(self) -> None:
        """Do nothing, because the loop belongs to the caller."""

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

    def select(self, reading: Any, writing: Any, failing: Any, timeout: float | None = None) -> Any:
        if self._tls is None:
            return utils.selector_select(reading, writing, failing, timeout)
        return select_streams(utils.selector_select, reading, writing, failing, timeout)

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


class Connection(ConnectionHandler):  # type: ignore[misc]
    """A kazoo connection that authenticates before the session is used, and explains why a session failed.

    kazoo itself treats the loss of a connection during authentication as a wrong password, and does not
    verify the server's proof.
    """

    def __init__(
        self,
        client: Any,
        retry: Any,
        login: DigestLogin | None,
        on_login: Callable[[], None],
        on_refused: Callable[[str], None],
    ) -> None:
        """Both callbacks run in the connection's thread: `on_login` after each authentication, and
        `on_refused` before the session is lost because authentication failed.
        """
        super().__init__(client, retry, sasl_options=None if login is None else {})
        self._login = login
        self._on_login = on_login
        self._on_refused = on_refused

    def _connect(self, host: str, hostip: str, port: int) -> Any:
        try:
            return super()._connect(host, hostip, port)
        except (ConnectionDropped, KazooTimeoutError):
            if self._socket is not None and not isinstance(self.handler.last_error, Unusable):
                why = f"either it is not ready, or {self.handler.other_form}"
                self.handler.last_error = ConnectionError(f"{host}:{port} did not respond: {why}")
            raise

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:
        """Authenticate a new connection before kazoo uses it. Raises AuthFailedError to end the session."""
        assert self._login is not None
        exchange = DigestMd5Client(self._login.username, self._login.password)
        token = b""
        for xid in (1, 2):
            challenge = self._ask(SASL(token), xid, host, timeout)
            try:
                token = exchange.evaluate(challenge)
            except DigestError as error:
                raise self._refused(
                    f"ZooKeeper at {host} did not authenticate this broker: {error}. Check that its JAAS "
                    "file has a section named Server with a DigestLoginModule"
                ) from error
        self._on_login()

    def _ask(self, request: SASL, xid: int, host: str, timeout: float) -> bytes:
        assert self._login is not None
        self._submit(request, timeout, xid)
        try:
            header, buffer, offset = self._read_header(timeout)
        except ConnectionDropped as error:
            # The password may be wrong (old servers then close the connection), or the server has failed.
            why = f"ZooKeeper at {host} closed the connection during the login. Check {self._login.setting}"
            self.handler.last_error = Unusable(why)
            raise ConnectionDropped(why) from error
        if header.err in _LOGIN_REFUSED:
            raise self._refused(
                f"ZooKeeper at {host} rejected the login of {self._login.username}. Check the username and "
                f"password in {self._login.setting}"
            )
        if header.err or header.xid != xid:
            raise ConnectionDropped(f"error {header.err} at the login")
        if header.zxid > 0:
            self.client.last_zxid = header.zxid
        challenge, _ = SASL.deserialize(buffer, offset)
        return challenge or b""

    def _refused(self, why: str) -> AuthFailedError:
        self._on_refused(why)
        return AuthFailedError(why)
