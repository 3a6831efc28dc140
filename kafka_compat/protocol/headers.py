"""Request and response headers (message definitions RequestHeader and ResponseHeader)."""

from __future__ import annotations

import struct
from functools import cache
from typing import Final, NamedTuple

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.buffers import Buffer, skip_tagged_fields, uvarint
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.messages import request_class
from kafka_compat.protocol.schema import schema_of
from kafka_compat.protocol.versions import HIGHEST

_START: Final = struct.Struct(">hhi")
_RESPONSE: Final = struct.Struct(">i")
_SHORT: Final = struct.Struct(">h")


class RequestHeader(NamedTuple):
    """The header of a request. `api_key` may be unknown; `client_id` is None if the client sent null."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_client_id(
    buffer: bytes | memoryview, position: int, length: int, is_flexible: bool
) -> tuple[str | None, int]:
    """Decode a request header starting at the client ID, which has `length` bytes (-1 if it is null). Return
    the client ID and the position of the request's body. Raises MalformedRequest if the header is invalid.
    """
    client_id = None
    if length >= 0:
        start = position
        position += length
        if position > len(buffer):
            raise MalformedRequest(f"request header: client id of {length} bytes extends past the end")
        raw = buffer[start:position] if isinstance(buffer, bytes) else bytes(buffer[start:position])
        try:
            client_id = raw.decode()
        except UnicodeDecodeError as error:
            raise MalformedRequest(f"request header: client id is not UTF-8: {error.reason}") from None
    if is_flexible:
        try:
            count = buffer[position]
            position += 1
            if count:
                position = skip_tagged_fields(buffer, position, count)
        except (IndexError, ValueError) as cut:
            raise MalformedRequest(f"request header: tagged fields: {cut}") from None
    return client_id, position


def encode_request_header(header: RequestHeader) -> bytes:
    start = _START.pack(header.api_key, header.api_version, header.correlation_id)
    if header.api_key == ApiKey.CONTROLLED_SHUTDOWN and header.api_version == 0:
        return start
    client_id = None if header.client_id is None else header.client_id.encode()
    text = _SHORT.pack(-1) if client_id is None else _SHORT.pack(len(client_id)) + client_id
    tags = uvarint(0) if header.api_version >= flexible_from(header.api_key) else b""
    return start + text + tags


def decode_response_header(api_key: int, version: int, buffer: Buffer, position: int = 0) -> tuple[int, int]:
    """Decode a response header, for clients. Return the correlation ID and the position of the body."""
    try:
        (correlation_id,) = _RESPONSE.unpack_from(buffer, position)
        position += 4
        if has_flexible_response_header(api_key, version):
            position = skip_tagged_fields(buffer, position + 1, buffer[position])
    except (struct.error, IndexError, ValueError) as error:
        raise MalformedRequest(f"response header: {error}") from None
    return correlation_id, position


def has_flexible_response_header(api_key: int, version: int) -> bool:
    """Return whether a response header has tagged fields. Headers of ApiVersions responses never do, because
    the client may not know the broker's versions yet (KIP-511).
    """
    return version >= flexible_from(api_key) and api_key != ApiKey.API_VERSIONS


@cache
def flexible_from(api_key: int) -> int:
    """Return the first version of an API whose header has tagged fields."""
    try:
        flexible = schema_of(request_class(api_key)).flexible
    except LookupError:
        raise MalformedRequest(f"request header: unknown API key {api_key}") from None
    return flexible.low if flexible.high >= flexible.low else HIGHEST + 1
