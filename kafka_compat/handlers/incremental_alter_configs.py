"""IncrementalAlterConfigs (key 44, KIP-339): set, delete, append to or subtract from settings of a
resource."""

from __future__ import annotations

from collections import Counter

from kafka_compat.configs import Change
from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@handler(ApiKey.INCREMENTAL_ALTER_CONFIGS)
async def incremental_alter_configs(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    counts = Counter((item.resource_type, item.resource_name) for item in request.resources)
    return IncrementalAlterConfigsResponse(
        responses=[
            await _alter(ctx, item, request.validate_only, counts[item.resource_type, item.resource_name] > 1)
            for item in request.resources
        ]
    )


async def _alter(
    ctx: RequestContext, resource: AlterConfigsResource, validate_only: bool, repeated: bool
) -> AlterConfigsResourceResponse:
    response = AlterConfigsResourceResponse(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        if repeated:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        changes = [Change(config.name, config.config_operation, config.value) for config in resource.configs]
        await ctx.broker.configs.alter_incrementally(
            resource.resource_type, resource.resource_name, changes, validate_only
        )
    except KafkaError as error:
        response.error_code = error.code
        response.error_message = error.message
    return response
