"""StopReplica (key 5): the controller says what this broker holds no more, and what of it to delete. Fenced
by broker epoch (77), controller epoch (11) and leader epochs (74).
"""

from __future__ import annotations

from kafka_compat.cluster.handling import cluster_broker
from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)


@handler(ApiKey.STOP_REPLICA)
async def stop_replica(ctx: RequestContext, request: StopReplicaRequest) -> StopReplicaResponse:
    broker = cluster_broker(ctx)
    await broker.until_registered()
    refused = broker.refusal(request.controller_epoch, request.broker_epoch)
    if refused:
        return StopReplicaResponse(error_code=refused)
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(topic_name=topic, partition_index=index, error_code=code)
            for (topic, index), code in broker.states.stop(request).items()
        ]
    )
