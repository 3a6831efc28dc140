"""DescribeConfigs (key 32). Version 1 tells where a value comes from, 3 its type and documentation (KIP-226,
KIP-569)."""

from __future__ import annotations

from kafka_compat.config.synonyms import ConfigEntry
from kafka_compat.configs import ResourceType
from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


@handler(ApiKey.DESCRIBE_CONFIGS)
async def describe_configs(ctx: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    unknown = [
        item for item in request.resources if item.resource_type not in ResourceType.__members__.values()
    ]
    if unknown:
        # Kafka refuses the request as a whole.
        return DescribeConfigsResponse(results=[_refused(item, unknown[0]) for item in request.resources])
    return DescribeConfigsResponse(
        results=[await _describe(ctx, request, resource) for resource in request.resources]
    )


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
        entries = await ctx.broker.configs.describe(
            resource.resource_type, resource.resource_name, resource.configuration_keys
        )
    except KafkaError as error:
        result.error_code = error.code
        result.error_message = error.message
        return result
    result.configs = [
        _result(entry, request.include_synonyms, request.include_documentation) for entry in entries
    ]
    return result


def _result(
    entry: ConfigEntry, include_synonyms: bool, include_documentation: bool
) -> DescribeConfigsResourceResult:
    documentation = None
    if include_documentation:
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
