"""AlterConfigs (key 33): give a resource a whole new set of settings. Deprecated by KIP-339, still used by
AKHQ."""

from __future__ import annotations

from collections import Counter

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


@handler(ApiKey.ALTER_CONFIGS)
async def alter_configs(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    counts = Counter((item.resource_type, item.resource_name) for item in request.resources)
    return AlterConfigsResponse(
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
        settings = [(config.name, config.value) for config in resource.configs]
        await ctx.broker.configs.alter(
            resource.resource_type, resource.resource_name, settings, validate_only
        )
    except KafkaError as error:
        response.error_code = error.code
        response.error_message = error.message
    return response
