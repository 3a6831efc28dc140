"""GetTelemetrySubscriptions (API key 71, KIP-714): return the metrics that a client should push, and the push
interval.

Served only if the broker accepts pushed metrics. As in Kafka, no authorization is required.
"""

from functools import partial
from typing import Final
from uuid import UUID

from kafka_compat.api.caller import Caller
from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kafka_compat.storage.records.kinds import CompressionType
from kafka_compat.telemetry.service import ClientTelemetry
from kafka_compat.telemetry.subscriptions import Client

_COMPRESSION_TYPES: Final = [
    CompressionType.ZSTD,
    CompressionType.LZ4,
    CompressionType.GZIP,
    CompressionType.SNAPPY,
]
"""Compression types in order of preference. Clients use the first type that they support."""


@handler(0, 0, telemetry=True)
async def get_telemetry_subscriptions(
    ctx: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    telemetry = ctx.services.telemetry
    await telemetry.ready()
    instance_id, found = telemetry.ask(request.client_instance_id, client_of(ctx))
    forget_at_the_end(ctx.caller, telemetry, instance_id)
    if isinstance(found, ErrorCode):
        return GetTelemetrySubscriptionsResponse(error_code=found)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=found.wanted.subscription_id,
        accepted_compression_types=list(_COMPRESSION_TYPES),
        push_interval_ms=found.wanted.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=list(found.wanted.metrics),
    )


def client_of(ctx: RequestContext) -> Client:
    """Return the attributes of the client that sent a request."""
    caller = ctx.caller
    return Client(
        caller.client_id, caller.software_name, caller.software_version, caller.host, str(caller.port)
    )


def forget_at_the_end(caller: Caller, telemetry: ClientTelemetry, instance_id: UUID) -> None:
    """Remove a client instance when its connection closes. The last call for a connection takes effect."""
    if not caller.session.has_left:
        caller.session.when_left(telemetry, partial(telemetry.forget, instance_id))
