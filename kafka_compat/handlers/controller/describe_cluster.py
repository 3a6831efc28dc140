"""DescribeCluster (API key 60) on a controller listener: return the controllers (KIP-919)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.api.handler import handler
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import allowed_cluster_operations
from kafka_compat.handlers.controller.checks import node_of
from kafka_compat.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from kafka_compat.api.listener_context import ListenerContext

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


@handler(0, 2)
def describe_cluster(ctx: ListenerContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if ctx.api_version < 1 or request.endpoint_type != _CONTROLLERS:
        if ctx.api_version < 1 or request.endpoint_type == _BROKERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="The request was sent to an endpoint of type CONTROLLER, but we wanted an "
                "endpoint of type BROKER",
            )
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    node = node_of(ctx)
    controllers = []
    for node_id in sorted(node.machine.voters):
        address = node.peers.address_of(node_id)
        if address is not None:
            controllers.append(DescribeClusterBroker(broker_id=node_id, host=address[0], port=address[1]))
    return DescribeClusterResponse(
        endpoint_type=_CONTROLLERS,
        cluster_id=node.local.cluster_id,
        controller_id=node.machine.leader_id,
        brokers=controllers,
        cluster_authorized_operations=allowed_cluster_operations(
            ctx, request.include_cluster_authorized_operations
        ),
    )
