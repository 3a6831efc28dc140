"""IncrementalAlterConfigs (key 44, KIP-339): set, delete, append to or subtract from settings of a
resource."""

from __future__ import annotations

from kafka_compat.api.declaration import handler
from kafka_compat.api.request import RequestContext
from kafka_compat.error_mapping import as_kafka_error, config_message
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import config_refusal
from kafka_compat.long_work import counted
from kafka_compat.metadata.incremental_changes import Change
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafka_compat.security.authorizer import Operation


@handler(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1)
async def incremental_alter_configs(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    counts = await ctx.long_work.finish(
        counted((item.resource_type, item.resource_name) for item in request.resources)
    )
    response = IncrementalAlterConfigsResponse()
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
        changes = [Change(config.name, config.config_operation, config.value) for config in resource.configs]
        kind, name = resource.resource_type, resource.resource_name
        refusal = config_refusal(ctx, Operation.ALTER_CONFIGS, kind, name)
        await ctx.services.configs.alter_incrementally(kind, name, changes, validate_only, refusal)
    except Exception as error:
        told = as_kafka_error(error, f"IncrementalAlterConfigs of {resource.resource_name!r}")
        response.error_code = told.code
        response.error_message = config_message(told)
    return response
