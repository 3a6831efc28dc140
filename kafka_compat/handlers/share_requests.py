"""Parts that ShareFetch and ShareAcknowledge have in common (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import ne
from typing import TYPE_CHECKING, Final, TypeVar

from kafka_compat.api.handler import RequestContext
from kafka_compat.errors import STANDARD_MESSAGES, ErrorCode, KafkaError
from kafka_compat.handlers.authorization import Denied, require
from kafka_compat.handlers.feature_gates import require_level
from kafka_compat.handlers.share_response_order import in_order_of_acknowledgement
from kafka_compat.long_work import Steps, batched
from kafka_compat.metadata.features import SHARE_VERSION
from kafka_compat.protocol.messages.share_fetch import AcknowledgementBatch, LeaderIdAndEpoch, NodeEndpoint
from kafka_compat.security.authorizer import Operation, ResourceType
from kafka_compat.share_coordinator.state_batches import BATCHES_MAX
from kafka_compat.share_partitions.changes import RENEW, Acknowledgement
from kafka_compat.share_partitions.share_session import SessionKey, TopicIdPartition

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.share_partitions.share_partition_manager import SharePartitionManager

FIRST_VERSION_WITH_RENEWALS: Final = 2
_MEMBER_ID_LENGTH_MAX: Final = 36
_TYPES_AT_ONCE: Final = 20_000
"""Number of acknowledgement types that are checked in one step."""

Requested = TypeVar("Requested")
Outcome = tuple[ErrorCode, str | None]
"""The result of the acknowledgements of a partition: its error code, and the message, if Kafka sends one."""
Outcomes = dict[TopicIdPartition, Outcome]
AcknowledgedBatches = dict[TopicIdPartition, Sequence[AcknowledgementBatch]]


def checked_key(ctx: RequestContext, group_id: str | None, member_id: str | None) -> SessionKey:
    """Return the key of the session. Raises KafkaError, which fails the whole request, if the client is not
    authorized to read the group, or an ID is invalid.
    """
    require_level(ctx, SHARE_VERSION)
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    require(ctx, Operation.READ, ResourceType.GROUP, group_id)
    if not member_id or len(member_id) > _MEMBER_ID_LENGTH_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return SessionKey(group_id, member_id)


class Topics:
    """The topics of a request: which exist, and which the client may read."""

    def __init__(self, ctx: RequestContext) -> None:
        self._metadata = ctx.services.metadata
        self._denied = Denied(ctx, Operation.READ, ResourceType.TOPIC)

    def name_of(self, partition: TopicIdPartition) -> str | None:
        return self._metadata.topic_name(partition.topic_id)

    def problem(self, partition: TopicIdPartition, known_name: str | None = None) -> ErrorCode:
        """Return why a partition cannot be used, or NONE. `known_name` is the former name of its topic."""
        name = self._metadata.topic_name(partition.topic_id) or known_name
        if name is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if name in self._denied:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if self._metadata.partition(name, partition.partition) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE


def acknowledge(
    ctx: RequestContext,
    manager: SharePartitionManager,
    key: SessionKey,
    topics: Topics,
    batches: AcknowledgedBatches,
    is_renew_ack: bool,
    done: Callable[[Outcomes], None],
) -> Steps[None]:
    """Acknowledge records, and call `done` when the results of all partitions are known and stored.
    Partitions without batches have results only if another partition has valid ones.
    """
    has_renewals = ctx.api_version >= FIRST_VERSION_WITH_RENEWALS
    outcomes: Outcomes = {}
    without_batches: Outcomes = {}
    has_valid_batches = False
    waiting = 1

    def completed(partition: TopicIdPartition | None, code: ErrorCode) -> None:
        nonlocal waiting
        waiting -= 1
        if partition is not None:
            outcomes[partition] = (code, _message_of(code))
        if not waiting:
            done(outcomes)

    ordered = yield from in_order_of_acknowledgement(batches, topics.name_of)
    yield None
    for partition, acknowledged in ordered.items():
        code = topics.problem(partition)
        if code != ErrorCode.UNKNOWN_TOPIC_ID and acknowledged:
            invalid = yield from _problem_of(acknowledged, has_renewals, is_renew_ack)
            code = invalid if invalid == ErrorCode.INVALID_REQUEST else code or invalid
        if code != ErrorCode.NONE:
            outcomes[partition] = (code, None)
        elif not acknowledged:
            without_batches[partition] = (code, None)
        else:
            has_valid_batches = True
            waiting += 1
            acknowledgements: list[Acknowledgement] = []
            for some in batched(acknowledged):
                acknowledgements += (
                    Acknowledgement(each.first_offset, each.last_offset, each.acknowledge_types)
                    for each in some
                )
                yield None
            done_with = partial(completed, partition)
            yield from manager.acknowledge(key, partition, acknowledgements, done_with)
        yield None
    if has_valid_batches:
        outcomes |= without_batches
    completed(None, ErrorCode.NONE)


def _problem_of(
    batches: Sequence[AcknowledgementBatch], has_renewals: bool, is_renew_ack: bool
) -> Steps[ErrorCode]:
    """Return why the acknowledgements of a partition are invalid, or NONE."""
    type_max = RENEW if has_renewals else RENEW - 1
    end = -1
    ranges = 0
    for batch in batches:
        types = batch.acknowledge_types
        if batch.first_offset > batch.last_offset or batch.first_offset < end or not types:
            return ErrorCode.INVALID_REQUEST
        if len(types) > 1 and len(types) != batch.last_offset - batch.first_offset + 1:
            return ErrorCode.INVALID_REQUEST
        for first in range(0, len(types), _TYPES_AT_ONCE):
            some = types[first : first + _TYPES_AT_ONCE]
            if min(some) < 0 or max(some) > type_max or (RENEW in some and not is_renew_ack):
                return ErrorCode.INVALID_REQUEST
            ranges += 1 + sum(map(ne, some, some[1:]))
            yield None
        end = batch.last_offset
    return ErrorCode.NONE if ranges <= BATCHES_MAX else ErrorCode.UNKNOWN_SERVER_ERROR


class Leaders:
    """The leaders named in a response, for clients that must fetch from another broker."""

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._endpoints: dict[int, NodeEndpoint] = {}

    @property
    def endpoints(self) -> list[NodeEndpoint]:
        return list(self._endpoints.values())

    def of(self, partition: TopicIdPartition, code: ErrorCode) -> LeaderIdAndEpoch | None:
        """Return the leader of a partition, and list its address, if the error says that this broker is not
        leader.
        """
        if code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            return None
        services = self._ctx.services
        metadata = services.metadata
        name = metadata.topic_name(partition.topic_id)
        known = None if name is None else metadata.partition(name, partition.partition)
        if known is None:
            return LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
        broker = metadata.brokers.get(known.leader)
        if broker is not None and known.leader not in self._endpoints:
            host, port = services.address_for(broker, self._ctx.caller)
            self._endpoints[known.leader] = NodeEndpoint(
                node_id=known.leader, host=host, port=port, rack=broker.rack
            )
        return LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=known.leader_epoch)


_MESSAGES: Final = {
    ErrorCode.INVALID_RECORD_STATE: "The member has not acquired all of these records.",
    ErrorCode.INVALID_REQUEST: "Not all of these offsets have been acquired.",
}


def _message_of(code: ErrorCode) -> str | None:
    """Return the text for an error of a share-partition."""
    return None if code == ErrorCode.NONE else _MESSAGES.get(code) or STANDARD_MESSAGES.get(code, code.name)


def grouped(
    items: Iterable[tuple[TopicIdPartition, Requested]],
) -> Steps[dict[UUID, list[Requested]]]:
    """Group the partitions of a response by topic, in order."""
    topics: dict[UUID, list[Requested]] = {}
    for key, each in items:
        topics.setdefault(key.topic_id, []).append(each)
        yield None
    return topics
