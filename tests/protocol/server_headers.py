"""Reference implementation of request and response headers. The broker itself uses a faster one."""

from __future__ import annotations

import struct
from typing import Final

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.buffers import Buffer
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.headers import (
    RequestHeader,
    decode_client_id,
    flexible_from,
    has_flexible_response_header,
)

_START: Final = struct.Struct(">hhi")
_START_AND_CLIENT_ID_LENGTH: Final = struct.Struct(">hhih")
_RESPONSE: Final = struct.Struct(">i")
_FLEXIBLE_RESPONSE: Final = struct.Struct(">ix")


def decode_request_header(buffer: Buffer, position: int = 0) -> tuple[RequestHeader, int]:
    """Return the header at `position`, and the position of the request's body.

    The client id is never compact; tagged fields follow it in flexible versions of an API (KIP-482). Raises
    MalformedRequest, also for an API key without a schema, because the version of the header is then unknown.
    Versions above the newest known one are read as flexible, as ApiVersions requires (KIP-511).
    """
    try:
        api_key, api_version, correlation_id, length = _START_AND_CLIENT_ID_LENGTH.unpack_from(
            buffer, position
        )
    except struct.error:
        return _short_header(buffer, position)
    is_flexible = api_version >= flexible_from(api_key)
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0:
        return _short_header(buffer, position)
    client_id, body = decode_client_id(memoryview(buffer), position + 10, length, is_flexible)
    return RequestHeader(api_key, api_version, correlation_id, client_id), body


def encode_response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """Return the header before a response's body. `version` is the version of the request."""
    if has_flexible_response_header(api_key, version):
        return _FLEXIBLE_RESPONSE.pack(correlation_id)
    return _RESPONSE.pack(correlation_id)


def _short_header(buffer: Buffer, position: int) -> tuple[RequestHeader, int]:
    """Read version 0 of the header, which has no client id. Only ControlledShutdown version 0 uses it."""
    try:
        api_key, api_version, correlation_id = _START.unpack_from(buffer, position)
    except struct.error:
        raise MalformedRequest("request header: fewer than 8 bytes") from None
    if api_key != ApiKey.CONTROLLED_SHUTDOWN or api_version != 0:
        raise MalformedRequest("request header: no client id")
    return RequestHeader(api_key, api_version, correlation_id, None), position + 8
