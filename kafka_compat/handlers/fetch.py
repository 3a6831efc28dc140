"""Fetch (key 1): whole batches from each partition, after a long poll where there is too little to send.

A request is answered at once when it finds fetch.min.bytes or an error, else when enough was committed or
max_wait_ms is over. Versions: 3 brings the limit for the whole answer, 4 isolation levels, 7 sessions
(KIP-227), 9 leader epochs (KIP-320), 12 diverging epochs (KIP-595), 13 topic ids (KIP-516). Versions 0 to 3
get formats 0 and 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.dispatch import RequestContext, handler
from kafka_compat.errors import KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.fetch import FetchRequest, FetchResponse
from kafka_compat.replication.delayed_fetch import DelayedFetch
from kafka_compat.replication.fetch_session import FINAL_EPOCH, FetchTarget, PartitionKey, partition_key

if TYPE_CHECKING:
    from kafka_compat.dispatch import _Pending


@handler(ApiKey.FETCH)
def fetch(ctx: RequestContext, request: FetchRequest) -> FetchResponse | _Pending:
    by_id = ctx.api_version >= 13
    targets = [
        FetchTarget(
            topic.topic_id if by_id else topic.topic,
            wanted.partition,
            wanted.fetch_offset,
            wanted.partition_max_bytes,
            wanted.current_leader_epoch,
            wanted.last_fetched_epoch,
            wanted.log_start_offset,
        )
        for topic in request.topics
        for wanted in topic.partitions
    ]
    forgotten: list[PartitionKey] = [
        partition_key(topic.topic_id if by_id else topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]
    try:
        plan = ctx.broker.fetch_sessions.plan(
            request.session_id,
            request.session_epoch if ctx.api_version >= 7 else FINAL_EPOCH,
            targets,
            forgotten,
            by_id,
            ctx.broker.clock.now_ms(),
        )
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    return DelayedFetch(ctx, request, plan).start()
