"""ListConfigResources (API key 74): return the names of resources that have settings.

Version 0 is called ListClientMetricsResources in Kafka 3.7, and lists only client metrics. Version 1 lists
the requested types, or all types if the request contains none (KIP-1142). Only groups that have settings are
listed.
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import store_errors_mapped
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.metadata.config_manager import ResourceType
from kafka_compat.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kafka_compat.security.authorizer import Operation

_TOLD_OF = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


@handler(0, 1)
async def list_config_resources(
    ctx: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    require_cluster(ctx, Operation.DESCRIBE_CONFIGS)
    known = _TOLD_OF if ctx.api_version >= 1 else (ResourceType.CLIENT_METRICS,)
    asked = set(request.resource_types) or set(known)
    if not asked.issubset(known):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    metadata = ctx.services.metadata
    names: list[tuple[int, str]] = []
    if ResourceType.GROUP in asked:
        with store_errors_mapped():
            groups = await ctx.services.configs.group_resources()
        names += [(ResourceType.GROUP, name) for name in groups]
    if ResourceType.CLIENT_METRICS in asked:
        with store_errors_mapped():
            found = await ctx.services.configs.client_metrics_resources()
        names += [(ResourceType.CLIENT_METRICS, name) for name in found]
    brokers = list(map(str, metadata.brokers))
    for kind in (ResourceType.BROKER_LOGGER, ResourceType.BROKER):
        if kind in asked:
            names += [(kind, name) for name in brokers]
    if ResourceType.TOPIC in asked:
        names += [(ResourceType.TOPIC, name) for name in metadata.topics]
    return ListConfigResourcesResponse(
        config_resources=[ConfigResource(resource_name=name, resource_type=kind) for kind, name in names]
    )
