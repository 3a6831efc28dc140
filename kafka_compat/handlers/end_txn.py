"""EndTxn (key 26): commit or abort a transaction.

Answered once the decision is committed to `__transaction_state`: the markers follow whatever happens. From
version 2 on a producer that was replaced is told PRODUCER_FENCED (KIP-588).
"""

from __future__ import annotations

from kafka_compat.dispatch import PENDING, RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafka_compat.transactions.model import ProducerIdentity

_FIRST_VERSION_WITH_PRODUCER_FENCED = 2


@handler(ApiKey.END_TXN)
def end_txn(ctx: RequestContext, request: EndTxnRequest) -> object:
    def respond(error: ErrorCode) -> None:
        if ctx.api_version < _FIRST_VERSION_WITH_PRODUCER_FENCED and error is ErrorCode.PRODUCER_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        ctx.respond(EndTxnResponse(error_code=error))

    ctx.broker.transactions.end(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        request.committed,
        respond,
    )
    return PENDING
