"""EndTxn (API key 26): commit or abort a transaction.

The response is sent once the decision is committed to `__transaction_state`. After that, the markers are
written even if this broker fails. In version 2 and later, a replaced producer gets PRODUCER_FENCED (KIP-588).
In version 5, each EndTxn increments the epoch, and the response contains the new epoch or, when all epochs
are used up, a new producer ID (KIP-890 part 2).
"""

from typing import Final

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import require
from kafka_compat.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.transactions.status import NO_PRODUCER_ID, IdentityResult, ProducerIdentity

_FIRST_VERSION_WITH_PRODUCER_FENCED: Final = 2
_FIRST_VERSION_WITH_EPOCH_BUMP: Final = 5


@handler(0, 5)
def end_txn(ctx: RequestContext, request: EndTxnRequest) -> object:
    require(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    coordinator = ctx.services.transactions
    if ctx.api_version >= _FIRST_VERSION_WITH_EPOCH_BUMP:
        if coordinator.needs_producer_id(request.transactional_id):
            return _with_new_producer_id(ctx, request)
        return _end_and_bump(ctx, request, NO_PRODUCER_ID)

    def respond(result: IdentityResult) -> None:
        error = result.error
        if ctx.api_version < _FIRST_VERSION_WITH_PRODUCER_FENCED and error is ErrorCode.PRODUCER_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        deferred.complete(EndTxnResponse(error_code=error))

    deferred = Deferred()
    coordinator.end(request.transactional_id, _identity(request), request.committed, respond)
    return deferred


async def _with_new_producer_id(ctx: RequestContext, request: EndTxnRequest) -> Deferred:
    return _end_and_bump(ctx, request, await ctx.services.producer_ids.next())


def _end_and_bump(ctx: RequestContext, request: EndTxnRequest, new_producer_id: int) -> Deferred:
    deferred = Deferred()
    ctx.services.transactions.end_and_bump(
        request.transactional_id,
        _identity(request),
        request.committed,
        new_producer_id,
        lambda result: deferred.complete(
            EndTxnResponse(
                error_code=result.error,
                producer_id=result.identity.producer_id,
                producer_epoch=result.identity.producer_epoch,
            )
        ),
    )
    return deferred


def _identity(request: EndTxnRequest) -> ProducerIdentity:
    return ProducerIdentity(request.producer_id, request.producer_epoch)
