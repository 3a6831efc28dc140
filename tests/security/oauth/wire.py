"""A SASL client that sends raw frames."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Any

from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.headers import RequestHeader, encode_request_header
from kafka_compat.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafka_compat.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafka_compat.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

_TIMEOUT_S = 20


class Wire:
    """One connection, as a context manager. Methods raise EOFError if the broker has closed it."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), _TIMEOUT_S)
        self._stream = self._socket.makefile("rb")

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    def handshake(self, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
        request = SaslHandshakeRequest(mechanism=mechanism)
        answer = self._ask(ApiKey.SASL_HANDSHAKE, version, request, SaslHandshakeResponse)
        assert isinstance(answer, SaslHandshakeResponse)
        return answer

    def authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = self._ask(ApiKey.SASL_AUTHENTICATE, 1, request, SaslAuthenticateResponse)
        assert isinstance(answer, SaslAuthenticateResponse)
        return answer

    def metadata(self) -> MetadataResponse:
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        answer = self._ask(ApiKey.METADATA, 4, request, MetadataResponse)
        assert isinstance(answer, MetadataResponse)
        return answer

    def send(self, content: bytes) -> None:
        """Send a frame without a Kafka header."""
        self._socket.sendall(struct.pack(">i", len(content)) + content)

    def frame(self, content: bytes) -> bytes:
        """Send a frame without a Kafka header, and return the response frame."""
        self.send(content)
        try:
            size = self._stream.read(4)
        except ConnectionResetError:
            size = b""
        if len(size) < 4:
            raise EOFError
        return self._stream.read(*struct.unpack(">i", size))

    def _ask(self, key: ApiKey, version: int, request: Any, response: type[Any]) -> Any:
        header = encode_request_header(RequestHeader(key, version, 1, "tests"))
        return codec.decode(response, version, self.frame(header + codec.encode(request, version)), 4)


def login(port: int, mechanism: str, tokens: Sequence[bytes]) -> list[object]:
    """Authenticate with tokens. For each token, return (error code, error message, auth bytes, whether the
    session expires). The last item is "served" or "closed".
    """
    seen: list[object] = []
    with Wire(port) as wire:
        assert wire.handshake(mechanism).error_code == 0
        try:
            for token in tokens:
                answer = wire.authenticate(token)
                lasts = answer.session_lifetime_ms > 0
                seen.append((answer.error_code, answer.error_message, bytes(answer.auth_bytes), lasts))
                if not answer.error_code and not answer.auth_bytes:
                    break
            wire.metadata()
            seen.append("served")
        except EOFError:
            seen.append("closed")
    return seen
