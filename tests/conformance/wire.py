"""A raw client: requests as plain dicts, answers as plain dicts, one blocking socket per connection."""

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
    """A message (or one of its structs) from a dict of its fields; what is not given has its default."""
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
    """The message as dicts, lists and values; records as bytes."""
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
    """A whole request frame."""
    header = headers.encode_request_header(RequestHeader(api_key, version, correlation_id, client_id))
    return frame(header + codec.encode(build(request_class(api_key), request), version))


class Closed(AssertionError):
    """The broker closed the connection instead of answering."""


class Connection:
    """One connection to a broker, from whatever address of this machine, or from that of `source`."""

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
        """Send raw bytes; a peer that has already closed is noticed by `receive`."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def receive(self) -> bytes:
        """The next response without its length. Raises Closed at the end, TimeoutError when none comes."""
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
        """Send a request and return the decoded answer, checked to its last byte."""
        self.begin(api_key, version, request)
        return self.finish(api_key, version)

    def begin(self, api_key: ApiKey, version: int, request: Plain) -> None:
        """Send a request without waiting for its answer, which `finish` gets."""
        self._asked = next(self._ids)
        self.send(encode(api_key, version, request, self._asked, self._client_id))

    def finish(self, api_key: ApiKey, version: int) -> Plain:
        """The decoded answer to what `begin` sent."""
        answer = self.receive()
        found, position = headers.decode_response_header(api_key, version, answer)
        assert found == self._asked
        decoded = codec.decode(response_class(api_key), version, answer, position, exact=True)
        result: Plain = plain(decoded)
        return result

    def closed_by_peer(self, timeout_s: float = 10) -> bool:
        """Whether the broker closes the connection within that time without another byte."""
        self._socket.settimeout(timeout_s)
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    def wait_up_to(self, timeout_s: float) -> None:
        """For how long answers are waited for from now on."""
        self._socket.settimeout(timeout_s)

    def hears_nothing(self, for_s: float = 0.3) -> bool:
        """Whether no byte comes within that time, and the connection stays."""
        return not select.select([self._socket], [], [], for_s)[0]

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
