"""IncrementalAlterConfigs (API key 44, KIP-339): change, extend or delete individual settings."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import KafkaError
from kafka_compat.handlers.alter_configs import alter_each
from kafka_compat.long_work import gathered
from kafka_compat.metadata.incremental_changes import Change
from kafka_compat.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@handler(0, 1)
async def incremental_alter_configs(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    async def alter(resource: AlterConfigsResource, refusal: KafkaError | None) -> None:
        kind, name = resource.resource_type, resource.resource_name
        changes = await ctx.long_work.finish(
            gathered(
                Change(config.name, config.config_operation, config.value) for config in resource.configs
            )
        )
        await ctx.services.configs.alter_incrementally(kind, name, changes, request.validate_only, refusal)

    responses = await alter_each(ctx, request.resources, alter, "IncrementalAlterConfigs")
    return IncrementalAlterConfigsResponse(responses=responses)
