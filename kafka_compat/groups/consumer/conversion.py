"""Online conversion of a group between the classic and the consumer protocol (KIP-848). It does no I/O.

Rules
- A member that joins a non-empty classic group with the consumer protocol converts it, if
  group.consumer.migration.policy allows upgrades. The classic members keep their assignments, and the group
  epoch continues from the generation.
- If the last member of the consumer protocol leaves, is fenced, or is replaced by a static classic member,
  the group becomes classic, if the policy allows downgrades. The generation continues from the group epoch.
- One write contains the tombstones of the former group and the records of the new one. State that is not in
  the log changes when the records have been appended, and not at all if that fails.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kafka_compat.coordinator_runtime.machine import Now, Output
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.classic.records import GroupRecord, GroupSnapshot
from kafka_compat.groups.classic.roster import Member as ClassicGroupMember
from kafka_compat.groups.classic.roster import Roster
from kafka_compat.groups.consumer.embedded_protocol import (
    encode_assignment,
    read_assignment,
    read_subscription,
)
from kafka_compat.groups.consumer.java_order import TimelineOrder, string_order
from kafka_compat.groups.consumer.member import ClassicMember, Member
from kafka_compat.groups.consumer.records import (
    ConsumerRecord,
    GroupMetadataRecord,
    MemberMetadataRecord,
    TargetAssignmentRecord,
    TargetMetadataRecord,
    current_assignment_record,
)
from kafka_compat.groups.consumer.state import GroupState
from kafka_compat.groups.record_types import GroupMetadata, TargetMetadata
from kafka_compat.groups.requests import CONSUMER_PROTOCOL_TYPE
from kafka_compat.long_work import Steps
from kafka_compat.protocol.codec import MalformedRequest

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.config.group import ConsumerGroupLimits
    from kafka_compat.groups.classic.rebalance import Rebalance
    from kafka_compat.groups.consumer.assignors.assignor import Assignment
    from kafka_compat.groups.consumer.embedded_protocol import NamedPartitions
    from kafka_compat.groups.consumer.groups_of_broker import Topics

UPGRADE_TIMESTAMP_MS: Final = 0
"""Timestamp of the target assignment after an upgrade, which lets the next one be computed at once."""


class Upgrade:
    """Conversion of a classic group to a consumer group."""

    __slots__ = ("_limits", "_rebalance", "_topics")

    def __init__(self, rebalance: "Rebalance", limits: "ConsumerGroupLimits", topics: "Topics") -> None:
        self._rebalance = rebalance
        self._limits = limits
        self._topics = topics

    def check(self) -> None:
        """Raise KafkaError if the group must remain a classic group."""
        if not self._limits.may_upgrade:
            raise self._refusal("group.consumer.migration.policy does not allow upgrades")
        if self._rebalance.protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise self._refusal("the members of the group are not consumers")
        if len(self._rebalance.roster) > self._limits.size_max:
            raise self._refusal(
                f"the group has more than {self._limits.size_max} members (group.consumer.max.size)"
            )

    def convert(self) -> Steps[tuple[list[ConsumerRecord], GroupState]]:
        """Return the records of the consumer group, and its state after them, in steps. Raises KafkaError."""
        roster = self._rebalance.roster.members
        order = TimelineOrder()
        members: dict[str, Member] = {}
        for member_id in string_order(list(roster)):
            order.put(member_id)
            try:
                members[member_id] = yield from self._member(roster[member_id])
            except MalformedRequest:
                raise self._refusal("a member uses the consumer protocol incorrectly") from None
        records = self._records({member_id: members[member_id] for member_id in order.ordered_keys()})
        state = GroupState(SnapshotRegistry())
        for record in records:
            yield None
            state.replay(record)
        # Kafka adds each member once to the group that computes the first target assignment.
        state.member_order = order
        return records, state

    def _member(self, member: ClassicGroupMember) -> Steps[Member]:
        generation, protocol = self._rebalance.generation_id, self._rebalance.protocol_name
        assigned: dict[UUID, Mapping[int, int]] = {}
        if member.has_assignment:
            assignment = read_assignment(self._rebalance.stored.assignment(member))
            if assignment.user_data:
                raise self._refusal("a custom assignor is used, whose data would be lost")
            for name, partitions in assignment.partitions.items():
                topic_id = self._topics.topic_id(name)
                if topic_id is not None:
                    assigned[topic_id] = dict.fromkeys(partitions, generation)
        if all(name != protocol for name, _ in member.protocols):
            raise self._refusal(
                "the rebalance in progress has not selected a protocol", ErrorCode.UNKNOWN_SERVER_ERROR
            )
        subscription = yield from read_subscription(member.metadata(protocol))
        return Member(
            member_id=member.member_id,
            instance_id=member.group_instance_id,
            rack_id=subscription.rack_id or None,
            client_id=member.client_id,
            client_host=member.client_host,
            topic_names=subscription.topics,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=ClassicMember(member.session_timeout_ms, member.protocols),
            epoch=generation,
            previous_epoch=generation,
            assigned=assigned,
        )

    def _records(self, members: Mapping[str, Member]) -> list[ConsumerRecord]:
        group_id, generation = self._rebalance.group_id, self._rebalance.generation_id
        names = {name for member in members.values() for name in member.topic_names}
        metadata = GroupMetadata(generation, self._topics.metadata_hash(names))
        records: list[ConsumerRecord] = []
        records += (MemberMetadataRecord(group_id, each.member_id, each) for each in members.values())
        records.append(GroupMetadataRecord(group_id, metadata))
        records += (
            TargetAssignmentRecord(
                group_id,
                each.member_id,
                {topic_id: tuple(partitions) for topic_id, partitions in each.assigned.items()},
            )
            for each in members.values()
        )
        target = TargetMetadata(generation, UPGRADE_TIMESTAMP_MS)
        records.append(TargetMetadataRecord(group_id, target))
        records += (current_assignment_record(group_id, each) for each in members.values())
        return records

    def _refusal(self, reason: str, error: ErrorCode = ErrorCode.GROUP_ID_NOT_FOUND) -> KafkaError:
        return KafkaError(
            error, f"The classic group {self._rebalance.group_id} cannot become a consumer group: {reason}"
        )


class Downgrade:
    """Conversion of a consumer group to a classic group."""

    __slots__ = ("_limits", "_rebalance", "_topics")

    def __init__(self, rebalance: "Rebalance", limits: "ConsumerGroupLimits", topics: "Topics") -> None:
        self._rebalance = rebalance
        self._limits = limits
        self._topics = topics

    def is_due_without(self, state: GroupState, leaving: Collection[Member]) -> bool:
        """Return whether the group becomes classic when these members leave."""
        remaining = len(state.members) - len(leaving)
        classic = state.classic_members - sum(member.classic is not None for member in leaving)
        return 0 < remaining == classic and self._allows(remaining)

    def is_due_if_replaced(self, state: GroupState, replaced: Member) -> bool:
        """Return whether the group becomes classic when a classic member replaces this static member."""
        members = len(state.members)
        return replaced.classic is None and state.classic_members == members - 1 and self._allows(members)

    def _allows(self, members: int) -> bool:
        return self._limits.may_downgrade and members <= self._rebalance.settings.group_max_size

    def convert(
        self,
        state: GroupState,
        leaving: Collection[Member],
        joining: Member | None,
        reason: str | None,
        now: Now,
    ) -> tuple[GroupRecord, Callable[[], Output]]:
        """Return the record of the classic group, and the function that starts the group when the record has
        been appended. The group rebalances for the reason, if there is one.

        The members `leaving` are not part of the group. `joining` replaces the static member with the same
        instance ID.
        """
        staying = [
            member
            for member in state.ordered_members().values()
            if member not in leaving and (joining is None or member.instance_id != joining.instance_id)
        ]
        roster = Roster()
        for member in [*staying, *([] if joining is None else [joining])]:
            roster.add(_classic_group_member(member))
        protocol = roster.select_protocol()
        assignments = {
            member_id: encode_assignment(
                self._named(state.target_of(member_id, member.group_instance_id)), member.metadata(protocol)
            )
            for member_id, member in roster.members.items()
        }
        snapshot = GroupSnapshot(
            CONSUMER_PROTOCOL_TYPE,
            state.epoch,
            protocol,
            roster.leader_id,
            now.wall_ms,
            roster.snapshots(protocol, assignments),
        )
        record = GroupRecord(self._rebalance.group_id, snapshot)
        return record, lambda: self._start(roster.members.values(), snapshot, reason, now)

    def _start(
        self, members: Iterable[ClassicGroupMember], snapshot: GroupSnapshot, reason: str | None, now: Now
    ) -> Output:
        out = self._rebalance.outbox.begin()
        self._rebalance.outbox.note("became a classic group")
        self._rebalance.start_with(members, snapshot, now)
        if reason is not None:
            self._rebalance.prepare(reason, now)
        return out

    def _named(self, assignment: "Assignment") -> "NamedPartitions":
        names = {topic_id: self._topics.topic_name(topic_id) for topic_id in assignment}
        return {name: assignment[topic_id] for topic_id, name in names.items() if name is not None}


def _classic_group_member(member: Member) -> ClassicGroupMember:
    assert member.classic is not None, "a member of the consumer protocol"
    return ClassicGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.classic.protocols,
    )
