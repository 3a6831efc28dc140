"""DescribeTransactions (API key 65): the state of transactional IDs coordinated by this broker (KIP-664)."""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import Denied
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kafka_compat.security.authorizer import Operation, ResourceType


@handler(0, 0)
def describe_transactions(
    ctx: RequestContext, request: DescribeTransactionsRequest
) -> Steps[DescribeTransactionsResponse]:
    response = DescribeTransactionsResponse()
    denied_ids = Denied(ctx, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)
    denied_topics = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    for transactional_id in request.transactional_ids:
        if transactional_id in denied_ids:
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            state = TransactionState(transactional_id=transactional_id, error_code=code)
        else:
            state = _describe(ctx, transactional_id)
            state.topics = [item for item in state.topics if item.topic not in denied_topics]
        response.transaction_states.append(state)
        yield None
    return response


def _describe(ctx: RequestContext, transactional_id: str) -> TransactionState:
    error, status = ctx.services.transactions.describe(transactional_id)
    if error or status is None:
        return TransactionState(transactional_id=transactional_id, error_code=error)
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(status.partitions):
        topics.setdefault(topic, []).append(index)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=status.state.value,
        transaction_timeout_ms=status.timeout_ms,
        transaction_start_time_ms=status.start_ms,
        producer_id=status.producer_id,
        producer_epoch=status.producer_epoch,
        topics=[TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()],
    )
