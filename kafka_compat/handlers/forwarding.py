"""Requests that only the controller serves: in a cluster with a quorum, other brokers forward them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_compat.cluster.forwarding import CLIENT_ID_PREFIX
from kafka_compat.handlers.authorization import cluster_allows, require_cluster
from kafka_compat.security.authorizer import Operation

if TYPE_CHECKING:
    from kafka_compat.api.handler import RequestContext


def is_forwarded(ctx: RequestContext) -> bool:
    """Return whether another broker has forwarded the request."""
    is_forwarder = ctx.client_id is not None and ctx.client_id.startswith(CLIENT_ID_PREFIX)
    return is_forwarder and ctx.services.membership.forwarding is not None


def require_cluster_or_forwarder(ctx: RequestContext, operation: Operation) -> None:
    """Raise KafkaError unless the operation on the cluster is allowed, or a broker has forwarded the request.
    The forwarding broker has already checked the client's permission. It needs CLUSTER_ACTION itself.
    """
    if is_forwarded(ctx) and cluster_allows(ctx, Operation.CLUSTER_ACTION, logged=False):
        return
    require_cluster(ctx, operation)


async def response_of_controller(ctx: RequestContext, request: Any, version: int | None = None) -> Any | None:
    """Forward a request, in its own or another version, and return the controller's response. Return None if
    this broker must respond. Raises KafkaError if no controller responds within the request's timeout.
    """
    forwarding = ctx.services.membership.forwarding
    if forwarding is None or ctx.services.controller.is_active or is_forwarded(ctx):
        return None
    version = ctx.api_version if version is None else version
    return await forwarding.ask(ctx.api_key, version, request, request.timeout_ms)
