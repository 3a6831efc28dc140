"""AlterClientQuotas (API key 49, KIP-546): store quotas and notify all brokers."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.error_mapping import store_errors_mapped
from kafka_compat.errors import KafkaError
from kafka_compat.handlers.authorization import require_cluster
from kafka_compat.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    EntryData,
)
from kafka_compat.quotas.client_quotas import Change
from kafka_compat.security.authorizer import Operation


@handler(0, 1)
async def alter_client_quotas(
    ctx: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    require_cluster(ctx, Operation.ALTER_CONFIGS)
    response = AlterClientQuotasResponse()
    turn = await ctx.long_work.begin()
    for entry in request.entries:
        response.entries.append(await _alter(ctx, entry, request.validate_only))
        await turn.pause_if_due()
    return response


async def _alter(
    ctx: RequestContext, entry: EntryData, validate_only: bool
) -> AlterClientQuotasResponseEntryData:
    answer = AlterClientQuotasResponseEntryData(error_message=None, entity=entry.entity)
    entity = {item.entity_type: item.entity_name for item in entry.entity}
    changes = [Change(item.key, None if item.remove else item.value) for item in entry.ops]
    try:
        with store_errors_mapped():
            await ctx.services.client_quotas.alter(entity, changes, validate_only)
    except KafkaError as error:
        answer.error_code, answer.error_message = error.code, error.message
    return answer
