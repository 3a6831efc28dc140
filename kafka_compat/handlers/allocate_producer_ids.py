"""AllocateProducerIds (API key 67): the controller assigns a broker its next producer ID block (KIP-730)."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.store.metadata_store import MetadataStoreError, NoNode
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.metadata.producer_ids import claim_block
from kafka_compat.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kafka_compat.security.authorizer import Operation


@handler(0, 0, cluster=True)
async def allocate_producer_ids(
    ctx: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    cluster = ctx.services.membership
    if not cluster.service.is_active:
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        _, stat = await cluster.store.get(znodes.broker_path(request.broker_id))
        if stat.czxid != request.broker_epoch:
            return AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        block = await claim_block(cluster.store, request.broker_id)
    except NoNode:
        return AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
    except MalformedNode as error:
        cluster.service.tell_of_malformed(error, "no producer IDs are allocated")
        return AllocateProducerIdsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    except MetadataStoreError:
        # The session has been lost or has expired, so this broker is no longer the controller.
        return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return AllocateProducerIdsResponse(
        producer_id_start=block.first, producer_id_len=block.last - block.first + 1
    )
