"""WriteTxnMarkers (key 27): write the end of transactions into partitions that this broker leads.

Sent by transaction coordinators, and by Kafka's tool that aborts a hanging transaction. Writing a marker
again does no harm; a marker of a coordinator that was replaced is refused. Version 2 says of which
transaction.version it is: one that is late does not end the transaction after its own (KIP-1228).
"""

from __future__ import annotations

from functools import partial

from kafka_compat.dispatch import PENDING, RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka_compat.transactions.marker_writer import Marker
from kafka_compat.transactions.model import VERSION_WITH_EPOCH_BUMP, ProducerIdentity, TopicPartition


@handler(ApiKey.WRITE_TXN_MARKERS)
def write_txn_markers(ctx: RequestContext, request: WriteTxnMarkersRequest) -> object:
    asked: list[tuple[Marker, list[TopicPartition]]] = [
        (
            Marker(
                ProducerIdentity(marker.producer_id, marker.producer_epoch),
                marker.transaction_result,
                marker.coordinator_epoch,
                marker.transaction_version >= VERSION_WITH_EPOCH_BUMP,
            ),
            [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes],
        )
        for marker in request.markers
    ]
    errors: dict[tuple[int, TopicPartition], ErrorCode] = {}
    wanted = {(number, item) for number, (_, partitions) in enumerate(asked) for item in partitions}
    if not wanted:
        return _response(asked, errors)

    def settle(number: int, partition: TopicPartition, error: ErrorCode) -> None:
        errors[number, partition] = error
        if len(errors) == len(wanted):
            ctx.respond(_response(asked, errors))

    for number, (marker, partitions) in enumerate(asked):
        ctx.broker.markers.write(marker, dict.fromkeys(partitions), partial(settle, number))
    return PENDING


def _response(
    asked: list[tuple[Marker, list[TopicPartition]]], errors: dict[tuple[int, TopicPartition], ErrorCode]
) -> WriteTxnMarkersResponse:
    results = []
    for number, (marker, partitions) in enumerate(asked):
        topics: dict[str, WritableTxnMarkerTopicResult] = {}
        for topic, index in partitions:
            topics.setdefault(topic, WritableTxnMarkerTopicResult(name=topic)).partitions.append(
                WritableTxnMarkerPartitionResult(
                    partition_index=index, error_code=errors[number, (topic, index)]
                )
            )
        results.append(
            WritableTxnMarkerResult(producer_id=marker.identity.producer_id, topics=list(topics.values()))
        )
    return WriteTxnMarkersResponse(markers=results)
