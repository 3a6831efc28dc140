"""AddOffsetsToTxn (API key 25): declare that a transaction will commit offsets for a group.

The partition of `__consumer_offsets` that stores the group is added to the transaction. In version 2 and
later, a replaced producer gets PRODUCER_FENCED (KIP-588).
"""

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import require
from kafka_compat.metadata.topic_names import OFFSETS_TOPIC
from kafka_compat.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.transactions.status import ProducerIdentity

_FIRST_VERSION_WITH_PRODUCER_FENCED = 2


@handler(0, 4)
def add_offsets_to_txn(ctx: RequestContext, request: AddOffsetsToTxnRequest) -> object:
    require(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    if OFFSETS_TOPIC not in ctx.services.metadata.topics:
        # Create the topic here: FindCoordinator also creates it, but clients send that request later.
        return _after_creation(ctx, request)
    return _add(ctx, request)


async def _after_creation(
    ctx: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Deferred:
    try:
        await ctx.services.topics.ensure_internal(OFFSETS_TOPIC)
    except KafkaError:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _add(ctx, request)


def _add(ctx: RequestContext, request: AddOffsetsToTxnRequest) -> Deferred:
    deferred = Deferred()

    def respond(error: ErrorCode) -> None:
        if ctx.api_version < _FIRST_VERSION_WITH_PRODUCER_FENCED and error is ErrorCode.PRODUCER_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        deferred.complete(AddOffsetsToTxnResponse(error_code=error))

    ctx.services.transactions.add_partitions(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        [(OFFSETS_TOPIC, ctx.services.groups.shard_of(request.group_id))],
        respond,
    )
    return deferred
