"""TxnOffsetCommit (API key 28): store a group's offsets as part of a transaction.

The offsets become visible when the transaction commits. In version 3 and later, the member's generation
fences members that a rebalance has replaced (KIP-447). In version 4 and later, clients support
TRANSACTION_ABORTABLE; in version 5, the request adds the group to the transaction (KIP-890). Version 6
identifies topics by ID, and has the error codes for members of consumer groups (KIP-848).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.coordinator_runtime.coordinator_log import TransactionalProducer
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.requests import Commit, OffsetAndMetadata
from kafka_compat.handlers.authorization import Denied, require
from kafka_compat.handlers.commit_order import CommittedPartition, in_response_order
from kafka_compat.handlers.feature_gates import has_level
from kafka_compat.long_work import Steps
from kafka_compat.metadata.features import GROUP_VERSION
from kafka_compat.metadata.topic_names import OFFSETS_TOPIC
from kafka_compat.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.transactions.status import ProducerIdentity, TopicPartition

if TYPE_CHECKING:
    from kafka_compat.transactions.verification import PartitionErrors, Verification


_FIRST_VERSION_WITH_LOADING = 2
_FIRST_VERSION_WITH_ABORTABLE = 4
_FIRST_VERSION_THAT_ADDS = 5
_FIRST_VERSION_WITH_IDS = 6
_FIRST_VERSION_WITH_EPOCHS = 6

_Order = dict[CommittedPartition, None]
"""The partitions of a request: topic ID (version 6 and later), topic name, and partition."""
_VERIFICATION_ERRORS: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}
"""Maps errors from the transaction coordinator to errors after which clients retry this request."""


@handler(0, 6)
def txn_offset_commit(ctx: RequestContext, request: TxnOffsetCommitRequest) -> Steps[object]:
    require(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    metadata = ctx.services.metadata
    is_by_id = ctx.api_version >= _FIRST_VERSION_WITH_IDS
    stores_ids = has_level(ctx, GROUP_VERSION)
    denied = Denied(ctx, Operation.READ, ResourceType.TOPIC)
    refused: PartitionErrors = {}
    now_ms = ctx.services.clock.now_ms()
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    order: _Order = {}
    for topic in request.topics:
        name = metadata.topic_name(topic.topic_id) or "" if is_by_id else topic.name
        known = metadata.topics.get(name)
        topic_id = known.topic_id if known is not None and stores_ids else None
        for partition in topic.partitions:
            yield None
            key = (name, partition.partition_index)
            order[topic.topic_id, *key] = None
            if is_by_id and not name:
                refused[key] = ErrorCode.UNKNOWN_TOPIC_ID
                continue
            if name in denied:
                refused[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                continue
            if metadata.partition(*key) is None:
                refused[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            offsets[key] = OffsetAndMetadata(
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata or "",
                now_ms,
                -1,
                topic_id,
            )
    if not offsets:
        return (yield from _response(ctx, order, refused))
    if OFFSETS_TOPIC not in metadata.topics:
        refused |= dict.fromkeys(offsets, ErrorCode.NOT_COORDINATOR)
        return (yield from _response(ctx, order, refused))
    verification = _verify(ctx, request)
    if verification is None:
        return (yield from _commit(ctx, request, order, offsets, refused, ErrorCode.NONE))
    if verification.is_answered:
        (error,) = verification.take().values()
        return (yield from _commit(ctx, request, order, offsets, refused, error))
    return _when_verified(ctx, request, order, offsets, refused, verification)


async def _when_verified(
    ctx: RequestContext,
    request: TxnOffsetCommitRequest,
    order: _Order,
    offsets: dict[TopicPartition, OffsetAndMetadata],
    refused: PartitionErrors,
    verification: Verification,
) -> object:
    await verification.wait()
    (error,) = verification.take().values()
    return await ctx.long_work.finish(_commit(ctx, request, order, offsets, refused, error))


def _commit(
    ctx: RequestContext,
    request: TxnOffsetCommitRequest,
    order: _Order,
    offsets: dict[TopicPartition, OffsetAndMetadata],
    refused: PartitionErrors,
    error: ErrorCode,
) -> Steps[object]:

    def respond(errors: PartitionErrors) -> None:
        ctx.long_work.start(_response(ctx, order, errors | refused), deferred.complete)

    deferred = Deferred()
    if error:
        respond(dict.fromkeys(offsets, _VERIFICATION_ERRORS.get(error, error)))
        return deferred
    has_epochs = ctx.api_version >= _FIRST_VERSION_WITH_EPOCHS
    missing_group_error = ErrorCode.GROUP_ID_NOT_FOUND if has_epochs else ErrorCode.ILLEGAL_GENERATION
    if not has_level(ctx, GROUP_VERSION):
        # As in Kafka 3.9.
        missing_group_error = ErrorCode.UNKNOWN_MEMBER_ID
    commit = Commit(
        generation_id=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        offsets=offsets,
        producer=TransactionalProducer(request.producer_id, request.producer_epoch),
        has_member_epochs=has_epochs,
        missing_group_error=missing_group_error,
    )
    yield from ctx.services.groups.offsets.commit(request.group_id, commit, respond)
    return deferred


def _verify(ctx: RequestContext, request: TxnOffsetCommitRequest) -> Verification | None:
    """Ask the coordinator to verify that the transaction includes the group's offsets partition or, in
    version 5, to add it. Return None if verification is disabled.
    """
    broker = ctx.services
    adds = ctx.api_version >= _FIRST_VERSION_THAT_ADDS
    if not adds and not broker.config.bool("transaction.partition.verification.enable"):
        return None
    return broker.verifications.ask(
        request.transactional_id,
        ProducerIdentity(request.producer_id, request.producer_epoch),
        [(OFFSETS_TOPIC, broker.groups.shard_of(request.group_id))],
        knows_abortable=ctx.api_version >= _FIRST_VERSION_WITH_ABORTABLE,
        adds=adds,
    )


def _response(ctx: RequestContext, order: _Order, errors: PartitionErrors) -> Steps[TxnOffsetCommitResponse]:
    topics: dict[tuple[UUID, str], TxnOffsetCommitResponseTopic] = {}
    for topic_id, name, partition in (yield from in_response_order(order, errors)):
        yield None
        error = errors[name, partition]
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and ctx.api_version < _FIRST_VERSION_WITH_LOADING:
            # Replace the error, because clients that use these versions crash on it (KAFKA-7296).
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        topic = topics.get((topic_id, name))
        if topic is None:
            topic = topics[topic_id, name] = TxnOffsetCommitResponseTopic(name=name, topic_id=topic_id)
        topic.partitions.append(TxnOffsetCommitResponsePartition(partition_index=partition, error_code=error))
    return TxnOffsetCommitResponse(topics=list(topics.values()))
