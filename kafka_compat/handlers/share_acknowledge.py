"""ShareAcknowledge (API key 79): acknowledge records of a share group, without fetching (KIP-932). Version 2
adds the renewal of acquisition locks (KIP-1222).
"""

from __future__ import annotations

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.share_requests import (
    AcknowledgedBatches,
    Leaders,
    Outcomes,
    Topics,
    acknowledge,
    checked_key,
    grouped,
)
from kafka_compat.handlers.share_response_order import in_kafka_order
from kafka_compat.long_work import Steps
from kafka_compat.protocol.messages.share_acknowledge import (
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kafka_compat.share_partitions.share_session import FINAL_EPOCH, INITIAL_EPOCH, TopicIdPartition


@handler(1, 2)
def share_acknowledge(ctx: RequestContext, request: ShareAcknowledgeRequest) -> Steps[Deferred]:
    key = checked_key(ctx, request.group_id, request.member_id)
    manager = ctx.services.share_partitions
    epoch = request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    manager.sessions.advance(key, epoch)
    batches: AcknowledgedBatches = {}
    request.topics.reverse()
    while request.topics:
        # Freeing very many topics at once would take long.
        topic = request.topics.pop()
        for partition in topic.partitions:
            batches[TopicIdPartition(topic.topic_id, partition.partition_index)] = (
                partition.acknowledgement_batches
            )
            yield None
    deferred = Deferred()

    def done(outcomes: Outcomes) -> None:
        lock_ms = manager.limits(key.group_id).lock_duration_ms
        ctx.long_work.start(_response(ctx, outcomes, lock_ms), respond)

    def respond(response: ShareAcknowledgeResponse) -> None:
        deferred.complete(response)
        if epoch == FINAL_EPOCH:
            manager.end_session(key)

    yield from acknowledge(ctx, manager, key, Topics(ctx), batches, request.is_renew_ack, done)
    return deferred


def _response(ctx: RequestContext, outcomes: Outcomes, lock_ms: int) -> Steps[ShareAcknowledgeResponse]:
    leaders = Leaders(ctx)
    found = []
    metadata = ctx.services.metadata
    ordered = yield from in_kafka_order(outcomes, lambda key: metadata.topic_name(key.topic_id))
    for key, (code, message) in ordered.items():
        yield None
        data = PartitionData(partition_index=key.partition, error_code=code, error_message=message)
        leader = leaders.of(key, code)
        if leader is not None:
            data.current_leader = leader
        found.append((key, data))
    responses = []
    for topic_id, partitions in (yield from grouped(found)).items():
        responses.append(ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions))
        yield None
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_ms,
        responses=responses,
        node_endpoints=leaders.endpoints,
    )
