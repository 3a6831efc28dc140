"""WriteTxnMarkers (API key 27): write the end markers of transactions to partitions that this broker leads.

Transaction coordinators send this request, as does Kafka's tool for aborting a hanging transaction. Writing a
marker twice is harmless; a marker from a replaced coordinator is rejected. Version 2 contains the
transaction.version, so that a late marker never ends a later transaction (KIP-1228).
"""

from functools import partial

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.handlers.authorization import cluster_allows, require_cluster
from kafka_compat.long_work import Steps, batched, gathered
from kafka_compat.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka_compat.security.authorizer import Operation
from kafka_compat.transactions.marker_writer import Marker
from kafka_compat.transactions.status import VERSION_WITH_EPOCH_BUMP, ProducerIdentity, TopicPartition


@handler(0, 2)
def write_txn_markers(
    ctx: RequestContext, request: WriteTxnMarkersRequest
) -> Steps[WriteTxnMarkersResponse | Deferred]:
    if not cluster_allows(ctx, Operation.ALTER, logged=False):
        require_cluster(ctx, Operation.CLUSTER_ACTION)
    asked: list[tuple[Marker, list[TopicPartition]]] = []
    wanted: dict[tuple[int, TopicPartition], None] = {}
    for number, wish in enumerate(request.markers):
        marker = Marker(
            ProducerIdentity(wish.producer_id, wish.producer_epoch),
            wish.transaction_result,
            wish.coordinator_epoch,
            wish.transaction_version >= VERSION_WITH_EPOCH_BUMP,
        )
        partitions = yield from gathered(
            (topic.name, index) for topic in wish.topics for index in topic.partition_indexes
        )
        asked.append((marker, partitions))
        for some in batched(partitions):
            wanted.update(dict.fromkeys((number, item) for item in some))
            yield None
    errors: dict[tuple[int, TopicPartition], ErrorCode] = {}
    if not wanted:
        return (yield from _response(asked, errors))

    def settle(number: int, partition: TopicPartition, error: ErrorCode) -> None:
        errors[number, partition] = error
        if len(errors) == len(wanted):
            ctx.long_work.start(_response(asked, errors), deferred.complete)

    deferred = Deferred()
    for number, partition in wanted:
        ctx.services.markers.write(asked[number][0], (partition,), partial(settle, number))
        yield None
    return deferred


def _response(
    asked: list[tuple[Marker, list[TopicPartition]]], errors: dict[tuple[int, TopicPartition], ErrorCode]
) -> Steps[WriteTxnMarkersResponse]:
    results = []
    for number, (marker, partitions) in enumerate(asked):
        topics: dict[str, WritableTxnMarkerTopicResult] = {}
        for topic, index in partitions:
            yield None
            topics.setdefault(topic, WritableTxnMarkerTopicResult(name=topic)).partitions.append(
                WritableTxnMarkerPartitionResult(
                    partition_index=index, error_code=errors[number, (topic, index)]
                )
            )
        results.append(
            WritableTxnMarkerResult(producer_id=marker.identity.producer_id, topics=list(topics.values()))
        )
    return WriteTxnMarkersResponse(markers=results)
