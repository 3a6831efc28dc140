"""PushTelemetry (API key 72): push a client's metrics to the broker (KIP-714)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.request(ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryRequest:
    """`metrics` contains OTLP data, compressed with compression_type. `terminating` marks the last push."""

    client_instance_id: s.Uuid = ZERO_UUID
    subscription_id: s.Int32 = 0
    terminating: s.Bool = False
    compression_type: s.Int8 = 0
    metrics: s.Bytes = b""


@s.response(ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryResponse:
    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
