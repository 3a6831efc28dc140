"""The stored state of a share group: what its records in `__consumer_offsets` say (KIP-932).

Only `replay` changes it. The timeline values also show the committed state, which is described to clients.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Set
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry, TimelineDict, TimelineValue
from kafka_compat.groups.consumer.java_order import TimelineOrder
from kafka_compat.groups.consumer.member import LEAVE_EPOCH
from kafka_compat.groups.consumer.state import FIRST_EPOCH
from kafka_compat.groups.record_types import GroupMetadata, TargetMetadata
from kafka_compat.groups.share.member import ShareMember
from kafka_compat.groups.share.partition_states import PartitionStates
from kafka_compat.groups.share.records import (
    PartitionStatesRecord,
    ShareCurrentAssignment,
    ShareCurrentRecord,
    ShareGroupRecord,
    ShareMemberRecord,
    ShareRecord,
    ShareTargetMetadataRecord,
    ShareTargetRecord,
)

if TYPE_CHECKING:
    from kafka_compat.groups.consumer.assignors.assignor import Assignment

_NO_METADATA: Final = GroupMetadata(FIRST_EPOCH, 0)
_NO_TARGET: Final = TargetMetadata(FIRST_EPOCH, 0)
_LEFT: Final = ShareCurrentAssignment(LEAVE_EPOCH, LEAVE_EPOCH)


class ShareGroupPhase(StrEnum):
    """States of a share group, as they are reported to clients."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class ShareView(NamedTuple):
    """The current or the committed state of a group, for reading."""

    epoch: int
    target_epoch: int
    members: "Mapping[str, ShareMember]"
    partition_states: PartitionStates

    @property
    def state(self) -> ShareGroupPhase:
        return ShareGroupPhase.STABLE if self.members else ShareGroupPhase.EMPTY


class ShareGroupState:
    """The stored state of one share group. `metadata` and `partition_states` are None if they have no
    record.
    """

    def __init__(self, snapshots: SnapshotRegistry) -> None:
        self.metadata: TimelineValue[GroupMetadata | None] = TimelineValue(snapshots, None)
        self.target: TimelineValue[TargetMetadata] = TimelineValue(snapshots, _NO_TARGET)
        self.members: TimelineDict[str, ShareMember] = TimelineDict(snapshots)
        self.targets: TimelineDict[str, Assignment] = TimelineDict(snapshots)
        self.partition_states: TimelineValue[PartitionStates | None] = TimelineValue(snapshots, None)
        self.member_order = TimelineOrder()
        """The members in the order in which Kafka would iterate over them."""
        self.subscribers: Counter[str] = Counter()
        """Number of members that subscribe to a topic."""

    @property
    def exists(self) -> bool:
        return (
            self.metadata.current is not None
            or self.partition_states.current is not None
            or bool(self.members.current)
        )

    @property
    def current_metadata(self) -> GroupMetadata:
        """The current metadata, or that of the first epoch."""
        return self.metadata.current or _NO_METADATA

    @property
    def current_states(self) -> PartitionStates:
        """The current states of the share-partitions."""
        return self.partition_states.current or PartitionStates()

    @property
    def committed(self) -> ShareView | None:
        """The committed state, or None if no group is committed."""
        metadata, members = self.metadata.committed, self.members.committed
        states = self.partition_states.committed
        if metadata is None and states is None and not members:
            return None
        epoch = (metadata or _NO_METADATA).epoch
        return ShareView(epoch, self.target.committed.epoch, members, states or PartitionStates())

    def ordered_members(self) -> dict[str, ShareMember]:
        """Return the members in the order in which Kafka would iterate over them."""
        members = self.members.current
        return {each: members[each] for each in self.member_order.ordered_keys() if each in members}

    def ordered_members_with(self, updated: ShareMember) -> dict[str, ShareMember]:
        """Return the members after `updated` has joined or changed. As in Kafka, a new member is among the
        others even before its record is replayed.
        """
        self.member_order.put(updated.member_id)
        members = self.members.current
        return {
            each: updated if each == updated.member_id else members[each]
            for each in self.member_order.ordered_keys()
            if each == updated.member_id or each in members
        }

    def forget_unstored_members(self) -> None:
        """Forget the order of members whose records could not be stored."""
        for member_id in self.member_order.ordered_keys():
            if member_id not in self.members.current:
                self.member_order.remove(member_id)

    def subscribed_names(
        self,
        former: ShareMember | None = None,
        updated: ShareMember | None = None,
        existing: Callable[[Collection[str]], Set[str]] = frozenset,
    ) -> set[str]:
        """Return the topics to which members subscribe, after `former` has left and `updated` has joined.
        `existing` may select some of the names.
        """
        known = existing(self.subscribers.keys())
        gone = frozenset(former.topic_names) if former is not None else frozenset()
        names = {name for name in known if self.subscribers[name] > (name in gone)}
        if updated is not None:
            names.update(existing(updated.topic_names))
        return names

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        count = len(self.members.current)
        return all(subscribers == count for subscribers in self.subscribers.values())

    def is_homogeneous_after(self, former: ShareMember, updated: ShareMember) -> bool:
        """Return whether all members subscribe to the same topics after the change of a member."""
        names = self.subscribers.copy()
        names.subtract(former.topic_names)
        names.update(updated.topic_names)
        count = len(self.members.current) + (updated.member_id not in self.members.current)
        return all(subscribers in (0, count) for subscribers in names.values())

    def replay(self, record: ShareRecord) -> None:
        """Apply a record of the group."""
        match record:
            case ShareMemberRecord(_, member_id, member):
                if member is None:
                    self._put(member_id, None)
                else:
                    known = self.members.current.get(member_id, member)
                    self._put(
                        member_id,
                        member._replace(
                            epoch=known.epoch, previous_epoch=known.previous_epoch, assigned=known.assigned
                        ),
                    )
            case ShareCurrentRecord(_, member_id, assignment):
                known_member = self.members.current.get(member_id)
                if assignment is None and known_member is None:
                    return
                epochs = assignment or _LEFT
                self._put(member_id, (known_member or ShareMember(member_id))._replace(**epochs._asdict()))
            case ShareTargetRecord(_, member_id, target):
                if target is None:
                    self.targets.remove(member_id)
                else:
                    self.targets.set(member_id, target)
            case ShareGroupRecord(_, metadata):
                self.metadata.set(metadata)
            case ShareTargetMetadataRecord(_, target_metadata):
                self.target.set(target_metadata or _NO_TARGET)
            case PartitionStatesRecord(_, states):
                self.partition_states.set(states)

    def _put(self, member_id: str, member: ShareMember | None) -> None:
        former = self.members.current.get(member_id)
        names = () if member is None else member.topic_names
        if former is None or former.topic_names != names:
            for name in () if former is None else former.topic_names:
                self.subscribers[name] -= 1
                if not self.subscribers[name]:
                    del self.subscribers[name]
            self.subscribers.update(names)
        if member is None:
            self.members.remove(member_id)
            self.member_order.remove(member_id)
        else:
            self.members.set(member_id, member)
            self.member_order.put(member_id)
