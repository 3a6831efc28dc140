"""The records of consumer groups in `__consumer_offsets` (KIP-848), and how they are encoded."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.groups.consumer.member import ClassicMember, Member, MemberState, PartitionEpochs
from kafka_compat.groups.record_types import (
    GroupMetadata,
    RecordType,
    TargetMetadata,
    group_metadata,
    target_assignment,
    target_metadata,
)
from kafka_compat.protocol.messages import consumer_group_records as messages

if TYPE_CHECKING:
    from kafka_compat.groups.consumer.assignors.assignor import Assignment


class CurrentAssignment(NamedTuple):
    """The reconciliation of a member: fields of `Member`."""

    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: PartitionEpochs = {}
    pending_revocation: PartitionEpochs = {}


class ResolvedRegex(NamedTuple):
    """The topics that match a regular expression, the metadata version, and the time in ms."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class GroupMetadataRecord(NamedTuple):
    group_id: str
    value: GroupMetadata | None

    @property
    def machine_key(self) -> str:
        return self.group_id


class PartitionMetadataRecord(NamedTuple):
    """The topics of a group, as Kafka 4.0 stored them. Only tombstones are written."""

    group_id: str
    value: object

    @property
    def machine_key(self) -> str:
        return self.group_id


class MemberMetadataRecord(NamedTuple):
    """A member and its subscription. The assignment in `value` is not part of the record."""

    group_id: str
    member_id: str
    value: Member | None

    @property
    def machine_key(self) -> str:
        return self.group_id


class TargetMetadataRecord(NamedTuple):
    group_id: str
    value: TargetMetadata | None

    @property
    def machine_key(self) -> str:
        return self.group_id


class TargetAssignmentRecord(NamedTuple):
    """The target assignment of one member."""

    group_id: str
    member_id: str
    value: "Assignment | None"

    @property
    def machine_key(self) -> str:
        return self.group_id


class CurrentAssignmentRecord(NamedTuple):
    """The current assignment of one member."""

    group_id: str
    member_id: str
    value: CurrentAssignment | None

    @property
    def machine_key(self) -> str:
        return self.group_id


class RegexRecord(NamedTuple):
    """The topics that match a regular expression of a group's members."""

    group_id: str
    regex: str
    value: ResolvedRegex | None

    @property
    def machine_key(self) -> str:
        return self.group_id


ConsumerRecord = (
    GroupMetadataRecord
    | PartitionMetadataRecord
    | MemberMetadataRecord
    | TargetMetadataRecord
    | TargetAssignmentRecord
    | CurrentAssignmentRecord
    | RegexRecord
)


def _member_value(member: Member) -> messages.ConsumerGroupMemberMetadataValue:
    classic = None
    if member.classic is not None:
        classic = messages.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                messages.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    return messages.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=classic,
    )


def _current_value(current: CurrentAssignment) -> messages.ConsumerGroupCurrentMemberAssignmentValue:
    return messages.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=int(current.state),
        assigned_partitions=_topic_partitions(current.assigned),
        partitions_pending_revocation=_topic_partitions(current.pending_revocation),
    )


def _topic_partitions(partitions: PartitionEpochs) -> list[messages.TopicPartitions]:
    return [
        messages.TopicPartitions(
            topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values())
        )
        for topic_id, epochs in partitions.items()
    ]


def current_assignment_record(group_id: str, member: Member) -> CurrentAssignmentRecord:
    """Return the record of a member's current assignment."""
    current = CurrentAssignment(
        member.epoch, member.previous_epoch, member.state, member.assigned, member.pending_revocation
    )
    return CurrentAssignmentRecord(group_id, member.member_id, current)


def _member(key: messages.ConsumerGroupMemberMetadataKey, stored: Any) -> Member:
    classic = stored.classic_member_metadata
    return Member(
        member_id=key.member_id,
        instance_id=stored.instance_id,
        rack_id=stored.rack_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        topic_names=tuple(stored.subscribed_topic_names),
        topic_regex=stored.subscribed_topic_regex or "",
        rebalance_timeout_ms=stored.rebalance_timeout_ms,
        server_assignor=stored.server_assignor,
        classic=None
        if classic is None
        else ClassicMember(
            classic.session_timeout_ms,
            tuple((protocol.name, protocol.metadata) for protocol in classic.supported_protocols),
        ),
    )


def _current(stored: messages.ConsumerGroupCurrentMemberAssignmentValue) -> CurrentAssignment:
    return CurrentAssignment(
        stored.member_epoch,
        stored.previous_member_epoch,
        MemberState(stored.state),
        _partition_epochs(stored.assigned_partitions, stored.member_epoch),
        _partition_epochs(stored.partitions_pending_revocation, stored.member_epoch),
    )


def _partition_epochs(found: Iterable[messages.TopicPartitions], member_epoch: int) -> PartitionEpochs:
    """Return partitions with their epochs, which older versions of Kafka did not store."""
    return {
        each.topic_id: dict(
            zip(
                each.partitions,
                each.assignment_epochs or [member_epoch] * len(each.partitions),
                strict=True,
            )
        )
        for each in found
    }


RECORD_TYPES: Final = (
    group_metadata(
        GroupMetadataRecord, 3, messages.ConsumerGroupMetadataKey, messages.ConsumerGroupMetadataValue
    ),
    RecordType(
        PartitionMetadataRecord,
        4,
        messages.ConsumerGroupPartitionMetadataKey,
        None,
        lambda value: value,
        lambda _, value: value,
    ),
    RecordType(
        MemberMetadataRecord,
        5,
        messages.ConsumerGroupMemberMetadataKey,
        messages.ConsumerGroupMemberMetadataValue,
        _member_value,
        _member,
    ),
    target_metadata(
        TargetMetadataRecord,
        6,
        messages.ConsumerGroupTargetAssignmentMetadataKey,
        messages.ConsumerGroupTargetAssignmentMetadataValue,
    ),
    target_assignment(
        TargetAssignmentRecord,
        7,
        messages.ConsumerGroupTargetAssignmentMemberKey,
        messages.ConsumerGroupTargetAssignmentMemberValue,
        messages.TopicPartition,
    ),
    RecordType(
        CurrentAssignmentRecord,
        8,
        messages.ConsumerGroupCurrentMemberAssignmentKey,
        messages.ConsumerGroupCurrentMemberAssignmentValue,
        _current_value,
        lambda _, stored: _current(stored),
    ),
    RecordType(
        RegexRecord,
        16,
        messages.ConsumerGroupRegularExpressionKey,
        messages.ConsumerGroupRegularExpressionValue,
        lambda value: messages.ConsumerGroupRegularExpressionValue(
            topics=sorted(value.topics), version=value.version, timestamp=value.timestamp_ms
        ),
        lambda _, stored: ResolvedRegex(frozenset(stored.topics), stored.version, stored.timestamp),
    ),
)
"""How the records of consumer groups are encoded."""
