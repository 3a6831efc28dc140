"""The stored state of a consumer group: what its records in `__consumer_offsets` say (KIP-848).

Only `replay` changes it. The timeline values also show the committed state, which is described to clients.
`static_ids`, `owners` and the counters are derived from the current members.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Set
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry, TimelineDict, TimelineValue
from kafka_compat.groups.consumer.java_order import TimelineOrder
from kafka_compat.groups.consumer.member import LEAVE_EPOCH, Member, PartitionEpochs
from kafka_compat.groups.consumer.records import (
    ConsumerRecord,
    CurrentAssignment,
    CurrentAssignmentRecord,
    GroupMetadataRecord,
    MemberMetadataRecord,
    PartitionMetadataRecord,
    RegexRecord,
    ResolvedRegex,
    TargetAssignmentRecord,
    TargetMetadataRecord,
)
from kafka_compat.groups.consumer.votes import AssignorVotes
from kafka_compat.groups.record_types import GroupMetadata, TargetMetadata

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.groups.consumer.assignors.assignor import Assignment
    from kafka_compat.long_work import Steps

FIRST_EPOCH: Final = 1
"""The epoch of a new group and of its target assignment, which has no record."""
_NO_METADATA: Final = GroupMetadata(FIRST_EPOCH, 0)
_NO_TARGET: Final = TargetMetadata(FIRST_EPOCH, 0)
_NO_ASSIGNMENT: Final = CurrentAssignment()


class ConsumerGroupState(StrEnum):
    """States of a consumer group, as they are reported to clients."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class View(NamedTuple):
    """The current or the committed state of a group, for reading."""

    epoch: int
    target_epoch: int
    members: "Mapping[str, Member]"
    targets: "Mapping[str, Assignment]"

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def preferred_assignor(self) -> str | None:
        votes = AssignorVotes()
        for member in self.members.values():
            votes.change(None, member.server_assignor)
        return votes.preferred


