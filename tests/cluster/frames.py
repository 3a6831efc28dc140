"""Protocol frames, for tests that act as a broker."""

from __future__ import annotations

import asyncio

from kafka_compat.protocol import codec, messages
from tests.protocol.server_headers import decode_request_header, encode_response_header


async def read_request(reader: asyncio.StreamReader) -> tuple[int, int, int, object]:
    frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    header, position = decode_request_header(frame)
    request = codec.decode(messages.request_class(header.api_key), header.api_version, frame, position)
    return header.api_key, header.api_version, header.correlation_id, request


def frame_of(key: int, version: int, correlation_id: int, response: object) -> bytes:
    payload = encode_response_header(key, version, correlation_id) + codec.encode(response, version)
    return len(payload).to_bytes(4, "big") + payload
