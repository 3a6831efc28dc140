"""A raw client: requests and responses are plain dicts, and each connection is one blocking socket."""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import struct
from typing import Any

from kafka_compat.protocol import codec, headers
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.headers import RequestHeader
from kafka_compat.protocol.messages import request_class, response_class
from kafka_compat.protocol.schema import ArrayOf, fields_of

Plain = dict[str, Any]

CLIENT_ID = "conformance"


def build(cls: type, plain: Plain) -> Any:
    """Return a message or struct built from a dict of its fields. Missing fields have their defaults."""
    given = dict(plain)
    for spec in fields_of(cls):
        if spec.name not in given:
            continue
        value = given[spec.name]
        if isinstance(spec.type, ArrayOf) and isinstance(spec.type.element, type) and value is not None:
            given[spec.name] = [build(spec.type.element, item) for item in value]
        elif isinstance(spec.type, type) and isinstance(value, dict):
            given[spec.name] = build(spec.type, value)
    return cls(**given)


def plain(message: Any) -> Any:
    """Return the message as dicts, lists and values, with records as bytes."""
    if isinstance(message, list):
        return [plain(item) for item in message]
    if isinstance(message, memoryview):
        return bytes(message)
    if hasattr(type(message), "__fields__"):
        return {spec.name: plain(getattr(message, spec.name)) for spec in fields_of(type(message))}
    return message


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def encode(
    api_key: int, version: int, request: Plain, correlation_id: int = 1, client_id: str | None = CLIENT_ID
) -> bytes:
    """Return a whole request frame."""
    header = headers.encode_request_header(RequestHeader(api_key, version, correlation_id, client_id))
    return frame(header + codec.encode(build(request_class(api_key), request), version))


class Closed(AssertionError):
    """The broker closed the connection without a response."""


class Connection:
    """A connection to a broker, from the local address `source` if given."""

    def __init__(
        self,
        address: str,
        timeout_s: float = 15,
        client_id: str | None = CLIENT_ID,
        *,
        source: str | None = None,
    ) -> None:
        host, port = address.split(":")
        come_from = None if source is None else (source, 0)
        self._socket = socket.create_connection((host, int(port)), timeout_s, come_from)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ids = itertools.count(1)
        self._client_id = client_id
        self._asked = 0

    def send(self, data: bytes) -> None:
        """Send raw bytes. If the peer has already closed the connection, `receive` reports it."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def receive(self) -> bytes:
        """Return the next response without its length. Raises Closed if the connection is closed, and
        TimeoutError if no response arrives.
        """
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            try:
                part = self._socket.recv(size - len(found))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Closed("the broker closed the connection")
            found += part
        return bytes(found)

    def ask(self, api_key: ApiKey, version: int, request: Plain) -> Plain:
        """Send a request and return the decoded response, which must have no trailing bytes."""
        self.begin(api_key, version, request)
        return self.finish(api_key, version)

    def begin(self, api_key: ApiKey, version: int, request: Plain) -> None:
        """Send a request without waiting for the response, which `finish` returns."""
        self._asked = next(self._ids)
        self.send(encode(api_key, version, request, self._asked, self._client_id))

    def finish(self, api_key: ApiKey, version: int) -> Plain:
        """Return the decoded response to a request sent by `begin`."""
        answer = self.receive()
        found, position = headers.decode_response_header(api_key, version, answer)
        assert found == self._asked
        decoded = codec.decode(response_class(api_key), version, answer, position, exact=True)
        result: Plain = plain(decoded)
        return result

    def closed_by_peer(self, timeout_s: float = 10) -> bool:
        """Return whether the broker closes the connection within `timeout_s` without sending anything."""
        self._socket.settimeout(timeout_s)
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def wait_up_to(self, timeout_s: float) -> None:
        """Set the timeout for later responses."""
        self._socket.settimeout(timeout_s)

    def hears_nothing(self, for_s: float = 0.3) -> bool:
        """Return whether the connection stays open without receiving anything for `for_s`."""
        return not select.select([self._socket], [], [], for_s)[0]

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
