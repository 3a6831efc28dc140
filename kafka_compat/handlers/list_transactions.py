"""ListTransactions (API key 66): return the transactional IDs that this broker coordinates (KIP-664).

Version 1 adds a filter for the minimum duration in ms (KIP-994), and version 2 adds a regular expression for
the ID (KIP-1152).
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import Denied
from kafka_compat.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.transactions import status as transaction_status
from kafka_compat.transactions.id_pattern import IdPattern, InvalidPattern

_STATES = {state.value for state in transaction_status.TransactionState}


@handler(0, 2)
def list_transactions(ctx: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    wanted = set(request.state_filters)
    known = wanted & _STATES
    response = ListTransactionsResponse(unknown_state_filters=sorted(wanted - known))
    if wanted and not known:
        return response
    pattern = None
    if request.transactional_id_pattern:
        try:
            pattern = IdPattern(request.transactional_id_pattern)
        except InvalidPattern:
            response.error_code = ErrorCode.INVALID_REGULAR_EXPRESSION
            return response
    response.error_code, found = ctx.services.transactions.list_transactions(
        known, set(request.producer_id_filters), request.duration_filter
    )
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
    response.transaction_states = [
        TransactionState(
            transactional_id=transactional_id,
            producer_id=status.producer_id,
            transaction_state=status.state.value,
        )
        for transactional_id, status in found
        if (pattern is None or pattern.matches(transactional_id)) and transactional_id not in denied
    ]
    return response
