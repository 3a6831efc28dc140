"""Metadata (API key 3): return brokers, the controller, and topics by name or ID; create missing topics if
enabled.

In version 0, an empty list requests all topics; in later versions, null does. Version 4 lets the client
forbid auto-creation. Version 8 adds the authorized operations on topics and, up to version 10, on the
cluster. Version 10 adds topic IDs, and version 12 adds lookup by ID. The response contains the brokers'
addresses on the listener to which the client is connected.
"""

import logging
from collections.abc import Coroutine, Hashable
from typing import Any, Final
from uuid import UUID

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import (
    OPERATIONS_NOT_ASKED,
    Denied,
    allowed_cluster_operations,
    allowed_operations,
    cluster_allows,
)
from kafka_compat.handlers.create_topics import PARTITIONS_PER_REQUEST_MAX
from kafka_compat.long_work import Steps
from kafka_compat.metadata.cache import NO_LEADER, MetadataCache, TopicMetadata
from kafka_compat.metadata.topic_names import check_topic_name, is_internal
from kafka_compat.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_compat.security.authorizer import Operation, ResourceType

log = logging.getLogger(__name__)

_NO_TOPIC_ID: Final = UUID(int=0)
_PARTITIONS_AT_ONCE: Final = 64
_REPEATED_PARTITIONS_MAX: Final = 64


Answer = MetadataResponse | Coroutine[Any, Any, MetadataResponse]


@handler(0, 13)
def metadata(ctx: RequestContext, request: MetadataRequest) -> Answer:
    if 10 <= ctx.api_version < 12 and any(
        topic.name is None or topic.topic_id != _NO_TOPIC_ID for topic in request.topics or ()
    ):
        # These versions have topic IDs, but no responses for topics without a name (KAFKA-12701).
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return _answer(ctx, request) if ctx.services.metadata.brokers else _once_known(ctx, request)


