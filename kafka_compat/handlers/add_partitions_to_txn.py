"""AddPartitionsToTxn (API key 24): add partitions to a transaction before it writes to them (KIP-98).

In versions 0 to 3, producers send the request; if any of its partitions does not exist, none is added. In
later versions, partition leaders send batches of transactions. They verify that a partition is in a
transaction before they append to it or, for producers of transaction.version 2, add the partition (KIP-890).
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import Denied, require, require_cluster
from kafka_compat.long_work import Steps, gathered
from kafka_compat.metadata.topic_names import is_internal
from kafka_compat.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.transactions.status import VERSION_WITH_EPOCH_BUMP, ProducerIdentity, TopicPartition

_FIRST_VERSION_WITH_PRODUCER_FENCED: Final = 2
_FIRST_BATCHED_VERSION: Final = 4

PartitionErrors = dict[TopicPartition, ErrorCode]
Settle = Callable[[str, PartitionErrors], None]


@handler(0, 5)
def add_partitions_to_txn(
    ctx: RequestContext, request: AddPartitionsToTxnRequest
) -> Steps[AddPartitionsToTxnResponse | Deferred]:
    if ctx.api_version >= _FIRST_BATCHED_VERSION:
        require_cluster(ctx, Operation.CLUSTER_ACTION)
        return (yield from _batched(ctx, request.transactions))
    transactional_id = request.v3_and_below_transactional_id
    require(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    asked = yield from _partitions(request.v3_and_below_topics)
    denied = Denied(ctx, Operation.WRITE, ResourceType.TOPIC)
    refused: PartitionErrors = {}
    for item in asked:
        # Reject internal topics, because producers add __consumer_offsets with AddOffsetsToTxn.
        if is_internal(item[0]) or item[0] in denied:
            refused[item] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif ctx.services.metadata.partition(*item) is None:
            refused[item] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        yield None
    if refused:
        errors = dict.fromkeys(asked, ErrorCode.OPERATION_NOT_ATTEMPTED)
        return (yield from _response_to_producer(errors | refused))

    def respond(error: ErrorCode) -> None:
        if ctx.api_version < _FIRST_VERSION_WITH_PRODUCER_FENCED and error is ErrorCode.PRODUCER_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        ctx.long_work.start(_response_to_producer(dict.fromkeys(asked, error)), deferred.complete)

    deferred = Deferred()
    ctx.services.transactions.add_partitions(
        transactional_id,
        ProducerIdentity(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
        asked,
        respond,
    )
    return deferred


def _batched(
    ctx: RequestContext, transactions: list[AddPartitionsToTxnTransaction]
) -> Steps[AddPartitionsToTxnResponse | Deferred]:
    if not transactions:
        return AddPartitionsToTxnResponse()
    batch = _Batch(ctx, len(transactions))
    for transaction in transactions:
        yield from _one(ctx, transaction, batch.settle)
    return batch.deferred


class _Batch:
    """The response to a request with several transactions, completed when all of them have results.

    This is a class, because only the garbage collector frees nested functions that refer to each other.
    """

    def __init__(self, ctx: RequestContext, count: int) -> None:
        self.deferred = Deferred()
        self._ctx = ctx
        self._response = AddPartitionsToTxnResponse()
        self._waiting = count

    def settle(self, transactional_id: str, errors: PartitionErrors) -> None:
        self._ctx.long_work.start(_results(errors), partial(self._add_result, transactional_id))

    def _add_result(self, transactional_id: str, results: list[AddPartitionsToTxnTopicResult]) -> None:
        self._response.results_by_transaction.append(
            AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=results)
        )
        self._waiting -= 1
        if not self._waiting:
            self.deferred.complete(self._response)


def _one(ctx: RequestContext, transaction: AddPartitionsToTxnTransaction, settle: Settle) -> Steps[None]:
    coordinator = ctx.services.transactions
    transactional_id = transaction.transactional_id
    identity = ProducerIdentity(transaction.producer_id, transaction.producer_epoch)
    asked = yield from _partitions(transaction.topics)
    unknown: PartitionErrors = {}
    for item in asked:
        if ctx.services.metadata.partition(*item) is None:
            unknown[item] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        yield None
    if unknown:
        settle(transactional_id, dict.fromkeys(asked, ErrorCode.OPERATION_NOT_ATTEMPTED) | unknown)
        return
    if transaction.verify_only:
        verified: PartitionErrors = {}
        for item in asked:
            verified[item] = coordinator.verify(transactional_id, identity, [item])
            yield None
        settle(transactional_id, verified)
        return
    coordinator.add_partitions(
        transactional_id,
        identity,
        asked,
        lambda error: settle(transactional_id, dict.fromkeys(asked, error)),
        VERSION_WITH_EPOCH_BUMP,
    )


def _partitions(topics: list[AddPartitionsToTxnTopic]) -> Steps[list[TopicPartition]]:
    return gathered((topic.name, index) for topic in topics for index in topic.partitions)


def _results(errors: PartitionErrors) -> Steps[list[AddPartitionsToTxnTopicResult]]:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, index), error in errors.items():
        yield None
        topics.setdefault(name, AddPartitionsToTxnTopicResult(name=name)).results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
        )
    return list(topics.values())


def _response_to_producer(errors: PartitionErrors) -> Steps[AddPartitionsToTxnResponse]:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=(yield from _results(errors)))
