"""AllocateProducerIds (key 67): the controller gives a broker its next block of producer ids (KIP-730)."""

from __future__ import annotations

from coordination import znodes
from coordination.metadata_store import MetadataStoreError, NoNode
from kafka_compat.cluster.handling import cluster_broker
from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.producer_ids import claim_block
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


@handler(ApiKey.ALLOCATE_PRODUCER_IDS)
async def allocate_producer_ids(
    ctx: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    broker = cluster_broker(ctx)
    if not broker.controller.is_active:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        _, stat = await broker.store.get(znodes.broker_path(request.broker_id))
        if stat.czxid != request.broker_epoch:
            return AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        block = await claim_block(broker.store, request.broker_id)
    except NoNode:
        return AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
    except MetadataStoreError:
        # The session is broken or over: another broker is the controller, or will be.
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return AllocateProducerIdsResponse(
        producer_id_start=block.first, producer_id_len=block.last - block.first + 1
    )
