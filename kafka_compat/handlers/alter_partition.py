"""AlterPartition (API key 56): a leader proposes in-sync replicas to the controller (KIP-497). Version 2
identifies topics by ID; version 3 includes broker epochs.
"""

from collections.abc import Hashable
from typing import Final
from uuid import UUID

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.cluster import controller_wire
from kafka_compat.coordination.controller.effects import AlterPartitionReply
from kafka_compat.coordination.controller.events import AlterPartitionRequested
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kafka_compat.security.authorizer import Operation

_FIRST_VERSION_WITH_INELIGIBLE: Final = 2


@handler(0, 3, cluster=True)
async def alter_partition(ctx: RequestContext, request: AlterPartitionRequest) -> AlterPartitionResponse:
    require_cluster(ctx, Operation.CLUSTER_ACTION)
    controller = ctx.services.membership.service
    names: dict[UUID, str] = {}

    def asked(request_id: Hashable) -> AlterPartitionRequested:
        for topic in request.topics:
            name = controller.topic_named(topic.topic_id)
            if name is not None:
                names[topic.topic_id] = name
        changes = controller_wire.isr_changes(request, ctx.api_version, names)
        return AlterPartitionRequested(
            request_id,
            request.broker_id,
            request.broker_epoch,
            changes,
            knows_ineligible=ctx.api_version >= _FIRST_VERSION_WITH_INELIGIBLE,
        )

    reply = await controller.ask(asked)
    if not isinstance(reply, AlterPartitionReply):
        return AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return controller_wire.alter_partition_response(request, ctx.api_version, names, reply)
