"""AlterConfigs (API key 33): replace a resource's settings. Deprecated by KIP-339, but used by AKHQ."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import as_kafka_error, config_message
from kafka_compat.errors import STANDARD_MESSAGES, ErrorCode, KafkaError
from kafka_compat.handlers.authorization import config_refusal
from kafka_compat.long_work import counted
from kafka_compat.protocol.messages import incremental_alter_configs
from kafka_compat.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from kafka_compat.security.authorizer import Operation

R = TypeVar("R", AlterConfigsResource, incremental_alter_configs.AlterConfigsResource)


@handler(0, 2)
async def alter_configs(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    async def alter(resource: AlterConfigsResource, refusal: KafkaError | None) -> None:
        kind, name = resource.resource_type, resource.resource_name
        settings = [(config.name, config.value) for config in resource.configs]
        await ctx.services.configs.alter(kind, name, settings, request.validate_only, refusal)

    return AlterConfigsResponse(responses=await alter_each(ctx, request.resources, alter, "AlterConfigs"))


async def alter_each(
    ctx: RequestContext,
    resources: Sequence[R],
    alter: Callable[[R, KafkaError | None], Awaitable[None]],
    api: str,
) -> list[AlterConfigsResourceResponse]:
    """Call `alter` with each resource and its authorization error, if any, and return the responses."""
    counts = await ctx.long_work.finish(
        counted((each.resource_type, each.resource_name) for each in resources)
    )
    responses = []
    turn = await ctx.long_work.begin()
    for resource in resources:
        kind, name = resource.resource_type, resource.resource_name
        response = AlterConfigsResourceResponse(error_message=None, resource_type=kind, resource_name=name)
        try:
            if counts[kind, name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            await alter(resource, config_refusal(ctx, Operation.ALTER_CONFIGS, kind, name))
        except Exception as error:
            failure = as_kafka_error(error, f"{api} for {name!r}")
            response.error_code = failure.code
            if failure.message != STANDARD_MESSAGES.get(failure.code):
                response.error_message = config_message(failure)
        responses.append(response)
        await turn.pause_if_due()
    return responses
