"""Request and response headers."""

from __future__ import annotations

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.protocol.headers import RequestHeader, decode_response_header, encode_request_header
from tests.protocol.server_headers import decode_request_header, encode_response_header


@pytest.mark.parametrize(
    ("header", "content"),
    [
        (RequestHeader(ApiKey.PRODUCE, 8, 7, "me"), "0000 0008 00000007 0002 6d65"),
        (RequestHeader(ApiKey.PRODUCE, 9, 7, "me"), "0000 0009 00000007 0002 6d65 00"),
        (RequestHeader(ApiKey.METADATA, 1, -1, None), "0003 0001 ffffffff ffff"),
        (RequestHeader(ApiKey.API_VERSIONS, 3, 1, ""), "0012 0003 00000001 0000 00"),
        (RequestHeader(ApiKey.CONTROLLED_SHUTDOWN, 0, 1, None), "0007 0000 00000001"),
        (RequestHeader(ApiKey.SASL_HANDSHAKE, 1, 2, "c"), "0011 0001 00000002 0001 63"),
    ],
    ids=["plain", "flexible", "null client id", "empty client id", "no client id at all", "never flexible"],
)
def test_request_headers_have_the_expected_wire_format(header: RequestHeader, content: str) -> None:
    wire = bytes.fromhex(content)
    assert encode_request_header(header) == wire
    assert decode_request_header(memoryview(b"xx" + wire + b"body"), 2) == (header, 2 + len(wire))


def test_every_truncated_header_is_reported_as_malformed() -> None:
    wire = encode_request_header(RequestHeader(ApiKey.FETCH, 12, 7, "client"))
    for length in range(len(wire)):
        with pytest.raises(MalformedRequest, match="request header"):
            decode_request_header(wire[:length])


def test_tagged_fields_of_a_header_are_skipped() -> None:
    plain = encode_request_header(RequestHeader(ApiKey.FETCH, 12, 7, "client"))
    header, body = decode_request_header(plain[:-1] + b"\x01\x05\x02ab" + b"body")
    assert (header.client_id, body) == ("client", len(plain) + 4)


def test_the_header_of_a_future_api_versions_request_is_readable() -> None:
    wire = bytes.fromhex("0012 7fff 00000009 0001 61 00")
    assert decode_request_header(wire) == (RequestHeader(ApiKey.API_VERSIONS, 32767, 9, "a"), len(wire))


def test_a_header_with_an_unknown_api_key_is_reported_as_malformed() -> None:
    with pytest.raises(MalformedRequest, match="unknown API key 999"):
        decode_request_header(bytes.fromhex("03e7 0000 00000001 ffff"))


@pytest.mark.parametrize(
    ("api_key", "version", "content"),
    [(ApiKey.FETCH, 11, "00000005"), (ApiKey.FETCH, 12, "0000000500"), (ApiKey.API_VERSIONS, 4, "00000005")],
)
def test_response_headers_have_the_expected_wire_format(api_key: ApiKey, version: int, content: str) -> None:
    wire = bytes.fromhex(content)
    assert encode_response_header(api_key, version, 5) == wire
    assert decode_response_header(api_key, version, wire) == (5, len(wire))
