"""Encoding and decoding of the records of share groups in `__consumer_offsets` (KIP-932)."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.groups.consumer.java_order import DEFAULT_CAPACITY, int_order, uuid_order
from kafka_compat.groups.consumer.records import GroupMetadata, TargetMetadata
from kafka_compat.groups.share.member import ShareMember
from kafka_compat.groups.share.partition_states import Partitions, PartitionStates, TopicPartitions
from kafka_compat.protocol.codec import decode, decode_versioned, encode_versioned
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
SHARE_RECORDS: Final = (
    ShareMemberRecord,
    ShareGroupRecord,
    ShareTargetMetadataRecord,
    ShareTargetRecord,
    ShareCurrentRecord,
    PartitionStatesRecord,
)

MEMBER_KEY: Final = 10
GROUP_KEY: Final = 11
TARGET_METADATA_KEY: Final = 12
TARGET_ASSIGNMENT_KEY: Final = 13
CURRENT_ASSIGNMENT_KEY: Final = 14
PARTITION_STATES_KEY: Final = 15
KEYS: Final = range(MEMBER_KEY, PARTITION_STATES_KEY + 1)


def encode_record(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Encode a record as (key, value). A tombstone's value is None. Raises ValueError if text is too long."""
    key, version, value = _parts(record)
    return encode_versioned(key, version), None if value is None else encode_versioned(value, 0)


def _parts(record: ShareRecord) -> tuple[Any, int, Any]:
    value: Any = None
    match record:
        case ShareMemberRecord(group_id, member_id, member):
            if member is not None:
                value = messages.ShareGroupMemberMetadataValue(
                    rack_id=member.rack_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    subscribed_topic_names=list(member.topic_names),
                )
            key: Any = messages.ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
            return key, MEMBER_KEY, value
        case ShareGroupRecord(group_id, metadata):
            if metadata is not None:
                value = messages.ShareGroupMetadataValue(
                    epoch=metadata.epoch, metadata_hash=metadata.metadata_hash
                )
            return messages.ShareGroupMetadataKey(group_id=group_id), GROUP_KEY, value
        case ShareTargetMetadataRecord(group_id, target):
            if target is not None:
                value = messages.ShareGroupTargetAssignmentMetadataValue(
                    assignment_epoch=target.epoch, assignment_timestamp=target.timestamp_ms
                )
            key = messages.ShareGroupTargetAssignmentMetadataKey(group_id=group_id)
            return key, TARGET_METADATA_KEY, value
        case ShareTargetRecord(group_id, member_id, assignment):
            if assignment is not None:
                value = messages.ShareGroupTargetAssignmentMemberValue(topic_partitions=_topics(assignment))
            key = messages.ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
            return key, TARGET_ASSIGNMENT_KEY, value
        case ShareCurrentRecord(group_id, member_id, current):
            if current is not None:
                value = messages.ShareGroupCurrentMemberAssignmentValue(
                    member_epoch=current.epoch,
                    previous_member_epoch=current.previous_epoch,
                    assigned_partitions=_topics(current.assigned),
                )
            key = messages.ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
            return key, CURRENT_ASSIGNMENT_KEY, value
        case PartitionStatesRecord(group_id, states):
            if states is not None:
                value = messages.ShareGroupStatePartitionMetadataValue(
                    initializing_topics=_infos(states.initializing),
                    initialized_topics=_infos(states.initialized),
                    deleting_topics=[
                        messages.TopicInfo(topic_id=topic_id, topic_name=states.deleting[topic_id])
                        for topic_id in uuid_order(list(states.deleting))
                    ],
                )
            return (
                messages.ShareGroupStatePartitionMetadataKey(group_id=group_id),
                PARTITION_STATES_KEY,
                value,
            )


def _topics(assignment: "Assignment") -> list[messages.TopicPartitions]:
    return [
        messages.TopicPartitions(topic_id=topic_id, partitions=list(partitions))
        for topic_id, partitions in assignment.items()
    ]


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


def decode_record(key: bytes, value: bytes | None) -> ShareRecord | None:
    """Decode a record, or return None for other types of keys. Raises MalformedRequest if it is invalid."""
    decoder = _DECODERS.get(int.from_bytes(key[:2], "big", signed=True))
    return None if decoder is None else decoder(key, value)


