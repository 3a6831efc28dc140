"""ControlledShutdown (API key 7): move leadership from a broker that is shutting down. Served only by the
controller; other brokers return STALE_CONTROLLER_EPOCH, as in Kafka.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.coordination.controller.effects import ControlledShutdownReply
from kafka_compat.coordination.controller.events import ControlledShutdownRequested
from kafka_compat.coordination.controller.outcomes import ControllerError
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from kafka_compat.security.authorizer import Operation

_NO_EPOCH = -1
"""The broker epoch in request versions that do not contain one."""


@handler(0, 3, cluster=True)
async def controlled_shutdown(
    ctx: RequestContext, request: ControlledShutdownRequest
) -> ControlledShutdownResponse:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    reply = await ctx.services.membership.service.ask(
        lambda request_id: ControlledShutdownRequested(request_id, request.broker_id, request.broker_epoch)
    )
    if not isinstance(reply, ControlledShutdownReply) or reply.error == ControllerError.NOT_CONTROLLER:
        return ControlledShutdownResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    error = ErrorCode(reply.error)
    if error == ErrorCode.BROKER_NOT_AVAILABLE and request.broker_epoch != _NO_EPOCH:
        # Return the same error as Kafka, whose lookup of an unknown broker's epoch throws an exception.
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    return ControlledShutdownResponse(
        error_code=error,
        remaining_partitions=[
            RemainingPartition(topic_name=item.topic, partition_index=item.partition)
            for item in reply.remaining
        ],
    )
