"""PushTelemetry (API key 72, KIP-714): accept a client's metrics, and serve them at /metrics.

Metrics are decompressed and parsed in another thread. As in Kafka, no authorization is required.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.handlers.get_telemetry_subscriptions import client_of, forget_at_the_end
from kafka_compat.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from kafka_compat.telemetry.instances import Push


@handler(0, 0, telemetry=True)
async def push_telemetry(ctx: RequestContext, request: PushTelemetryRequest) -> PushTelemetryResponse:
    telemetry = ctx.services.telemetry
    await telemetry.ready()
    instance_id, metrics = request.client_instance_id, request.metrics
    push = Push(request.subscription_id, request.terminating, request.compression_type, len(metrics))
    steps = telemetry.push(instance_id, client_of(ctx), push, metrics)
    forget_at_the_end(ctx.caller, telemetry, instance_id)
    return PushTelemetryResponse(error_code=await ctx.long_work.finish(steps))