def _decode_member(key: bytes, value: bytes | None) -> ShareRecord:
    found = decode(messages.ShareGroupMemberMetadataKey, MEMBER_KEY, key, 2)
    if value is None:
        return ShareMemberRecord(found.group_id, found.member_id, None)
    stored, _ = decode_versioned(messages.ShareGroupMemberMetadataValue, value)
    member = ShareMember(
        found.member_id,
        stored.rack_id,
        stored.client_id,
        stored.client_host,
        tuple(stored.subscribed_topic_names),
    )
    return ShareMemberRecord(found.group_id, found.member_id, member)


def _decode_group(key: bytes, value: bytes | None) -> ShareRecord:
    group_id = decode(messages.ShareGroupMetadataKey, GROUP_KEY, key, 2).group_id
    if value is None:
        return ShareGroupRecord(group_id, None)
    stored, _ = decode_versioned(messages.ShareGroupMetadataValue, value)
    return ShareGroupRecord(group_id, GroupMetadata(stored.epoch, stored.metadata_hash))


def _decode_target_metadata(key: bytes, value: bytes | None) -> ShareRecord:
    group_id = decode(messages.ShareGroupTargetAssignmentMetadataKey, TARGET_METADATA_KEY, key, 2).group_id
    if value is None:
        return ShareTargetMetadataRecord(group_id, None)
    stored, _ = decode_versioned(messages.ShareGroupTargetAssignmentMetadataValue, value)
    target = TargetMetadata(stored.assignment_epoch, stored.assignment_timestamp)
    return ShareTargetMetadataRecord(group_id, target)


def _decode_target(key: bytes, value: bytes | None) -> ShareRecord:
    found = decode(messages.ShareGroupTargetAssignmentMemberKey, TARGET_ASSIGNMENT_KEY, key, 2)
    if value is None:
        return ShareTargetRecord(found.group_id, found.member_id, None)
    stored, _ = decode_versioned(messages.ShareGroupTargetAssignmentMemberValue, value)
    return ShareTargetRecord(found.group_id, found.member_id, _assignment(stored.topic_partitions))


def _decode_current(key: bytes, value: bytes | None) -> ShareRecord:
    found = decode(messages.ShareGroupCurrentMemberAssignmentKey, CURRENT_ASSIGNMENT_KEY, key, 2)
    if value is None:
        return ShareCurrentRecord(found.group_id, found.member_id, None)
    stored, _ = decode_versioned(messages.ShareGroupCurrentMemberAssignmentValue, value)
    current = ShareCurrentAssignment(
        stored.member_epoch, stored.previous_member_epoch, _assignment(stored.assigned_partitions)
    )
    return ShareCurrentRecord(found.group_id, found.member_id, current)


def _decode_states(key: bytes, value: bytes | None) -> ShareRecord:
    group_id = decode(messages.ShareGroupStatePartitionMetadataKey, PARTITION_STATES_KEY, key, 2).group_id
    if value is None:
        return PartitionStatesRecord(group_id, None)
    stored, _ = decode_versioned(messages.ShareGroupStatePartitionMetadataValue, value)
    states = PartitionStates(
        _partitions(stored.initializing_topics),
        _partitions(stored.initialized_topics),
        {each.topic_id: each.topic_name for each in stored.deleting_topics},
    )
    return PartitionStatesRecord(group_id, states)


def _assignment(found: Iterable[messages.TopicPartitions]) -> "Assignment":
    return {each.topic_id: tuple(each.partitions) for each in found}


def _partitions(found: Iterable[messages.TopicPartitionsInfo]) -> Partitions:
    return {each.topic_id: TopicPartitions(each.topic_name, frozenset(each.partitions)) for each in found}


_DECODERS: Final[Mapping[int, Callable[[bytes, bytes | None], ShareRecord]]] = {
    MEMBER_KEY: _decode_member,
    GROUP_KEY: _decode_group,
    TARGET_METADATA_KEY: _decode_target_metadata,
    TARGET_ASSIGNMENT_KEY: _decode_target,
    CURRENT_ASSIGNMENT_KEY: _decode_current,
    PARTITION_STATES_KEY: _decode_states,
}
"""Maps types of keys to decoders."""
