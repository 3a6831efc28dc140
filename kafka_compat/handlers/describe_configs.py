"""DescribeConfigs (API key 32): return the settings of resources. Version 1 adds sources (KIP-226), and
version 3 adds types and documentation (KIP-569).
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.config.synonyms import ConfigEntry, ConfigSource
from kafka_compat.error_mapping import as_kafka_error, config_message
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import config_refusal
from kafka_compat.long_work import batched
from kafka_compat.metadata.config_manager import ResourceType
from kafka_compat.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kafka_compat.security.authorizer import Operation

_Asked = tuple[int, str, tuple[str, ...] | None]
_KNOWN_TYPES = frozenset(ResourceType)
_REFUSED = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)


@handler(0, 4)
async def describe_configs(ctx: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    response = DescribeConfigsResponse()
    turn = await ctx.long_work.begin()
    unknown = next((item for item in request.resources if item.resource_type not in _KNOWN_TYPES), None)
    if unknown is not None:
        # As in Kafka, an unknown resource type fails the whole request.
        for some in batched(request.resources):
            response.results += [_refused(item, unknown) for item in some]
            await turn.pause_if_due()
        return response
    described: dict[_Asked, DescribeConfigsResult] = {}
    refused: list[DescribeConfigsResult] = []
    for resource in request.resources:
        keys = resource.configuration_keys
        asked = resource.resource_type, resource.resource_name, None if keys is None else tuple(keys)
        result = described.get(asked)
        if result is None:
            # Look up a repeated resource only once, and keep only one copy of it in memory.
            result = described[asked] = await _describe(ctx, request, resource)
        (refused if result.error_code in _REFUSED else response.results).append(result)
        await turn.pause_if_due()
    response.results += refused
    return response


def _refused(resource: DescribeConfigsResource, unknown: DescribeConfigsResource) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=ErrorCode.INVALID_REQUEST,
        error_message=f"Unexpected resource type {unknown.resource_type} for {unknown.resource_name}",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


async def _describe(
    ctx: RequestContext, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        kind, name = resource.resource_type, resource.resource_name
        refusal = config_refusal(ctx, Operation.DESCRIBE_CONFIGS, kind, name)
        if refusal is not None:
            # Raise a copy to avoid a reference cycle: the traceback of `refusal` would refer to this frame.
            raise KafkaError(refusal.code, refusal.message)
        entries = await ctx.services.configs.describe(kind, name, resource.configuration_keys)
    except Exception as error:
        failure = as_kafka_error(error, f"DescribeConfigs for {resource.resource_name!r}")
        result.error_code, result.error_message = failure.code, config_message(failure)
        return result
    result.configs = [
        _result(entry, request.include_synonyms, request.include_documentation) for entry in entries
    ]
    return result


def _result(
    entry: ConfigEntry, include_synonyms: bool, include_documentation: bool
) -> DescribeConfigsResourceResult:
    documentation = "" if entry.source is ConfigSource.DYNAMIC_BROKER_LOGGER else None
    if include_documentation and entry.about is not None:
        documentation = entry.about
    if include_documentation and documentation is None:
        from kafka_compat.config.documentation import document

        documentation = document(entry.name)
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=item.name, value=item.value, source=item.source)
            for item in (entry.synonyms if include_synonyms else ())
        ],
        config_type=entry.type,
        documentation=documentation,
    )
