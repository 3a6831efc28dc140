"""DescribeClientQuotas (API key 48, KIP-546): return the stored quotas that match a filter."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import store_errors_mapped
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kafka_compat.quotas.client_quotas import Condition
from kafka_compat.security.authorizer import Operation

_EXACT, _DEFAULT, _ANY = range(3)


@handler(0, 1)
async def describe_client_quotas(
    ctx: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    require_cluster(ctx, Operation.DESCRIBE_CONFIGS)
    conditions = []
    for component in request.components:
        if component.match_type not in (_EXACT, _DEFAULT, _ANY):
            problem = f"Unexpected match type: {component.match_type}"
            return _refused(KafkaError(ErrorCode.INVALID_REQUEST, problem))
        name = component.match if component.match_type == _EXACT else None
        conditions.append(Condition(component.entity_type, name, component.match_type == _ANY))
    try:
        with store_errors_mapped():
            found = await ctx.services.client_quotas.describe(conditions, request.strict)
    except KafkaError as error:
        return _refused(error)
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            EntryData(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
                values=[ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in found
        ],
    )


def _refused(error: KafkaError) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
