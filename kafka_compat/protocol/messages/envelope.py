"""Envelope (API key 58): a broker forwards a request of a client to the controller (KIP-590)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Bytes, Int16, NullableBytes, request, response


@request(ApiKey.ENVELOPE, versions="0", flexible="0+")
class EnvelopeRequest:
    """`request_data` is a whole request with its header; `request_principal` is serialized by the broker."""

    request_data: Bytes = b""
    request_principal: NullableBytes = b""
    client_host_address: Bytes = b""


@response(ApiKey.ENVELOPE, versions="0", flexible="0+")
class EnvelopeResponse:
    """`response_data` is a whole response with its header, null with an error."""

    response_data: NullableBytes = None
    error_code: Int16 = 0
