"""The records of share groups in `__consumer_offsets` (KIP-932), and how they are encoded."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.groups.consumer.java_order import DEFAULT_CAPACITY, int_order, uuid_order
from kafka_compat.groups.record_types import (
    GroupMetadata,
    RecordType,
    TargetMetadata,
    from_topics,
    group_metadata,
    target_assignment,
    target_metadata,
    to_topics,
)
from kafka_compat.groups.share.member import ShareMember
from kafka_compat.groups.share.partition_states import Partitions, PartitionStates, TopicPartitions
from kafka_compat.protocol.messages import share_group_records as messages

if TYPE_CHECKING:
    from kafka_compat.groups.consumer.assignors.assignor import Assignment


class ShareCurrentAssignment(NamedTuple):
    """The epochs and partitions of a member: fields of `ShareMember`."""

    epoch: int = 0
    previous_epoch: int = 0
    assigned: "Assignment" = {}


class ShareMemberRecord(NamedTuple):
    """A member and its subscription. The assignment in `value` is not part of the record."""

    group_id: str
    member_id: str
    value: ShareMember | None

    @property
    def machine_key(self) -> str:
        return self.group_id


class ShareGroupRecord(NamedTuple):
    group_id: str
    value: GroupMetadata | None

    @property
    def machine_key(self) -> str:
        return self.group_id


class ShareTargetMetadataRecord(NamedTuple):
    group_id: str
    value: TargetMetadata | None

    @property
    def machine_key(self) -> str:
        return self.group_id


class ShareTargetRecord(NamedTuple):
    """The target assignment of one member."""

    group_id: str
    member_id: str
    value: "Assignment | None"

    @property
    def machine_key(self) -> str:
        return self.group_id


class ShareCurrentRecord(NamedTuple):
    """The current assignment of one member."""

    group_id: str
    member_id: str
    value: ShareCurrentAssignment | None

    @property
    def machine_key(self) -> str:
        return self.group_id


class PartitionStatesRecord(NamedTuple):
    """The states of the group's share-partitions."""

    group_id: str
    value: PartitionStates | None

    @property
    def machine_key(self) -> str:
        return self.group_id


ShareRecord = (
    ShareMemberRecord
    | ShareGroupRecord
    | ShareTargetMetadataRecord
    | ShareTargetRecord
    | ShareCurrentRecord
    | PartitionStatesRecord
)


def _member_value(member: ShareMember) -> messages.ShareGroupMemberMetadataValue:
    return messages.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topic_names),
    )


def _member(key: messages.ShareGroupMemberMetadataKey, stored: Any) -> ShareMember:
    return ShareMember(
        key.member_id,
        stored.rack_id,
        stored.client_id,
        stored.client_host,
        tuple(stored.subscribed_topic_names),
    )


def _current_value(current: ShareCurrentAssignment) -> messages.ShareGroupCurrentMemberAssignmentValue:
    return messages.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        assigned_partitions=to_topics(current.assigned, messages.TopicPartitions),
    )


def _current(stored: messages.ShareGroupCurrentMemberAssignmentValue) -> ShareCurrentAssignment:
    return ShareCurrentAssignment(
        stored.member_epoch, stored.previous_member_epoch, from_topics(stored.assigned_partitions)
    )


def _states_value(states: PartitionStates) -> messages.ShareGroupStatePartitionMetadataValue:
    return messages.ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(states.initializing),
        initialized_topics=_infos(states.initialized),
        deleting_topics=[
            messages.TopicInfo(topic_id=topic_id, topic_name=states.deleting[topic_id])
            for topic_id in uuid_order(list(states.deleting))
        ],
    )


def _states(stored: messages.ShareGroupStatePartitionMetadataValue) -> PartitionStates:
    return PartitionStates(
        _partitions(stored.initializing_topics),
        _partitions(stored.initialized_topics),
        {each.topic_id: each.topic_name for each in stored.deleting_topics},
    )


def _infos(partitions: Partitions) -> list[messages.TopicPartitionsInfo]:
    """Return the partitions in the order of Kafka's HashMap and HashSets."""
    return [
        messages.TopicPartitionsInfo(
            topic_id=topic_id,
            topic_name=partitions[topic_id].name,
            partitions=int_order(sorted(partitions[topic_id].partitions), DEFAULT_CAPACITY),
        )
        for topic_id in uuid_order(list(partitions))
    ]


def _partitions(found: Iterable[messages.TopicPartitionsInfo]) -> Partitions:
    return {each.topic_id: TopicPartitions(each.topic_name, frozenset(each.partitions)) for each in found}


RECORD_TYPES: Final = (
    RecordType(
        ShareMemberRecord,
        10,
        messages.ShareGroupMemberMetadataKey,
        messages.ShareGroupMemberMetadataValue,
        _member_value,
        _member,
    ),
    group_metadata(ShareGroupRecord, 11, messages.ShareGroupMetadataKey, messages.ShareGroupMetadataValue),
    target_metadata(
        ShareTargetMetadataRecord,
        12,
        messages.ShareGroupTargetAssignmentMetadataKey,
        messages.ShareGroupTargetAssignmentMetadataValue,
    ),
    target_assignment(
        ShareTargetRecord,
        13,
        messages.ShareGroupTargetAssignmentMemberKey,
        messages.ShareGroupTargetAssignmentMemberValue,
        messages.TopicPartitions,
    ),
    RecordType(
        ShareCurrentRecord,
        14,
        messages.ShareGroupCurrentMemberAssignmentKey,
        messages.ShareGroupCurrentMemberAssignmentValue,
        _current_value,
        lambda _, stored: _current(stored),
    ),
    RecordType(
        PartitionStatesRecord,
        15,
        messages.ShareGroupStatePartitionMetadataKey,
        messages.ShareGroupStatePartitionMetadataValue,
        _states_value,
        lambda _, stored: _states(stored),
    ),
)
"""How the records of share groups are encoded."""