class GroupState:
    """The stored state of one consumer group. `metadata` is None in the first epoch."""

    def __init__(self, snapshots: SnapshotRegistry) -> None:
        self.metadata: TimelineValue[GroupMetadata | None] = TimelineValue(snapshots, None)
        self.target: TimelineValue[TargetMetadata] = TimelineValue(snapshots, _NO_TARGET)
        self.members: TimelineDict[str, Member] = TimelineDict(snapshots)
        self.targets: TimelineDict[str, Assignment] = TimelineDict(snapshots)
        self.regexes: TimelineDict[str, ResolvedRegex] = TimelineDict(snapshots)
        self.member_order = TimelineOrder()
        """The members in the order in which Kafka would iterate over them."""
        self.static_ids: dict[str, str] = {}
        """Maps the instance IDs of static members to their member IDs."""
        self.owners: dict[UUID, dict[int, str]] = {}
        """Maps the partitions that members have, or have not revoked yet, to the members."""
        self.subscribers: Counter[str] = Counter()
        """Number of members that subscribe to a topic by name."""
        self.regex_subscribers: Counter[str] = Counter()
        """Number of members that subscribe by a regular expression."""
        self.votes = AssignorVotes()
        """The assignors that the members prefer."""
        self.classic_members = 0
        self.classic_protocols: Counter[str] = Counter()
        """Number of classic members that support a protocol."""
        self._is_homogeneous: bool | None = True
        """None until it is computed again."""

    @property
    def exists(self) -> bool:
        return self.metadata.current is not None or bool(self.members.current)

    @property
    def epoch(self) -> int:
        return self.current_metadata.epoch

    @property
    def current_metadata(self) -> GroupMetadata:
        """The current metadata, or that of the first epoch."""
        return self.metadata.current or _NO_METADATA

    @property
    def current(self) -> View:
        return View(self.epoch, self.target.current.epoch, self.members.current, self.targets.current)

    @property
    def committed(self) -> View | None:
        """The committed state, or None if no group is committed."""
        metadata, members = self.metadata.committed, self.members.committed
        if metadata is None and not members:
            return None
        epoch = (metadata or _NO_METADATA).epoch
        return View(epoch, self.target.committed.epoch, members, self.targets.committed)

    def owner(self, topic_id: "UUID", partition: int) -> str | None:
        """Return the ID of the member that has a partition, or None."""
        return self.owners.get(topic_id, {}).get(partition)

    def static_member(self, instance_id: str) -> Member | None:
        member_id = self.static_ids.get(instance_id)
        return None if member_id is None else self.members.current.get(member_id)

    def target_of(self, member_id: str, instance_id: str | None) -> "Assignment":
        """Return a member's target assignment. A static member inherits that of its predecessor."""
        if instance_id is not None:
            member_id = self.static_ids.get(instance_id, member_id)
        return self.targets.current.get(member_id, {})

    def ordered_members(self) -> dict[str, Member]:
        """Return the members in the order in which Kafka would iterate over them."""
        members = self.members.current
        return {member_id: members[member_id] for member_id in self.member_order.ordered_keys()}

    def matched(self, regex: str) -> frozenset[str]:
        """Return the topics that match a regular expression, as far as they are known."""
        resolved = self.regexes.current.get(regex)
        return frozenset() if resolved is None else resolved.topics

    def subscribed_names(
        self,
        former: Collection[Member] = (),
        updated: Member | None = None,
        existing: Callable[[Collection[str]], Set[str]] = frozenset,
    ) -> set[str]:
        """Return the topics to which members subscribe, by name or by a regular expression, after `former`
        have left and `updated` has joined. `existing` may select some of the names.
        """
        known = existing(self.subscribers.keys())
        gone = Counter(name for member in former for name in known & existing(member.topic_names))
        names = {name for name in known if gone[name] < self.subscribers[name]}
        if updated is not None:
            names.update(existing(updated.topic_names))
        for regex in self.subscribed_regexes(former, updated):
            names.update(existing(self.matched(regex)))
        return names

    def subscribed_regexes(self, former: Collection[Member], updated: Member | None) -> set[str]:
        """Return the regular expressions to which members subscribe after `former` have left and `updated`
        has joined.
        """
        gone = Counter(member.topic_regex for member in former)
        regexes = {regex for regex, count in self.regex_subscribers.items() if gone[regex] < count}
        if updated is not None and updated.topic_regex:
            regexes.add(updated.topic_regex)
        return regexes

    @property
    def is_homogeneous(self) -> bool:
        """Whether assignors take the subscriptions of all members as equal. As in Kafka, this depends on the
        topics that matched regular expressions when a member changed for the last time.
        """
        if self._is_homogeneous is None:
            self._is_homogeneous = _is_homogeneous(
                len(self.members.current), self.regex_subscribers, self.subscribers, self._matched_topics()
            )
        return self._is_homogeneous

    def is_homogeneous_after(self, former: Member, updated: Member) -> "Steps[bool]":
        """Return whether assignors take the subscriptions as equal after the change of a member, in steps."""
        regexes = self.regex_subscribers.copy()
        unsubscribed = None
        if former.topic_regex != updated.topic_regex and former.topic_regex:
            _add(regexes, former.topic_regex, -1)
            unsubscribed = None if former.topic_regex in regexes else former.topic_regex
        if former.topic_regex != updated.topic_regex and updated.topic_regex:
            _add(regexes, updated.topic_regex, 1)
        names = self.subscribers.copy()
        yield None
        names.subtract(former.topic_names)
        yield None
        names.update(updated.topic_names)
        yield None
        is_known = updated.member_id in self.members.current or updated.instance_id in self.static_ids
        count = len(self.members.current) + (not is_known)
        return _is_homogeneous(count, regexes, names, self._matched_topics(unsubscribed))

    def _matched_topics(self, except_regex: str | None = None) -> Counter[str]:
        """Return the number of regular expressions that match a topic."""
        regexes = self.regexes.current.items()
        return Counter(topic for regex, each in regexes if regex != except_regex for topic in each.topics)

    def replay(self, record: ConsumerRecord) -> None:
        """Apply a record of the group."""
        match record:
            case MemberMetadataRecord(member_id=member_id, value=member):
                if member is None:
                    self._put(member_id, None)
                else:
                    known = self.members.current.get(member_id, member)
                    self._put(
                        member_id,
                        member._replace(
                            epoch=known.epoch,
                            previous_epoch=known.previous_epoch,
                            state=known.state,
                            assigned=known.assigned,
                            pending_revocation=known.pending_revocation,
                        ),
                    )
            case CurrentAssignmentRecord(member_id=member_id, value=assignment):
                member = self.members.current.get(member_id)
                if assignment is None and member is None:
                    return
                epochs = assignment or _NO_ASSIGNMENT._replace(epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH)
                self._put(member_id, (member or Member(member_id))._replace(**epochs._asdict()))
            case TargetAssignmentRecord(member_id=member_id, value=target):
                if target is None:
                    self.targets.remove(member_id)
                else:
                    self.targets.set(member_id, target)
            case GroupMetadataRecord(value=metadata):
                self.metadata.set(metadata)
            case TargetMetadataRecord(value=target_metadata):
                self.target.set(target_metadata or _NO_TARGET)
            case RegexRecord(regex=regex, value=resolved):
                self._is_homogeneous = self.is_homogeneous
                if resolved is None:
                    self.regexes.remove(regex)
                else:
                    self.regexes.set(regex, resolved)
            case PartitionMetadataRecord():
                # Kafka 4.0 wrote these records. The metadata hash replaces them.
                pass

    def _put(self, member_id: str, member: Member | None) -> None:
        self._is_homogeneous = None
        former = self.members.current.get(member_id)
        self.votes.change(
            None if former is None else former.server_assignor,
            None if member is None else member.server_assignor,
        )
        # Counting takes long if a member subscribes to many topics.
        counts = former is None or member is None or not former.subscribes_like(member)
        if former is not None:
            if counts:
                self._count(former, -1)
            self._disown(former.assigned, member_id)
            self._disown(former.pending_revocation, member_id)
            if former.instance_id is not None and self.static_ids.get(former.instance_id) == member_id:
                del self.static_ids[former.instance_id]
        if member is None:
            self.members.remove(member_id)
            self.member_order.remove(member_id)
            return
        self.members.set(member_id, member)
        self.member_order.put(member_id)
        if counts:
            self._count(member, 1)
        self._own(member.assigned, member_id)
        self._own(member.pending_revocation, member_id)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member_id

    def _count(self, member: Member, change: int) -> None:
        if change > 0:
            self.subscribers.update(member.topic_names)
        else:
            subscribers = self.subscribers
            for name in member.topic_names:
                count = subscribers[name] - 1
                if count:
                    subscribers[name] = count
                else:
                    del subscribers[name]
        if member.topic_regex:
            _add(self.regex_subscribers, member.topic_regex, change)
        if member.classic is not None:
            self.classic_members += change
            for name, _ in member.classic.protocols:
                _add(self.classic_protocols, name, change)

    def _own(self, partitions: PartitionEpochs, member_id: str) -> None:
        for topic_id, numbers in partitions.items():
            owners = self.owners.setdefault(topic_id, {})
            for partition in numbers:
                owners[partition] = member_id

    def _disown(self, partitions: PartitionEpochs, member_id: str) -> None:
        for topic_id, numbers in partitions.items():
            owners = self.owners.get(topic_id, {})
            for partition in numbers:
                if owners.get(partition) == member_id:
                    del owners[partition]
            if not owners:
                self.owners.pop(topic_id, None)


def _is_homogeneous(
    member_count: int, regexes: Counter[str], by_name: Counter[str], by_regex: Counter[str]
) -> bool:
    """Return whether Kafka takes the subscriptions of the members as equal: all have the same names, or all
    have the same regular expression and no names. `by_name` may contain zeros.
    """
    if regexes:
        has_same_regex = list(regexes.values()) == [member_count]
        return has_same_regex and not any(by_name.values()) and all(count == 1 for count in by_regex.values())
    return all(count in (0, member_count) for count in by_name.values()) and all(
        by_name[name] == member_count for name in by_regex
    )


def _add(counts: Counter[str], name: str, change: int) -> None:
    counts[name] += change
    if not counts[name]:
        del counts[name]
