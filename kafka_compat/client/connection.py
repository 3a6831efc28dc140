"""A connection to one broker. Requests are sent, and their responses received, in order."""

import socket
import struct
from typing import Any, Final

from kafka_compat.protocol import codec, headers
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.headers import RequestHeader
from kafka_compat.protocol.messages import request_class, response_class

_SIZE: Final = struct.Struct(">i")
_ANSWER_BYTES_MIN: Final = 4
_ANSWER_BYTES_MAX: Final = 100 * 1024 * 1024


class Connection:
    """A blocking, single-threaded connection to a broker."""

    def __init__(self, opened: socket.socket, client_id: str | None) -> None:
        """`opened` is a connected socket, with TLS if required. Its timeout applies to each call."""
        self._socket = opened
        self._client_id = client_id
        self._asked = 0

    def set_timeout(self, timeout_s: float) -> None:
        """Set the timeout of later calls."""
        self._socket.settimeout(timeout_s)

    def ask(self, key: ApiKey, version: int, /, **request: Any) -> Any:
        """Send a request with the fields `request`, and return its response. Raises OSError if the connection
        fails, EOFError if the broker closes it, and ValueError if the response is invalid.
        """
        self.send(key, version, request_class(key)(**request))
        return self.receive(key, version)

    def send(self, key: ApiKey, version: int, request: Any) -> None:
        """Send a request, without waiting for its response. Raises OSError if the connection fails."""
        self._asked += 1
        header = headers.encode_request_header(RequestHeader(key, version, self._asked, self._client_id))
        body = codec.encode(request, version)
        self._socket.sendall(_SIZE.pack(len(header) + len(body)) + header + body)

    def receive(self, key: ApiKey, version: int) -> Any:
        """Return the response to the oldest outstanding request. Raises the same errors as `ask`."""
        start = self._exactly(_SIZE.size)
        (size,) = _SIZE.unpack(start)
        if not _ANSWER_BYTES_MIN <= size <= _ANSWER_BYTES_MAX:
            raise ValueError(f"the response is not from a Kafka broker: it begins with {start!r}")
        answer = self._exactly(size)
        _, position = headers.decode_response_header(key, version, answer)
        return codec.decode(response_class(key), version, answer, position)

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            part = self._socket.recv(size - len(found))
            if not part:
                raise EOFError("the broker closed the connection")
            found += part
        return bytes(found)

    def close(self) -> None:
        self._socket.close()
