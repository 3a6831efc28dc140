"""AlterConfigs (key 33): give a resource a whole new set of settings. Deprecated by KIP-339, still used by
AKHQ."""

from __future__ import annotations

from kafka_compat.api.declaration import handler
from kafka_compat.api.request import RequestContext
from kafka_compat.error_mapping import as_kafka_error, config_message
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import config_refusal
from kafka_compat.long_work import counted
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kafka_compat.security.authorizer import Operation


@handler(ApiKey.ALTER_CONFIGS, 0, 2)
async def alter_configs(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    counts = await ctx.long_work.finish(
        counted((item.resource_type, item.resource_name) for item in request.resources)
    )
    response = AlterConfigsResponse()
    turn = await ctx.long_work.begin()
    for item in request.resources:
        repeated = counts[item.resource_type, item.resource_name] > 1
        response.responses.append(await _alter(ctx, item, request.validate_only, repeated))
        await turn.pause_if_due()
    return response


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
        kind, name = resource.resource_type, resource.resource_name
        refusal = config_refusal(ctx, Operation.ALTER_CONFIGS, kind, name)
        await ctx.services.configs.alter(kind, name, settings, validate_only, refusal)
    except Exception as error:
        told = as_kafka_error(error, f"AlterConfigs of {resource.resource_name!r}")
        response.error_code = told.code
        response.error_message = config_message(told)
    return response
