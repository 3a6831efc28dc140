"""UpdateMetadata (key 6): the controller says what this broker answers Metadata with. Fenced by broker epoch
(77) and controller epoch (11).
"""

from __future__ import annotations

from kafka_compat.cluster.handling import cluster_broker
from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


@handler(ApiKey.UPDATE_METADATA)
async def update_metadata(ctx: RequestContext, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    broker = cluster_broker(ctx)
    await broker.until_registered()
    refused = broker.refusal(request.controller_epoch, request.broker_epoch)
    if not refused:
        broker.update_metadata(request)
    return UpdateMetadataResponse(error_code=refused)
