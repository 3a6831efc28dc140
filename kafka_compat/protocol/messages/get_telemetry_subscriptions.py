"""GetTelemetrySubscriptions (API key 71): which metrics a client is asked to push (KIP-714)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import ZERO_UUID, Bool, Int8, Int16, Int32, String, Uuid, request, response


@request(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest:
    """A zero id asks for a new one."""

    client_instance_id: Uuid = ZERO_UUID


@response(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    """What to push and how often; an empty string among the metrics stands for all."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    client_instance_id: Uuid = ZERO_UUID
    subscription_id: Int32 = 0
    accepted_compression_types: list[Int8] = []
    push_interval_ms: Int32 = 0
    telemetry_max_bytes: Int32 = 0
    delta_temporality: Bool = False
    requested_metrics: list[String] = []
