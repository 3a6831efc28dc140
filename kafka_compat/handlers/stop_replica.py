"""StopReplica (API key 5): the controller removes replicas from this broker, with or without deleting their
data. An old broker epoch is rejected with STALE_BROKER_EPOCH, an old controller epoch with
STALE_CONTROLLER_EPOCH, and an old leader epoch with FENCED_LEADER_EPOCH.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.cluster.leader_and_isr import stops_of
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from kafka_compat.security.authorizer import Operation


@handler(0, 4, cluster=True)
async def stop_replica(ctx: RequestContext, request: StopReplicaRequest) -> StopReplicaResponse:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    outcomes = await ctx.services.membership.orders.stop(
        request.controller_epoch, request.broker_epoch, stops_of(request)
    )
    if isinstance(outcomes, ErrorCode):
        return StopReplicaResponse(error_code=outcomes)
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(topic_name=topic, partition_index=index, error_code=code)
            for (topic, index), code in outcomes.items()
        ]
    )