async def _once_known(ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """Wait until this new broker has received the cluster metadata, and then respond, because librdkafka 2.16
    forgets all brokers and coordinators if a response contains no brokers.
    """
    await ctx.services.await_metadata()
    answer = _answer(ctx, request)
    return answer if isinstance(answer, MetadataResponse) else await answer


def _answer(ctx: RequestContext, request: MetadataRequest) -> Answer:
    key = _repeated_key(ctx, request)
    if key is not None:
        repeated: MetadataResponse | None = ctx.repeated(key)
        if repeated is not None:
            return repeated
    missing: list[str] = []
    topics = ctx.long_work.run(_topics(ctx, request, missing))
    if isinstance(topics, list) and not missing:
        response = _response(ctx, request, topics)
        if key is not None and sum(len(topic.partitions) for topic in topics) <= _REPEATED_PARTITIONS_MAX:
            ctx.repeat(key, response)
        return response
    return _with_new_topics(ctx, request, topics, missing)


def _repeated_key(ctx: RequestContext, request: MetadataRequest) -> Hashable | None:
    """Return everything that determines the response to a request for one topic by name, or None if the
    response cannot be repeated, for example because the request may create the topic.
    """
    topics = request.topics
    if (
        topics is None
        or len(topics) != 1
        or ctx.authorizer is not None
        or request.include_topic_authorized_operations
        or request.include_cluster_authorized_operations
    ):
        return None
    name, cache, caller = topics[0].name, ctx.services.metadata, ctx.caller
    if name not in cache.topics or topics[0].topic_id != _NO_TOPIC_ID:
        return None
    listener = caller.listener_name, caller.local_host, caller.local_port
    return ctx.api_version, cache.generation, name, listener


def _topics(
    ctx: RequestContext, request: MetadataRequest, missing: list[str]
) -> Steps[list[MetadataResponseTopic]]:
    """Return the existing topics, and append the names of the topics to create to `missing`."""
    cache = ctx.services.metadata
    wanted = request.topics
    answers: list[MetadataResponseTopic] = []
    if wanted is None or (ctx.api_version == 0 and not wanted):
        denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC, logged=False)
        for topic in list(cache.topics.values()):
            if topic.name not in denied:
                answers.append((yield from _topic(ctx, request, topic)))
            yield None
        return answers
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    may_create = request.allow_auto_topic_creation or ctx.api_version < 4
    for number, item in enumerate(wanted):
        if number:
            yield None
        if item.topic_id != _NO_TOPIC_ID:
            name = cache.topic_name(item.topic_id)
            if name is None:
                answers.append(_unknown(None, item.topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            if name in denied:
                answers.append(_unknown(None, item.topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                continue
        else:
            name = item.name or ""
            if name in denied:
                # Do not reveal to an unauthorized client whether the topic exists or is internal.
                answers.append(_denied(name))
                continue
        known = cache.topics.get(name)
        if known is not None:
            answers.append((yield from _topic(ctx, request, known)))
        elif may_create and ctx.services.config.bool("auto.create.topics.enable"):
            missing.append(name)
        else:
            answers.append(_missing(ctx, request, name, _why_not_there(name)))
    return answers


async def _with_new_topics(
    ctx: RequestContext,
    request: MetadataRequest,
    topics: list[MetadataResponseTopic] | Coroutine[Any, Any, list[MetadataResponseTopic]],
    missing: list[str],
) -> MetadataResponse:
    answers = topics if isinstance(topics, list) else await topics
    names = dict.fromkeys(missing)
    if not cluster_allows(ctx, Operation.CREATE, logged=False):
        denied = Denied(ctx, Operation.CREATE, ResourceType.TOPIC)
        for name in [name for name in names if name in denied]:
            answers.append(_unknown(name, _NO_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            del names[name]
    asked = len(names) * ctx.services.config.int("num.partitions")
    if asked > PARTITIONS_PER_REQUEST_MAX:
        # Above the limit, create none of the topics, as in CreateTopics.
        log.warning(
            "Did not create topics for %s (topics: %d, partitions: %d): the limit per request is %d "
            "partitions",
            ctx.client_host,
            len(names),
            asked,
            PARTITIONS_PER_REQUEST_MAX,
        )
    quotas = ctx.services.quotas
    # Auto-created topics count toward the quota, but the quota never rejects them.
    charge = None if quotas is None else quotas.mutation(ctx, None).charge
    turn = await ctx.long_work.begin()
    for name in names:
        try:
            check_topic_name(name)
            if asked > PARTITIONS_PER_REQUEST_MAX:
                raise KafkaError(ErrorCode.POLICY_VIOLATION)
            topic = await (
                ctx.services.topics.ensure_internal(name)
                if is_internal(name)
                else ctx.services.topics.ensure(name, charge=charge)
            )
            answers.append(await ctx.long_work.finish(_topic(ctx, request, topic)))
        except KafkaError as error:
            answers.append(_missing(ctx, request, name, error.code))
        await turn.pause_if_due()
    return _response(ctx, request, answers)


def _missing(
    ctx: RequestContext, request: MetadataRequest, name: str, code: ErrorCode
) -> MetadataResponseTopic:
    answer = _unknown(name, _NO_TOPIC_ID, code)
    answer.topic_authorized_operations = _operations(ctx, request, name)
    return answer


def _why_not_there(name: str) -> ErrorCode:
    try:
        check_topic_name(name)
    except KafkaError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _denied(name: str) -> MetadataResponseTopic:
    answer = _unknown(name, _NO_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answer.is_internal = False
    return answer


def _operations(ctx: RequestContext, request: MetadataRequest, name: str) -> int:
    if not request.include_topic_authorized_operations:
        return OPERATIONS_NOT_ASKED
    return allowed_operations(ctx, ResourceType.TOPIC, name)


def _unknown(name: str | None, topic_id: UUID, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
        topic_authorized_operations=OPERATIONS_NOT_ASKED,
    )


def _topic(
    ctx: RequestContext, request: MetadataRequest, topic: TopicMetadata
) -> Steps[MetadataResponseTopic]:
    cache = ctx.services.metadata
    answers = cache.answers
    partitions: list[MetadataResponsePartition] | None = None
    if cache.topics.get(topic.name) is topic:
        partitions = answers.get(topic.name)
    if partitions is None:
        partitions = yield from _partitions(cache, topic)
        # If the brokers have changed meanwhile, `answers` is no longer in use.
        if cache.topics.get(topic.name) is topic:
            answers[topic.name] = partitions
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=_operations(ctx, request, topic.name),
    )


def _partitions(cache: MetadataCache, topic: TopicMetadata) -> Steps[list[MetadataResponsePartition]]:
    """Describe the partitions of a topic. Equal lists of brokers share one object, to save memory."""
    found: list[MetadataResponsePartition] = []
    shared: dict[tuple[int, ...], list[int]] = {}
    for number, partition in enumerate(topic.partitions, 1):
        leader = cache.reachable_leader(partition)
        replicas, isr, offline = partition.replicas, partition.isr, tuple(cache.offline_replicas(partition))
        found.append(
            MetadataResponsePartition(
                error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader is None else ErrorCode.NONE,
                partition_index=partition.partition,
                # Omit a leader that this response does not list as a broker: kafka-python never recovers from
                # an unknown leader.
                leader_id=NO_LEADER if leader is None else leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=shared.get(replicas) or shared.setdefault(replicas, list(replicas)),
                isr_nodes=shared.get(isr) or shared.setdefault(isr, list(isr)),
                offline_replicas=shared.get(offline) or shared.setdefault(offline, list(offline)),
            )
        )
        if number % _PARTITIONS_AT_ONCE == 0:
            yield None
    return found


def _response(
    ctx: RequestContext, request: MetadataRequest, topics: list[MetadataResponseTopic]
) -> MetadataResponse:
    cache = ctx.services.metadata
    brokers = []
    for broker in cache.brokers.values():
        host, port = ctx.services.address_for(broker, ctx.caller)
        brokers.append(
            MetadataResponseBroker(node_id=broker.broker_id, host=host, port=port, rack=broker.rack)
        )
    return MetadataResponse(
        brokers=brokers,
        cluster_id=cache.cluster_id,
        controller_id=cache.controller_id,
        topics=topics,
        cluster_authorized_operations=allowed_cluster_operations(
            ctx, request.include_cluster_authorized_operations
        ),
    )
