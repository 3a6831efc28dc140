"""Metadata (API key 3): return brokers, the controller, and topics by name or ID; create missing topics if
enabled.

In version 0, an empty list requests all topics; in later versions, null does. Version 4 lets the client
forbid auto-creation. Version 8 adds the authorized operations on topics and, up to version 10, on the
cluster. Version 10 adds topic IDs, and version 12 adds lookup by ID. The response contains the brokers'
addresses on the listener to which the client is connected.
"""

import logging
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Final

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.handlers.authorization import (
    OPERATIONS_NOT_ASKED,
    Denied,
    allowed_cluster_operations,
    allowed_operations,
    allows,
    cluster_allows,
)
from kafka_compat.handlers.create_topics import PARTITIONS_PER_REQUEST_MAX
from kafka_compat.handlers.topic_encoder import topic_encoder
from kafka_compat.long_work import Steps
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.metadata.topic_names import check_topic_name, is_internal
from kafka_compat.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from kafka_compat.protocol.zero_uuid import ZERO_UUID
from kafka_compat.security.authorizer import Operation, ResourceType

log = logging.getLogger(__name__)

_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_REPEATED_PARTITIONS_MAX: Final = 64
_TOPICS_AT_ONCE: Final = 16

_Key = tuple[int, int, str, tuple[str, str | None, int]]
Found = TopicMetadata | MetadataResponseTopic
"""An existing topic, or the response for a topic that is missing or that the client may not describe."""
Answer = MetadataResponse | Coroutine[Any, Any, MetadataResponse]


@handler(0, 13)
def metadata(ctx: RequestContext, request: MetadataRequest) -> Answer:
    if 10 <= ctx.api_version < 12 and any(
        topic.name is None or topic.topic_id != ZERO_UUID for topic in request.topics or ()
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
            if ctx.authorizer is None or allows(ctx, Operation.DESCRIBE, ResourceType.TOPIC, key[2]):
                return repeated
            refused = MetadataResponseTopic(error_code=_DENIED, name=key[2])
            return ctx.long_work.run(_response(ctx, request, [refused]))
    return ctx.long_work.run(_steps(ctx, request, key))


def _steps(ctx: RequestContext, request: MetadataRequest, key: _Key | None) -> Steps[Any]:
    missing: list[str] = []
    found = yield from _found(ctx, request, missing)
    if missing:
        return _with_new_topics(ctx, request, found, missing)
    response = yield from _response(ctx, request, found)
    if (
        key is not None
        and isinstance(found[0], TopicMetadata)
        and len(found[0].partitions) <= _REPEATED_PARTITIONS_MAX
    ):
        ctx.repeat(key, response)
    return response


def _repeated_key(ctx: RequestContext, request: MetadataRequest) -> _Key | None:
    """Return everything that determines the response to a request for one topic by name, if the client may
    describe the topic. Return None if the response cannot be repeated, for example because the request may
    create the topic.
    """
    topics = request.topics
    if (
        not ctx.may_encode
        or topics is None
        or len(topics) != 1
        or request.include_topic_authorized_operations
        or request.include_cluster_authorized_operations
    ):
        return None
    name, cache, caller = topics[0].name, ctx.services.metadata, ctx.caller
    if name is None or name not in cache.topics or topics[0].topic_id != ZERO_UUID:
        return None
    listener = caller.listener_name, caller.local_host, caller.local_port
    return ctx.api_version, cache.generation, name, listener


def _found(ctx: RequestContext, request: MetadataRequest, missing: list[str]) -> Steps[list[Found]]:
    """Return the existing topics, and append the names of the topics to create to `missing`."""
    cache = ctx.services.metadata
    wanted = request.topics
    found: list[Found] = []
    if wanted is None or (ctx.api_version == 0 and not wanted):
        denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC, logged=False)
        for number, topic in enumerate(list(cache.topics.values()), 1):
            if topic.name not in denied:
                found.append(topic)
            if number % _TOPICS_AT_ONCE == 0:
                yield None
        return found
    denied = Denied(ctx, Operation.DESCRIBE, ResourceType.TOPIC)
    may_create = request.allow_auto_topic_creation or ctx.api_version < 4
    for number, item in enumerate(wanted, 1):
        if number % _TOPICS_AT_ONCE == 0:
            yield None
        if item.topic_id != ZERO_UUID:
            name = cache.topic_name(item.topic_id)
            if name is None:
                code = ErrorCode.UNKNOWN_TOPIC_ID
                found.append(MetadataResponseTopic(error_code=code, name=None, topic_id=item.topic_id))
                continue
            if name in denied:
                found.append(MetadataResponseTopic(error_code=_DENIED, name=None, topic_id=item.topic_id))
                continue
        else:
            name = item.name or ""
            if name in denied:
                # Do not reveal to an unauthorized client whether the topic exists or is internal.
                found.append(MetadataResponseTopic(error_code=_DENIED, name=name))
                continue
        known = cache.topics.get(name)
        if known is not None:
            found.append(known)
        elif may_create and ctx.services.config.bool("auto.create.topics.enable"):
            missing.append(name)
        else:
            try:
                check_topic_name(name)
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            except KafkaError as error:
                code = error.code
            found.append(_missing(ctx, request, name, code))
    return found


