"""AlterPartitionReassignments (API key 45): start or cancel partition reassignments (KIP-455). Served only
by the controller, to which the other brokers of a quorum forward requests. Version 1 can forbid changes of
the replication factor (KIP-860).
"""

from typing import cast

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.coordination.controller.effects import ReassignmentReply
from kafka_compat.coordination.controller.events import ReassignmentRequested
from kafka_compat.coordination.controller.outcomes import ControllerError, TopicPartition
from kafka_compat.errors import NOT_THE_CONTROLLER, ErrorCode
from kafka_compat.handlers.forwarding import require_cluster_or_forwarder, response_of_controller
from kafka_compat.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kafka_compat.security.authorizer import Operation


@handler(0, 1)
async def alter_partition_reassignments(
    ctx: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    require_cluster_or_forwarder(ctx, Operation.ALTER)
    forwarded = await response_of_controller(ctx, request)
    if forwarded is not None:
        return cast(AlterPartitionReassignmentsResponse, forwarded)
    targets = {
        TopicPartition(topic.name, item.partition_index): (
            None if item.replicas is None else tuple(item.replicas)
        )
        for topic in request.topics
        for item in topic.partitions
    }
    may_change = request.allow_replication_factor_change
    reply = await ctx.services.controller.ask(
        lambda request_id: ReassignmentRequested(request_id, targets, may_change)
    )
    if not isinstance(reply, ReassignmentReply) or reply.error == ControllerError.NOT_CONTROLLER:
        return AlterPartitionReassignmentsResponse(
            error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_THE_CONTROLLER
        )
    topics: dict[str, ReassignableTopicResponse] = {}
    for (topic, index), outcome in reply.partitions.items():
        topics.setdefault(topic, ReassignableTopicResponse(name=topic, partitions=[])).partitions.append(
            ReassignablePartitionResponse(
                partition_index=index, error_code=outcome.error, error_message=outcome.message
            )
        )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change,
        error_code=reply.error,
        error_message=None,
        responses=list(topics.values()),
    )
