"""LeaderAndIsr (API key 4): the controller assigns partitions to this broker, as leader or as follower. Each
partition succeeds or fails individually. An old broker epoch is rejected with STALE_BROKER_EPOCH, an old
controller epoch or leader epoch with STALE_CONTROLLER_EPOCH.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.cluster.leader_and_isr import Key, states_of
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from kafka_compat.security.authorizer import Operation


@handler(0, 7, cluster=True)
async def leader_and_isr(ctx: RequestContext, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    states = await ctx.services.long_work.finish(states_of(request))
    addresses = {leader.broker_id: (leader.host_name, leader.port) for leader in request.live_leaders}
    outcomes = await ctx.services.membership.orders.lead_and_follow(
        request.controller_epoch, request.broker_epoch, states, addresses
    )
    error = ErrorCode.NONE
    if isinstance(outcomes, ErrorCode):
        error = outcomes
        outcomes = {(state.topic, state.partition): error for state in states}
    if ctx.api_version < 5:
        errors = [
            LeaderAndIsrPartitionError(topic_name=topic, partition_index=index, error_code=code)
            for (topic, index), code in outcomes.items()
        ]
        return LeaderAndIsrResponse(error_code=error, partition_errors=errors)
    return LeaderAndIsrResponse(error_code=error, topics=_by_topic(request, outcomes))


def _by_topic(request: LeaderAndIsrRequest, outcomes: dict[Key, ErrorCode]) -> list[LeaderAndIsrTopicError]:
    return [
        LeaderAndIsrTopicError(
            topic_id=topic.topic_id,
            partition_errors=[
                LeaderAndIsrPartitionError(
                    partition_index=state.partition_index,
                    error_code=outcomes[topic.topic_name, state.partition_index],
                )
                for state in topic.partition_states
            ],
        )
        for topic in request.topic_states
    ]
