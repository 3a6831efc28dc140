"""TxnOffsetCommit (key 28): store offsets of a group as part of a transaction.

They show when the transaction commits. From version 3 on the member's generation fences members that a
rebalance has replaced (KIP-447); from version 4 on a client understands TRANSACTION_ABORTABLE, and from
version 5 on this request adds the group to the transaction (KIP-890).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.dispatch import PENDING, RequestContext, handler
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.coordinator_log import TransactionalProducer
from kafka_compat.groups.model import Commit, OffsetAndMetadata
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka_compat.topic_names import OFFSETS_TOPIC
from kafka_compat.transactions.model import ProducerIdentity, TopicPartition

if TYPE_CHECKING:
    from kafka_compat.transactions.verification import PartitionErrors, Question

_FIRST_VERSION_WITH_LOADING = 2
_FIRST_VERSION_WITH_ABORTABLE = 4
_FIRST_VERSION_THAT_ADDS = 5
_VERIFICATION_ERRORS: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
}
"""What clients make of an error of the other coordinator: they try again, with the first here."""


@handler(ApiKey.TXN_OFFSET_COMMIT)
def txn_offset_commit(ctx: RequestContext, request: TxnOffsetCommitRequest) -> object:
    now_ms = ctx.broker.clock.now_ms()
    offsets = {
        (topic.name, partition.partition_index): OffsetAndMetadata(
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.committed_metadata or "",
            now_ms,
            -1,
        )
        for topic in request.topics
        for partition in topic.partitions
    }
    if not offsets:
        return TxnOffsetCommitResponse()
    if OFFSETS_TOPIC not in ctx.broker.metadata.topics:
        return _response(ctx, dict.fromkeys(offsets, ErrorCode.NOT_COORDINATOR))
    question = _verify(ctx, request)
    if question is None:
        return _commit(ctx, request, offsets, ErrorCode.NONE)
    if question.is_answered:
        (error,) = question.take().values()
        return _commit(ctx, request, offsets, error)
    return _when_verified(ctx, request, offsets, question)


async def _when_verified(
    ctx: RequestContext,
    request: TxnOffsetCommitRequest,
    offsets: dict[TopicPartition, OffsetAndMetadata],
    question: Question,
) -> object:
    await question.wait()
    (error,) = question.take().values()
    return _commit(ctx, request, offsets, error)


def _commit(
    ctx: RequestContext,
    request: TxnOffsetCommitRequest,
    offsets: dict[TopicPartition, OffsetAndMetadata],
    error: ErrorCode,
) -> object:
    if error:
        return _response(ctx, dict.fromkeys(offsets, _VERIFICATION_ERRORS.get(error, error)))
    commit = Commit(
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        offsets=offsets,
        producer=TransactionalProducer(request.producer_id, request.producer_epoch),
    )
    order = list(offsets)
    ctx.broker.groups.commit_offsets(
        request.group_id,
        commit,
        lambda errors: ctx.respond(_response(ctx, {key: errors[key] for key in order})),
    )
    return PENDING


def _verify(ctx: RequestContext, request: TxnOffsetCommitRequest) -> Question | None:
    """Ask whether the group's partition of `__consumer_offsets` is in the transaction; None where nobody
    wants to know.
    """
    broker = ctx.broker
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


def _response(ctx: RequestContext, errors: PartitionErrors) -> TxnOffsetCommitResponse:
    topics: dict[str, TxnOffsetCommitResponseTopic] = {}
    for (topic, partition), error in errors.items():
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and ctx.api_version < _FIRST_VERSION_WITH_LOADING:
            # Clients of that age crash upon the other error (KAFKA-7296).
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        topics.setdefault(topic, TxnOffsetCommitResponseTopic(name=topic)).partitions.append(
            TxnOffsetCommitResponsePartition(partition_index=partition, error_code=error)
        )
    return TxnOffsetCommitResponse(topics=list(topics.values()))
