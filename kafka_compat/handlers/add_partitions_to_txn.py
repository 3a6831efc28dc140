"""AddPartitionsToTxn (key 24): a transaction will write to partitions (KIP-98).

Up to version 3 a producer sends it for itself; where one of its partitions does not exist, none is added.
From version 4 on leaders send batches of transactions: to verify that a partition they are about to write to
is in one, or, for producers of transaction.version 2, to add it (KIP-890).
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_compat.dispatch import PENDING, RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kafka_compat.transactions.model import VERSION_WITH_EPOCH_BUMP, ProducerIdentity, TopicPartition

_FIRST_VERSION_WITH_PRODUCER_FENCED = 2
_FIRST_BATCHED_VERSION = 4

PartitionErrors = dict[TopicPartition, ErrorCode]
Settle = Callable[[str, PartitionErrors], None]


@handler(ApiKey.ADD_PARTITIONS_TO_TXN)
def add_partitions_to_txn(ctx: RequestContext, request: AddPartitionsToTxnRequest) -> object:
    if ctx.api_version >= _FIRST_BATCHED_VERSION:
        return _batched(ctx, request.transactions)
    asked = _partitions(request.v3_and_below_topics)
    unknown = {item for item in asked if ctx.broker.metadata.partition(*item) is None}
    if unknown:
        return _response_to_producer(
            {
                item: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if item in unknown
                else ErrorCode.OPERATION_NOT_ATTEMPTED
                for item in asked
            }
        )

    def respond(error: ErrorCode) -> None:
        if ctx.api_version < _FIRST_VERSION_WITH_PRODUCER_FENCED and error is ErrorCode.PRODUCER_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        ctx.respond(_response_to_producer(dict.fromkeys(asked, error)))

    ctx.broker.transactions.add_partitions(
        request.v3_and_below_transactional_id,
        ProducerIdentity(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch),
        asked,
        respond,
    )
    return PENDING


def _batched(ctx: RequestContext, transactions: list[AddPartitionsToTxnTransaction]) -> object:
    response = AddPartitionsToTxnResponse()
    waiting = len(transactions)
    if not waiting:
        return response

    def settle(transactional_id: str, errors: PartitionErrors) -> None:
        nonlocal waiting
        response.results_by_transaction.append(
            AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=_results(errors))
        )
        waiting -= 1
        if not waiting:
            ctx.respond(response)

    for transaction in transactions:
        _one(ctx, transaction, settle)
    return PENDING


def _one(ctx: RequestContext, transaction: AddPartitionsToTxnTransaction, settle: Settle) -> None:
    coordinator = ctx.broker.transactions
    transactional_id = transaction.transactional_id
    identity = ProducerIdentity(transaction.producer_id, transaction.producer_epoch)
    asked = _partitions(transaction.topics)
    if transaction.verify_only:
        settle(
            transactional_id, {item: coordinator.verify(transactional_id, identity, [item]) for item in asked}
        )
        return
    coordinator.add_partitions(
        transactional_id,
        identity,
        asked,
        lambda error: settle(transactional_id, dict.fromkeys(asked, error)),
        VERSION_WITH_EPOCH_BUMP,
    )


def _partitions(topics: list[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _results(errors: PartitionErrors) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, index), error in errors.items():
        topics.setdefault(name, AddPartitionsToTxnTopicResult(name=name)).results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
        )
    return list(topics.values())


def _response_to_producer(errors: PartitionErrors) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(errors))
