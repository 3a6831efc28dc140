"""Headers as a broker reads and writes them, whole and one by one: the broker itself has a quicker way."""

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
    """The header at `position` and the position of the request's body.

    The client id is never compact; tagged fields follow it in the flexible versions of an API (KIP-482).
    Raises MalformedRequest, also for a key of which no schema is known: nothing then tells the header's own
    version. A version above the newest known one is read as flexible, as ApiVersions needs it (KIP-511).
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
    """The header before a response's body; `version` is that of the request."""
    if has_flexible_response_header(api_key, version):
        return _FLEXIBLE_RESPONSE.pack(correlation_id)
    return _RESPONSE.pack(correlation_id)


def _short_header(buffer: Buffer, position: int) -> tuple[RequestHeader, int]:
    """Version 0 of the header, without a client id: ControlledShutdown 0 alone has it."""
    try:
        api_key, api_version, correlation_id = _START.unpack_from(buffer, position)
    except struct.error:
        raise MalformedRequest("request header: fewer than 8 bytes") from None
    if api_key != ApiKey.CONTROLLED_SHUTDOWN or api_version != 0:
        raise MalformedRequest("request header: no client id")
    return RequestHeader(api_key, api_version, correlation_id, None), position + 8
