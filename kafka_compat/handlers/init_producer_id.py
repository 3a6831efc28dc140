"""InitProducerId (API key 22): assign an ID and epoch to an idempotent or transactional producer (KIP-98).

A producer without a transactional ID always gets a new producer ID. For a transactional ID, an open
transaction is aborted and the epoch is incremented, which fences all older producers with that ID. In version
3 and later, a producer may send its current ID and epoch (KIP-360); in version 4 and later, a replaced
producer gets PRODUCER_FENCED.
"""

import asyncio

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import may_write_idempotently, refusal, require
from kafka_compat.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka_compat.security.authorizer import Operation, ResourceType

_FIRST_VERSION_WITH_PRODUCER_FENCED = 4


@handler(0, 5)
def init_producer_id(ctx: RequestContext, request: InitProducerIdRequest) -> object:
    if request.transactional_id is not None:
        require(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not may_write_idempotently(ctx):
        raise refusal(ResourceType.CLUSTER)
    if request.transactional_id == "" or (request.producer_id == -1) != (request.producer_epoch == -1):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    if request.transactional_id is None:
        return _idempotent(ctx)
    return _transactional(ctx, request, request.transactional_id)


async def _idempotent(ctx: RequestContext) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=await ctx.services.producer_ids.next(), producer_epoch=0)


async def _transactional(
    ctx: RequestContext, request: InitProducerIdRequest, transactional_id: str
) -> InitProducerIdResponse:
    from kafka_compat.transactions.status import NO_PRODUCER_ID, IdentityResult, ProducerIdentity

    coordinator = ctx.services.transactions
    new_producer_id = NO_PRODUCER_ID
    if coordinator.needs_producer_id(transactional_id):
        new_producer_id = await ctx.services.producer_ids.next()
    expected = None
    if request.producer_id != NO_PRODUCER_ID:
        expected = ProducerIdentity(request.producer_id, request.producer_epoch)
    answer: asyncio.Future[IdentityResult] = asyncio.get_running_loop().create_future()
    coordinator.init_producer_id(
        transactional_id, request.transaction_timeout_ms, expected, new_producer_id, answer.set_result
    )
    error, identity = await answer
    if error is ErrorCode.PRODUCER_FENCED and ctx.api_version < _FIRST_VERSION_WITH_PRODUCER_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(
        error_code=error, producer_id=identity.producer_id, producer_epoch=identity.producer_epoch
    )
