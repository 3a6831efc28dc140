"""TxnOffsetCommit (API key 28): store a group's offsets as part of a transaction.

The offsets become visible when the transaction commits. In version 3 and later, the member's generation
fences members that a rebalance has replaced (KIP-447). In version 4 and later, clients support
TRANSACTION_ABORTABLE; in version 5, the request adds the group to the transaction (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.api.handler import RequestContext, handler
from kafka_compat.coordinator_runtime.coordinator_log import TransactionalProducer
from kafka_compat.deferred import Deferred
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.requests import Commit, OffsetAndMetadata
from kafka_compat.handlers.authorization import Denied, require
from kafka_compat.long_work import Steps
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
_VERIFICATION_ERRORS: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}
"""Maps errors from the transaction coordinator to errors after which clients retry this request."""


@handler(0, 5)
def txn_offset_commit(ctx: RequestContext, request: TxnOffsetCommitRequest) -> Steps[object]:
    require(ctx, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    require(ctx, Operation.READ, ResourceType.GROUP, request.group_id)
    denied = Denied(ctx, Operation.READ, ResourceType.TOPIC)
    refused: PartitionErrors = {}
    now_ms = ctx.services.clock.now_ms()
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            yield None
            key = (topic.name, partition.partition_index)
            if topic.name in denied:
                refused[key] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                continue
            if ctx.services.metadata.partition(*key) is None:
                refused[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            offsets[key] = OffsetAndMetadata(
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata or "",
                now_ms,
                -1,
            )
    if not offsets:
        return (yield from _response(ctx, refused))
    if OFFSETS_TOPIC not in ctx.services.metadata.topics:
        refused |= dict.fromkeys(offsets, ErrorCode.NOT_COORDINATOR)
        return (yield from _response(ctx, refused))
    verification = _verify(ctx, request)
    if verification is None:
        return (yield from _commit(ctx, request, offsets, refused, ErrorCode.NONE))
    if verification.is_answered:
        (error,) = verification.take().values()
        return (yield from _commit(ctx, request, offsets, refused, error))
    return _when_verified(ctx, request, offsets, refused, verification)


async def _when_verified(
    ctx: RequestContext,
    request: TxnOffsetCommitRequest,
    offsets: dict[TopicPartition, OffsetAndMetadata],
    refused: PartitionErrors,
    verification: Verification,
) -> object:
    await verification.wait()
    (error,) = verification.take().values()
    return await ctx.long_work.finish(_commit(ctx, request, offsets, refused, error))


def _commit(
    ctx: RequestContext,
    request: TxnOffsetCommitRequest,
    offsets: dict[TopicPartition, OffsetAndMetadata],
    refused: PartitionErrors,
    error: ErrorCode,
) -> Steps[object]:

    def respond(errors: PartitionErrors) -> None:
        ctx.long_work.start(_response(ctx, errors | refused), deferred.complete)

    deferred = Deferred()
    if error:
        respond(dict.fromkeys(offsets, _VERIFICATION_ERRORS.get(error, error)))
        return deferred
    commit = Commit(
        generation_id=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        offsets=offsets,
        producer=TransactionalProducer(request.producer_id, request.producer_epoch),
    )
    order = list(offsets)
    yield from ctx.services.groups.commit_offsets(
        request.group_id, commit, lambda errors: respond({key: errors[key] for key in order})
    )
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


def _response(ctx: RequestContext, errors: PartitionErrors) -> Steps[TxnOffsetCommitResponse]:
    topics: dict[str, TxnOffsetCommitResponseTopic] = {}
    for (topic, partition), error in errors.items():
        yield None
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and ctx.api_version < _FIRST_VERSION_WITH_LOADING:
            # Replace the error, because clients that use these versions crash on it (KAFKA-7296).
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        topics.setdefault(topic, TxnOffsetCommitResponseTopic(name=topic)).partitions.append(
            TxnOffsetCommitResponsePartition(partition_index=partition, error_code=error)
        )
    return TxnOffsetCommitResponse(topics=list(topics.values()))
