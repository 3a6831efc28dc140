"""DescribeCluster (API key 60): return the brokers and the controller (KIP-700). Version 1 adds the endpoint
type (KIP-919).
"""

from collections.abc import Coroutine
from typing import Any

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import allowed_cluster_operations
from kafka_compat.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS = 1
_CONTROLLERS = 2


@handler(0, 2)
def describe_cluster(
    ctx: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse | Coroutine[Any, Any, DescribeClusterResponse]:
    if ctx.api_version >= 1 and request.endpoint_type != _BROKERS:
        if request.endpoint_type == _CONTROLLERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint "
                "of type CONTROLLER",
            )
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    return _answer(ctx, request) if ctx.services.metadata.brokers else _once_known(ctx, request)


async def _once_known(ctx: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Wait for the cluster metadata and respond. Until it arrives, a new broker knows no brokers."""
    await ctx.services.await_metadata()
    return _answer(ctx, request)


def _answer(ctx: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    cache = ctx.services.metadata
    brokers = []
    for broker in cache.brokers.values():
        host, port = ctx.services.address_for(broker, ctx.caller)
        brokers.append(
            DescribeClusterBroker(broker_id=broker.broker_id, host=host, port=port, rack=broker.rack)
        )
    return DescribeClusterResponse(
        cluster_id=cache.cluster_id,
        controller_id=cache.controller_for_clients,
        brokers=brokers,
        cluster_authorized_operations=allowed_cluster_operations(
            ctx, request.include_cluster_authorized_operations
        ),
    )
