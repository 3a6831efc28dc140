"""Encoding and decoding of the records of consumer groups in `__consumer_offsets` (KIP-848)."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.groups.consumer.member import ClassicMember, Member, MemberState, PartitionEpochs
from kafka_compat.protocol.codec import MalformedRequest, decode, decode_versioned, encode_versioned
from kafka_compat.protocol.messages import consumer_group_records as messages

if TYPE_CHECKING:
    from kafka_compat.groups.consumer.assignors.assignor import Assignment


class GroupMetadata(NamedTuple):
    """The epoch of a group, and the hash of its topics."""

    epoch: int
    metadata_hash: int


class TargetMetadata(NamedTuple):
    """The group epoch of the target assignment (-1: none), and when it was computed, in ms since the epoch. 0
    means that the next one may be computed at once.
    """

    epoch: int
    timestamp_ms: int


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

GROUP_KEY: Final = 3
PARTITION_METADATA_KEY: Final = 4
MEMBER_KEY: Final = 5
TARGET_METADATA_KEY: Final = 6
TARGET_ASSIGNMENT_KEY: Final = 7
CURRENT_ASSIGNMENT_KEY: Final = 8
REGEX_KEY: Final = 16


def encode_record(record: ConsumerRecord) -> tuple[bytes, bytes | None]:
    """Encode a record as (key, value). A tombstone's value is None. Raises ValueError if text is too long."""
    key, version, value = _parts(record)
    return encode_versioned(key, version), None if value is None else encode_versioned(value, 0)


