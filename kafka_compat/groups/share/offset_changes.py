"""Changes of a share group's start offsets, and the deletion of its states (KIP-932).

Each change begins with a record in `__consumer_offsets`, continues at the share coordinator, and ends with
another record. In between, the group's partition states say what must be completed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.coordinator_runtime.machine import Now, Waiter, Write
from kafka_compat.errors import STANDARD_MESSAGES, ErrorCode
from kafka_compat.groups.member_writes import STORE_FAILURES, MembersStored
from kafka_compat.groups.share.members import InitializeStates, ShareMembers
from kafka_compat.groups.share.partition_states import PartitionStates, TopicPartitions, combined
from kafka_compat.long_work import Steps, batched
from kafka_compat.protocol.zero_uuid import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.groups.share.records import ShareRecord

NEGATIVE_PARTITION = "Partition numbers must not be negative."
NO_OFFSETS = "There is no offset information to delete."
MESSAGES = {
    **{
        code: STANDARD_MESSAGES[code]
        for code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    },
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
}
"""The messages in responses. Other error codes have no message."""


class NewOffsets(NamedTuple):
    """A topic in an AlterShareGroupOffsets request: pairs of a partition and its start offset."""

    name: str
    offsets: Sequence[tuple[int, int]]


class AlteredTopic(NamedTuple):
    """A topic in an AlterShareGroupOffsets response: pairs of a partition and an error code."""

    name: str
    topic_id: "UUID"
    partitions: Sequence[tuple[int, ErrorCode]]


class DeletedTopic(NamedTuple):
    """A topic in a DeleteShareGroupOffsets response."""

    name: str
    topic_id: "UUID"
    error: ErrorCode
    message: str | None = None


class OffsetsResult(NamedTuple):
    """The result of a request that alters or deletes offsets. `error` applies to the whole request."""

    error: ErrorCode
    message: str | None = None
    topics: Sequence[AlteredTopic | DeletedTopic] = ()


class AlterStates(NamedTuple):
    """An effect: initialize states for an AlterShareGroupOffsets request."""

    waiter: Waiter
    states: InitializeStates
    topics: Sequence[AlteredTopic]


class DeleteStates(NamedTuple):
    """An effect: delete the states of these partitions. If `topics` is None, the group is deleted afterwards;
    otherwise, the offsets of these topics. `rejected` are the other topics of the request.
    """

    waiter: Waiter
    partitions: "Sequence[tuple[UUID, int]]"
    topics: "Mapping[UUID, str] | None"
    rejected: Sequence[DeletedTopic] = ()


class ChangeBegun(NamedTuple):
    """The purpose of the first write of a change. `failed` returns the result if the write fails."""

    waiter: Waiter
    failed: Callable[[ErrorCode], object]


def failed_offsets(error: ErrorCode) -> OffsetsResult:
    """Return the result of a request whose records could not be stored."""
    return OffsetsResult(STORE_FAILURES.get(error, error))


class OffsetChanges:
    """Changes of one group. The group is a share group, or does not exist."""

    __slots__ = "_group"

    def __init__(self, group: ShareMembers) -> None:
        self._group = group

    def alter(self, topics: Sequence[NewOffsets], waiter: Waiter, now: Now) -> Steps[None]:
        """Process an AlterShareGroupOffsets request, which may create the group, in steps."""
        group = self._group
        if group.state.members.current:
            group.outbox.respond(waiter, OffsetsResult(ErrorCode.NON_EMPTY_GROUP))
            return
        altered: list[AlteredTopic] = []
        begun: dict[UUID, TopicPartitions] = {}
        start_offsets: dict[tuple[UUID, int], int] = {}
        for topic in {each.name: each for each in topics}.values():
            yield None
            topic_id = group.common.topics.topic_id(topic.name)
            count = group.common.partition_counts([topic.name]).get(topic_id or ZERO_UUID, 0)
            errors: list[tuple[int, ErrorCode]] = []
            for some in batched(topic.offsets):
                errors += [
                    (each, ErrorCode.NONE if each < count else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    for each, _ in some
                ]
                yield None
            altered.append(AlteredTopic(topic.name, topic_id or ZERO_UUID, errors))
            if topic_id is not None:
                known = {each: offset for each, offset in topic.offsets if each < count}
                begun[topic_id] = TopicPartitions(topic.name, frozenset(known))
                start_offsets.update(((topic_id, each), offset) for each, offset in known.items())
        if not begun:
            group.outbox.respond_when_committed(
                waiter, OffsetsResult(ErrorCode.NONE, None, altered), failed_offsets
            )
            return
        record = group.states_record(group.state.current_states.begin(begun), now)
        group.outbox.write(Write([record], ChangeBegun(waiter, failed_offsets)))
        if any(partition < 0 for _, partition in start_offsets):
            # As in Kafka, no state is initialized, but the initialization has begun.
            result = OffsetsResult(ErrorCode.UNKNOWN_SERVER_ERROR, NEGATIVE_PARTITION)
            group.outbox.respond_when_committed(waiter, result, failed_offsets)
            return
        initialize = InitializeStates(group.state.current_metadata.epoch, start_offsets, begun)
        group.outbox.perform(AlterStates(waiter, initialize, altered))

    def altered(self, effect: AlterStates, errors: "Mapping[tuple[UUID, int], ErrorCode]", now: Now) -> None:
        """Respond to an AlterShareGroupOffsets request. Unless a state could not be initialized, store that
        the states are.
        """
        group = self._group
        topics = [
            each._replace(
                partitions=[
                    (partition, error or errors.get((each.topic_id, partition), ErrorCode.NONE))
                    for partition, error in each.partitions
                ]
            )
            for each in effect.topics
        ]
        if effect.states.start_offsets and not any(errors.values()):
            # As in Kafka, a topic without any existing partition stays among those being initialized.
            done = {key: each for key, each in effect.states.partitions.items() if each.partitions}
            group.states_initialized(done, ErrorCode.NONE, now)
        result = OffsetsResult(ErrorCode.NONE, None, topics)
        group.outbox.respond_when_committed(effect.waiter, result, failed_offsets)

    def delete(self, names: Sequence[str], waiter: Waiter, now: Now) -> Steps[None]:
        """Process a DeleteShareGroupOffsets request for a group that exists, in steps."""
        group = self._group
        if group.state.members.current:
            group.outbox.respond(waiter, OffsetsResult(ErrorCode.NON_EMPTY_GROUP))
            return
        states = group.state.partition_states.current
        if states is None:
            group.outbox.respond_when_committed(waiter, OffsetsResult(ErrorCode.NONE), failed_offsets)
            return
        rejected: list[DeletedTopic] = []
        deleted: dict[UUID, str] = {}
        partitions: list[tuple[UUID, int]] = []
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for name in dict.fromkeys(names):
            yield None
            topic_id = group.common.topics.topic_id(name)
            if topic_id is None:
                rejected.append(DeletedTopic(name, ZERO_UUID, unknown))
            elif topic_id in states.initialized:
                deleted[topic_id] = name
                partitions += ((topic_id, each) for each in sorted(states.initialized[topic_id].partitions))
            elif topic_id in states.deleting:
                deleted[topic_id] = name
                count = group.common.partition_counts([name]).get(topic_id, 0)
                partitions += ((topic_id, each) for each in range(count))
            else:
                rejected.append(DeletedTopic(name, ZERO_UUID, unknown, NO_OFFSETS))
        record = group.states_record(states.delete_topics(deleted), now)
        group.outbox.write(Write([record], ChangeBegun(waiter, failed_offsets)))
        if partitions:
            group.outbox.perform(DeleteStates(waiter, partitions, deleted, rejected))
        else:
            result = OffsetsResult(ErrorCode.NONE, None, rejected)
            group.outbox.respond_when_committed(waiter, result, failed_offsets)

    def deleted(self, effect: DeleteStates, errors: "Mapping[tuple[UUID, int], ErrorCode]", now: Now) -> None:
        """Respond to a DeleteShareGroupOffsets request, and store which topics no longer have states."""
        group = self._group
        failed: dict[UUID, ErrorCode] = {}
        for (topic_id, _), error in errors.items():
            if error:
                failed.setdefault(topic_id, error)
        names = effect.topics or {}
        done = {topic_id: name for topic_id, name in names.items() if topic_id not in failed}
        topics = [
            *(DeletedTopic(name, topic_id, ErrorCode.NONE) for topic_id, name in done.items()),
            *effect.rejected,
            *(DeletedTopic(names[topic_id], topic_id, error) for topic_id, error in failed.items()),
        ]
        states = group.state.partition_states.current
        if done and states is not None:
            records: list[ShareRecord] = [group.states_record(states.deleted(done), now)]
            group.outbox.write(Write(records, MembersStored()))
        result = OffsetsResult(ErrorCode.NONE, None, topics)
        group.outbox.respond_when_committed(effect.waiter, result, failed_offsets)

    def begin_group_deletion(self, waiter: Waiter, now: Now) -> bool:
        """Begin to delete all states of a group without members. Return False if it has none."""
        group = self._group
        states = group.state.partition_states.current
        if states is None:
            return False
        topics = dict(states.all_partitions())
        remaining = {}
        for topic_id, name in states.deleting.items():
            count = group.common.partition_counts([name]).get(topic_id, 0)
            remaining[topic_id] = TopicPartitions(name, frozenset(range(count)))
        topics = dict(combined(topics, remaining))
        if not topics:
            return False
        deleting = {topic_id: each.name for topic_id, each in topics.items()}
        record = group.states_record(PartitionStates(deleting=deleting), now)
        group.outbox.write(
            Write([record], ChangeBegun(waiter, lambda error: STORE_FAILURES.get(error, error)))
        )
        partitions = [
            (topic_id, partition)
            for topic_id, each in topics.items()
            for partition in sorted(each.partitions)
        ]
        group.outbox.perform(DeleteStates(waiter, partitions, None))
        return True
