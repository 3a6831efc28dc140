"""LeaderAndIsr (key 4): the controller says what this broker leads and follows; each partition succeeds or
fails by itself. Fenced by broker epoch (77), controller epoch (11) and leader epochs (11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.network.request import RequestContext, handler
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.handlers.services import ClusterServices


@handler(ApiKey.LEADER_AND_ISR, 0, 7, cluster=True)
async def leader_and_isr(
    ctx: RequestContext[ClusterServices], request: LeaderAndIsrRequest
) -> LeaderAndIsrResponse:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    return await ctx.services.membership.orders.leader_and_isr(request, ctx.api_version)