def _parts(record: ConsumerRecord) -> tuple[Any, int, Any]:
    group_id = record.group_id
    match record:
        case GroupMetadataRecord(value=metadata):
            key: Any = messages.ConsumerGroupMetadataKey(group_id=group_id)
            return (
                key,
                GROUP_KEY,
                None
                if metadata is None
                else messages.ConsumerGroupMetadataValue(
                    epoch=metadata.epoch, metadata_hash=metadata.metadata_hash
                ),
            )
        case PartitionMetadataRecord():
            return messages.ConsumerGroupPartitionMetadataKey(group_id=group_id), PARTITION_METADATA_KEY, None
        case MemberMetadataRecord(member_id=member_id, value=member):
            key = messages.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
            return key, MEMBER_KEY, None if member is None else _member_value(member)
        case TargetMetadataRecord(value=target):
            key = messages.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
            return (
                key,
                TARGET_METADATA_KEY,
                None
                if target is None
                else (
                    messages.ConsumerGroupTargetAssignmentMetadataValue(
                        assignment_epoch=target.epoch, assignment_timestamp=target.timestamp_ms
                    )
                ),
            )
        case TargetAssignmentRecord(member_id=member_id, value=assignment):
            key = messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
            return (
                key,
                TARGET_ASSIGNMENT_KEY,
                None
                if assignment is None
                else (
                    messages.ConsumerGroupTargetAssignmentMemberValue(
                        topic_partitions=[
                            messages.TopicPartition(topic_id=topic_id, partitions=list(partitions))
                            for topic_id, partitions in assignment.items()
                        ]
                    )
                ),
            )
        case CurrentAssignmentRecord(member_id=member_id, value=current):
            key = messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
            return key, CURRENT_ASSIGNMENT_KEY, None if current is None else _current_value(current)
        case RegexRecord(regex=regex, value=resolved):
            key = messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
            return (
                key,
                REGEX_KEY,
                None
                if resolved is None
                else messages.ConsumerGroupRegularExpressionValue(
                    topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
                ),
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


def decode_record(key: bytes, value: bytes | None) -> ConsumerRecord | None:
    """Decode a record, or return None for other types of keys. Raises MalformedRequest if it is invalid."""
    version = int.from_bytes(key[:2], "big", signed=True)
    decoder = _DECODERS.get(version)
    try:
        return None if decoder is None else decoder(key, value)
    except ValueError as error:
        # The state is unknown, or the numbers of partitions and epochs differ.
        raise MalformedRequest(f"A consumer group record is invalid: {error}") from None


def _decode_group(key: bytes, value: bytes | None) -> ConsumerRecord:
    group_id = decode(messages.ConsumerGroupMetadataKey, GROUP_KEY, key, 2).group_id
    if value is None:
        return GroupMetadataRecord(group_id, None)
    found, _ = decode_versioned(messages.ConsumerGroupMetadataValue, value)
    return GroupMetadataRecord(group_id, GroupMetadata(found.epoch, found.metadata_hash))


def _decode_partition_metadata(key: bytes, value: bytes | None) -> ConsumerRecord:
    found = decode(messages.ConsumerGroupPartitionMetadataKey, PARTITION_METADATA_KEY, key, 2)
    return PartitionMetadataRecord(found.group_id, value)


def _decode_member(key: bytes, value: bytes | None) -> ConsumerRecord:
    found = decode(messages.ConsumerGroupMemberMetadataKey, MEMBER_KEY, key, 2)
    if value is None:
        return MemberMetadataRecord(found.group_id, found.member_id, None)
    stored, _ = decode_versioned(messages.ConsumerGroupMemberMetadataValue, value)
    classic = stored.classic_member_metadata
    member = Member(
        member_id=found.member_id,
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
    return MemberMetadataRecord(found.group_id, found.member_id, member)


def _decode_target_metadata(key: bytes, value: bytes | None) -> ConsumerRecord:
    found = decode(messages.ConsumerGroupTargetAssignmentMetadataKey, TARGET_METADATA_KEY, key, 2)
    if value is None:
        return TargetMetadataRecord(found.group_id, None)
    stored, _ = decode_versioned(messages.ConsumerGroupTargetAssignmentMetadataValue, value)
    target = TargetMetadata(stored.assignment_epoch, stored.assignment_timestamp)
    return TargetMetadataRecord(found.group_id, target)


def _decode_target_assignment(key: bytes, value: bytes | None) -> ConsumerRecord:
    found = decode(messages.ConsumerGroupTargetAssignmentMemberKey, TARGET_ASSIGNMENT_KEY, key, 2)
    if value is None:
        return TargetAssignmentRecord(found.group_id, found.member_id, None)
    stored, _ = decode_versioned(messages.ConsumerGroupTargetAssignmentMemberValue, value)
    assignment = {each.topic_id: tuple(each.partitions) for each in stored.topic_partitions}
    return TargetAssignmentRecord(found.group_id, found.member_id, assignment)


def _decode_current_assignment(key: bytes, value: bytes | None) -> ConsumerRecord:
    found = decode(messages.ConsumerGroupCurrentMemberAssignmentKey, CURRENT_ASSIGNMENT_KEY, key, 2)
    if value is None:
        return CurrentAssignmentRecord(found.group_id, found.member_id, None)
    stored, _ = decode_versioned(messages.ConsumerGroupCurrentMemberAssignmentValue, value)
    current = CurrentAssignment(
        stored.member_epoch,
        stored.previous_member_epoch,
        MemberState(stored.state),
        _partition_epochs(stored.assigned_partitions, stored.member_epoch),
        _partition_epochs(stored.partitions_pending_revocation, stored.member_epoch),
    )
    return CurrentAssignmentRecord(found.group_id, found.member_id, current)


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


def _decode_regex(key: bytes, value: bytes | None) -> ConsumerRecord:
    found = decode(messages.ConsumerGroupRegularExpressionKey, REGEX_KEY, key, 2)
    if value is None:
        return RegexRecord(found.group_id, found.regular_expression, None)
    stored, _ = decode_versioned(messages.ConsumerGroupRegularExpressionValue, value)
    resolved = ResolvedRegex(frozenset(stored.topics), stored.version, stored.timestamp)
    return RegexRecord(found.group_id, found.regular_expression, resolved)


_DECODERS: Final[Mapping[int, Callable[[bytes, bytes | None], ConsumerRecord]]] = {
    GROUP_KEY: _decode_group,
    PARTITION_METADATA_KEY: _decode_partition_metadata,
    MEMBER_KEY: _decode_member,
    TARGET_METADATA_KEY: _decode_target_metadata,
    TARGET_ASSIGNMENT_KEY: _decode_target_assignment,
    CURRENT_ASSIGNMENT_KEY: _decode_current_assignment,
    REGEX_KEY: _decode_regex,
}
