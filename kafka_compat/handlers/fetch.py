"""Fetch (API key 1): return whole batches from each partition, after a long poll if there is too little data.

The response is sent immediately if fetch.min.bytes are available or an error has occurred. Otherwise, it is
sent when enough data has been committed or max_wait_ms has passed. Version 3 adds the limit for the whole
response. Versions 4, 7, 9, 12 and 13 add isolation levels, sessions (KIP-227), leader epochs (KIP-320),
diverging epochs (KIP-595) and topic IDs (KIP-516), respectively. In versions 0 to 3, records are returned in
format 0 or 1.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.deferred import Deferred
from kafka_compat.errors import KafkaError
from kafka_compat.long_work import gathered
from kafka_compat.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse
from kafka_compat.replication.delayed_fetch import DelayedFetch
from kafka_compat.replication.fetch_session import (
    FINAL_EPOCH,
    FetchPlan,
    FetchTarget,
    PartitionKey,
    partition_key,
)

if TYPE_CHECKING:
    from kafka_compat.long_work import Steps

_PARTITIONS_AT_ONCE: Final = 256


@handler(0, 18)
def fetch(
    ctx: RequestContext, request: FetchRequest
) -> FetchResponse | Deferred | Steps[FetchResponse | Deferred]:
    by_id = ctx.api_version >= 13
    targets: list[FetchTarget] = []
    if len(request.forgotten_topics_data) > _PARTITIONS_AT_ONCE:
        return _fetch_many(ctx, request)
    for topic in request.topics:
        if len(targets) + len(topic.partitions) > _PARTITIONS_AT_ONCE:
            return _fetch_many(ctx, request)
        _add(targets, topic.topic_id if by_id else topic.topic, topic.partitions)
    forgotten = [] if not request.forgotten_topics_data else list(_forgotten(ctx, request))
    plan = _planned(ctx, request, targets, forgotten)
    if isinstance(plan, FetchResponse):
        return plan
    if ctx.services.authorizer is not None and ctx.authorizer is not None:
        return _fetch_allowed(ctx, request, plan)
    return DelayedFetch(ctx, request, plan).start()


def _fetch_many(ctx: RequestContext, request: FetchRequest) -> Steps[FetchResponse | Deferred]:
    by_id = ctx.api_version >= 13
    targets: list[FetchTarget] = []
    for topic in request.topics:
        name = topic.topic_id if by_id else topic.topic
        for first in range(0, len(topic.partitions), _PARTITIONS_AT_ONCE):
            _add(targets, name, topic.partitions[first : first + _PARTITIONS_AT_ONCE])
            yield None
    forgotten = yield from gathered(_forgotten(ctx, request))
    plan = _planned(ctx, request, targets, forgotten)
    if isinstance(plan, FetchResponse):
        return plan
    return (yield from _fetch_allowed(ctx, request, plan))


def _fetch_allowed(
    ctx: RequestContext, request: FetchRequest, plan: FetchPlan
) -> Steps[FetchResponse | Deferred]:
    delayed = DelayedFetch(ctx, request, plan)
    if ctx.authorizer is not None:
        yield from _take_out_denied(ctx, plan, delayed.is_follower)
    answer = delayed.start()
    return (yield from answer) if isinstance(answer, Generator) else answer


def _add(targets: list[FetchTarget], topic: str | UUID, partitions: Sequence[FetchPartition]) -> None:
    for wanted in partitions:
        target = FetchTarget(
            topic,
            wanted.partition,
            wanted.fetch_offset,
            wanted.partition_max_bytes,
            wanted.current_leader_epoch,
            wanted.last_fetched_epoch,
            wanted.log_start_offset,
        )
        targets.append(target)


def _forgotten(ctx: RequestContext, request: FetchRequest) -> Iterator[PartitionKey]:
    by_id = ctx.api_version >= 13
    for topic in request.forgotten_topics_data:
        for partition in topic.partitions:
            yield partition_key(topic.topic_id if by_id else topic.topic, partition)


def _planned(
    ctx: RequestContext, request: FetchRequest, targets: list[FetchTarget], forgotten: list[PartitionKey]
) -> FetchPlan | FetchResponse:
    """Return the partitions that the request and its session fetch, or an error for an invalid session."""
    by_id = ctx.api_version >= 13
    try:
        return ctx.services.fetch_sessions.plan(
            request.session_id,
            request.session_epoch if ctx.api_version >= 7 else FINAL_EPOCH,
            targets,
            forgotten,
            by_id,
            ctx.services.clock.monotonic_ms() if request.session_id else 0,
        )
    except KafkaError as error:
        return FetchResponse(error_code=error.code)


def _take_out_denied(ctx: RequestContext, plan: FetchPlan, is_follower: bool) -> Steps[None]:
    """Remove topics that the client may not read from the plan, but not from the session: ACLs may change."""
    # Import these here, because they are needed only with an authorizer.
    from kafka_compat.handlers.authorization import Denied, cluster_allows
    from kafka_compat.security.authorizer import Operation, ResourceType

    if is_follower:
        if not cluster_allows(ctx, Operation.CLUSTER_ACTION):
            plan.targets, plan.denied = [], plan.targets
        return
    names = ctx.services.metadata.topic_name
    topics = Denied(ctx, Operation.READ, ResourceType.TOPIC)
    allowed: list[FetchTarget] = []
    denied: list[FetchTarget] = []
    for target in plan.targets:
        topic = target.topic
        name = topic if isinstance(topic, str) else names(topic) or target.name
        target.name = name
        (denied if name in topics else allowed).append(target)
        yield None
    if denied:
        plan.targets, plan.denied = allowed, denied
