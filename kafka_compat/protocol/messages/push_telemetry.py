"""PushTelemetry (API key 72): metrics of a client (KIP-714)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import ZERO_UUID, Bool, Bytes, Int8, Int16, Int32, Uuid, request, response


@request(ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryRequest:
    """`metrics` are OTLP, compressed as compression_type says; `terminating` is the last push."""

    client_instance_id: Uuid = ZERO_UUID
    subscription_id: Int32 = 0
    terminating: Bool = False
    compression_type: Int8 = 0
    metrics: Bytes = b""


@response(ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryResponse:
    """Whether the push was taken."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