async def _with_new_topics(
    ctx: RequestContext, request: MetadataRequest, found: list[Found], missing: list[str]
) -> MetadataResponse:
    names = dict.fromkeys(missing)
    if not cluster_allows(ctx, Operation.CREATE, logged=False):
        denied = Denied(ctx, Operation.CREATE, ResourceType.TOPIC)
        for name in [name for name in names if name in denied]:
            internal = is_internal(name)
            found.append(MetadataResponseTopic(error_code=_DENIED, name=name, is_internal=internal))
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
            found.append(topic)
        except KafkaError as error:
            found.append(_missing(ctx, request, name, error.code))
        await turn.pause_if_due()
    return await ctx.long_work.finish(_response(ctx, request, found))


def _missing(
    ctx: RequestContext, request: MetadataRequest, name: str, code: ErrorCode
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=code,
        name=name,
        is_internal=is_internal(name),
        topic_authorized_operations=_operations(ctx, request, name),
    )


def _operations(ctx: RequestContext, request: MetadataRequest, name: str) -> int:
    if not request.include_topic_authorized_operations:
        return OPERATIONS_NOT_ASKED
    return allowed_operations(ctx, ResourceType.TOPIC, name)


def _response(ctx: RequestContext, request: MetadataRequest, found: list[Found]) -> Steps[MetadataResponse]:
    cache, version = ctx.services.metadata, ctx.api_version
    topics: list[bytes] = []
    codes: Counter[int] = Counter()
    good = leaderless = 0
    for number, each in enumerate(found, 1):
        # Look up the encoder in every step, because it may be replaced between two steps.
        encoder = topic_encoder(cache, version)
        if isinstance(each, MetadataResponseTopic):
            topics.append(encoder.described(each))
            codes[each.error_code] += 1
        else:
            encoded, without_leader = encoder.kept(each) or (yield from encoder.encode(each))
            if request.include_topic_authorized_operations:
                encoded = encoder.with_operations(encoded, _operations(ctx, request, each.name))
            topics.append(encoded)
            good += 1 + len(each.partitions) - without_leader
            leaderless += without_leader
        if number % _TOPICS_AT_ONCE == 0:
            yield None
    codes.update({ErrorCode.NONE: good, ErrorCode.LEADER_NOT_AVAILABLE: leaderless})
    encoder = topic_encoder(cache, version)
    array = yield from encoder.array(topics, +codes)
    brokers = []
    for broker in cache.brokers.values():
        host, port = ctx.services.address_for(broker, ctx.caller)
        brokers.append(
            MetadataResponseBroker(node_id=broker.broker_id, host=host, port=port, rack=broker.rack)
        )
    return MetadataResponse(
        brokers=brokers,
        cluster_id=cache.cluster_id,
        controller_id=cache.controller_for_clients,
        topics=array if ctx.may_encode else encoder.decoded(array),
        cluster_authorized_operations=allowed_cluster_operations(
            ctx, request.include_cluster_authorized_operations
        ),
    )
