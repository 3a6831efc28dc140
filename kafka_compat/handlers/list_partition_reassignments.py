"""ListPartitionReassignments (API key 46, KIP-455): return reassignments. Served only by the controller,
to which the other brokers of a quorum forward requests.
"""

from typing import cast

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.cluster.controller_wire import partitions_of
from kafka_compat.coordination.controller.effects import ReassignmentsReply
from kafka_compat.coordination.controller.events import ReassignmentsListed
from kafka_compat.coordination.controller.outcomes import ControllerError
from kafka_compat.errors import NOT_THE_CONTROLLER, ErrorCode
from kafka_compat.handlers.forwarding import require_cluster_or_forwarder, response_of_controller
from kafka_compat.long_work import gathered
from kafka_compat.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kafka_compat.security.authorizer import Operation


@handler(0, 0)
async def list_partition_reassignments(
    ctx: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    require_cluster_or_forwarder(ctx, Operation.DESCRIBE)
    forwarded = await response_of_controller(ctx, request)
    if forwarded is not None:
        return cast(ListPartitionReassignmentsResponse, forwarded)
    partitions = None
    if request.topics is not None:
        wanted = partitions_of((topic.name, topic.partition_indexes) for topic in request.topics)
        partitions = tuple(await ctx.long_work.finish(gathered(wanted)))
    reply = await ctx.services.controller.ask(lambda request_id: ReassignmentsListed(request_id, partitions))
    if not isinstance(reply, ReassignmentsReply) or reply.error == ControllerError.NOT_CONTROLLER:
        return ListPartitionReassignmentsResponse(
            error_code=ErrorCode.NOT_CONTROLLER, error_message=NOT_THE_CONTROLLER
        )
    topics: dict[str, OngoingTopicReassignment] = {}
    for (topic, index), assignment in reply.partitions.items():
        topics.setdefault(topic, OngoingTopicReassignment(name=topic, partitions=[])).partitions.append(
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding),
                removing_replicas=list(assignment.removing),
            )
        )
    return ListPartitionReassignmentsResponse(
        error_code=reply.error, error_message=None, topics=list(topics.values())
    )
