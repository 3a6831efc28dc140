"""GetTelemetrySubscriptions (API key 71): the metrics that a client should push (KIP-714)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID


@s.request(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest:
    """A client instance ID of zero requests a new ID."""

    client_instance_id: s.Uuid = ZERO_UUID


@s.response(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    """The metrics to push, and the push interval. "" in requested_metrics stands for all metrics."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    client_instance_id: s.Uuid = ZERO_UUID
    subscription_id: s.Int32 = 0
    accepted_compression_types: list[s.Int8] = []
    push_interval_ms: s.Int32 = 0
    telemetry_max_bytes: s.Int32 = 0
    delta_temporality: s.Bool = False
    requested_metrics: list[s.String] = []
