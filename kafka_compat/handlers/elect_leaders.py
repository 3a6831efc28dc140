"""ElectLeaders (API key 43): elect preferred or unclean leaders on request (KIP-460). Served only by the
controller. In a cluster with a quorum, other brokers forward the request; with ZooKeeper, they return
NOT_CONTROLLER for each partition, as in Kafka.
"""

from typing import Final, cast

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.cluster.controller_wire import partitions_of
from kafka_compat.coordination.controller.effects import ElectionReply
from kafka_compat.coordination.controller.events import ElectionRequested
from kafka_compat.coordination.controller.outcomes import (
    ControllerError,
    ElectionType,
    Outcome,
    TopicPartition,
)
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.forwarding import (
    is_forwarded,
    require_cluster_or_forwarder,
    response_of_controller,
)
from kafka_compat.long_work import gathered
from kafka_compat.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kafka_compat.security.authorizer import Operation

_FORWARDED_VERSION: Final = 2
"""Version 0 has no error code for the whole request."""


@handler(0, 2)
async def elect_leaders(ctx: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    require_cluster_or_forwarder(ctx, Operation.ALTER)
    if request.election_type not in (ElectionType.PREFERRED, ElectionType.UNCLEAN):
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
    forwarded = await response_of_controller(ctx, request, _FORWARDED_VERSION)
    if forwarded is not None:
        return cast(ElectLeadersResponse, forwarded)
    partitions = None
    if request.topic_partitions is not None:
        wanted = partitions_of((topic.topic, topic.partitions) for topic in request.topic_partitions)
        partitions = tuple(await ctx.long_work.finish(gathered(wanted)))
    reply = await ctx.services.controller.ask(
        lambda request_id: ElectionRequested(request_id, ElectionType(request.election_type), partitions)
    )
    if isinstance(reply, ElectionReply) and reply.error == ControllerError.NONE:
        outcomes = reply.partitions
    elif is_forwarded(ctx):
        return ElectLeadersResponse(error_code=ErrorCode.NOT_CONTROLLER)
    else:
        asked = partitions if partitions is not None else _all_partitions(ctx)
        outcomes = dict.fromkeys(asked, Outcome(ControllerError.NOT_CONTROLLER))
    topics: dict[str, ReplicaElectionResult] = {}
    turn = await ctx.long_work.begin()
    for (topic, index), outcome in outcomes.items():
        await turn.pause_if_due()
        result = topics.setdefault(topic, ReplicaElectionResult(topic=topic, partition_result=[]))
        result.partition_result.append(
            PartitionResult(partition_id=index, error_code=outcome.error, error_message=outcome.message)
        )
    return ElectLeadersResponse(replica_election_results=list(topics.values()))


def _all_partitions(ctx: RequestContext) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, item.partition)
        for topic in ctx.services.metadata.topics.values()
        for item in topic.partitions
    ]
