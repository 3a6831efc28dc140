"""A classic group: members that use the classic protocol, or no members.

Its offsets
- A commit needs the current generation. While members wait for the assignment, OffsetCommit is rejected.
- Commits without a group ("simple" commits, generation -1) are accepted only if the group has no members.
- A group without members is deleted with its last offset.
- A member that joins with the consumer protocol converts the group (`consumer/conversion.py`).
"""

from collections.abc import Collection, Iterable, Set
from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_compat.coordinator_runtime.machine import Now, Output, Waiter
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.classic.joining import Joining
from kafka_compat.groups.classic.rebalance import (
    COMPLETING_REBALANCE,
    EMPTY,
    STABLE,
    AssignmentStored,
    Rebalance,
    StaticMemberStored,
)
from kafka_compat.groups.classic.records import GroupRecord
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult, rejected
from kafka_compat.groups.consumer.member import JOIN_EPOCH
from kafka_compat.groups.consumer.members import Replaced
from kafka_compat.groups.consumer.state import GroupState
from kafka_compat.groups.offsets import GroupOffsets
from kafka_compat.groups.requests import (
    CONSUMER_PROTOCOL_TYPE,
    Commit,
    GroupDescription,
    GroupType,
    Join,
    Leaving,
    MemberDescription,
    Sync,
    TopicPartition,
)
from kafka_compat.groups.timers import Timers
from kafka_compat.groups.typed_group import GroupView
from kafka_compat.long_work import Steps

if TYPE_CHECKING:
    from kafka_compat.groups.consumer.convertible import Convertible
    from kafka_compat.groups.counts import GroupCounts
    from kafka_compat.groups.records import Record


class ClassicGroup:
    """A classic group. `rebalance` is the state machine of its members, and `convertible` the consumer group
    that it can become.
    """

    __slots__ = (
        "_convertible",
        "_counts",
        "_joining",
        "_offsets",
        "_outbox",
        "rebalance",
    )

    type: Final = GroupType.CLASSIC
    ends_with_deleted_offsets: Final = True
    ends_with_expired_offsets: Final = True

    def __init__(
        self,
        rebalance: Rebalance,
        joining: Joining,
        offsets: GroupOffsets,
        convertible: "Convertible",
        counts: "GroupCounts",
    ) -> None:
        self.rebalance = rebalance
        self._joining = joining
        self._offsets = offsets
        self._convertible = convertible
        self._counts = counts
        self._outbox = rebalance.outbox

    @property
    def exists(self) -> bool:
        return self.rebalance.stored.snapshot is not None

    @property
    def is_empty(self) -> bool:
        return self.rebalance.state is EMPTY

    @property
    def is_gone(self) -> bool:
        stored = self.rebalance.stored
        return stored.snapshot is None and stored.committed is None

    @property
    def is_new(self) -> bool:
        """Whether no member has ever joined, and none is about to."""
        return self.rebalance.generation_id == 0 and not self.rebalance.roster.pending

    @property
    def view(self) -> GroupView:
        rebalance = self.rebalance
        return GroupView(
            GroupType.CLASSIC, rebalance.protocol_type or "", rebalance.state, rebalance.roster.members
        )

    def join(self, request: Join, waiter: Waiter, now: Now) -> Steps[None]:
        """Process a JoinGroup request. The caller must have checked the session timeout."""
        yield from ()
        self._joining.join(request, waiter, now)

    def sync(self, request: Sync, waiter: Waiter, now: Now) -> None:
        """Process a SyncGroup request."""
        self.rebalance.sync(request, waiter, now)

    def heartbeat(
        self, generation_id: int, member_id: str, group_instance_id: str | None, now: Now
    ) -> ErrorCode:
        """Process a heartbeat and return an error code: REBALANCE_IN_PROGRESS if the member must rejoin."""
        return self.rebalance.heartbeat(generation_id, member_id, group_instance_id, now)

    def leave(self, leaving: Iterable[Leaving], waiter: Waiter, now: Now) -> None:
        """Process a LeaveGroup request."""
        self._joining.leave(leaving, waiter, now)

    def consumer_heartbeat(self, request: Heartbeat, waiter: Waiter, now: Now) -> Steps[None]:
        """Process a ConsumerGroupHeartbeat request. A member that joins converts the group."""
        if request.member_epoch != JOIN_EPOCH:
            message = f"The group {self.rebalance.group_id} is not a consumer group"
            self._outbox.respond(waiter, HeartbeatResult(ErrorCode.GROUP_ID_NOT_FOUND, message))
        elif self.rebalance.state is EMPTY:
            yield from self._join_replacing(self._convertible.group.state, (), request, waiter, now)
        else:
            yield from self._upgrade_with(request, waiter, now)

    def _join_replacing(
        self, state: GroupState, records: "Iterable[Record]", request: Heartbeat, waiter: Waiter, now: Now
    ) -> Steps[None]:
        """Let a member join the consumer group with this state and these records, which replaces the classic
        group if the write succeeds. If the write fails, nothing has changed.
        """
        tombstones = [GroupRecord(self.rebalance.group_id, None)] if self.exists else []
        replaced = Replaced([*tombstones, *records], partial(self._became_consumer_group, now))
        members = self._convertible.members(state, Timers())
        yield from members.heartbeat(request, waiter, now, replaced)

    def _upgrade_with(self, request: Heartbeat, waiter: Waiter, now: Now) -> Steps[None]:
        """Convert a group with members to a consumer group, which the member joins."""
        try:
            upgrade = self._convertible.upgrade()
            upgrade.check()
            self.answer_waiting(ErrorCode.REBALANCE_IN_PROGRESS)
            records, state = yield from upgrade.convert()
        except KafkaError as error:
            self._outbox.respond(waiter, rejected(error))
            return
        yield from self._join_replacing(state, records, request, waiter, now)

    def _became_consumer_group(self, now: Now) -> Output:
        out = self._outbox.begin()
        if self.rebalance.state is not EMPTY:
            self._outbox.note("became a consumer group")
        self.rebalance.reset(now)
        self._convertible.group.members.timers.start_sessions(now)
        return out

    def answer_waiting(self, error: ErrorCode) -> None:
        """Complete the requests of all waiting members with an error code."""
        for member_id in self.rebalance.roster.members:
            self.rebalance.answer_waiting(member_id, error, member_id)

    def commit_error(self, request: Commit, partitions: Collection[TopicPartition], now: Now) -> ErrorCode:
        """Return NONE if offsets may be committed, or an error code. OffsetCommit also counts as a heartbeat
        of its member. TxnOffsetCommit does not, and is accepted during a rebalance (KIP-447).
        """
        rebalance = self.rebalance
        error = self._check_commit(request)
        if error or request.producer is not None or rebalance.state is EMPTY:
            return error
        if rebalance.state is COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        rebalance.restart_session(rebalance.roster.members[request.member_id], now)
        return ErrorCode.NONE

    def _check_commit(self, request: Commit) -> ErrorCode:
        if request.generation_id < 0 and self.rebalance.state is EMPTY:
            return ErrorCode.NONE
        if request.generation_id < 0 and not request.member_id and request.group_instance_id is None:
            # Transactional producers that predate KIP-447 do not send a member ID.
            allowed = self.rebalance.state is EMPTY or request.producer is not None
            return ErrorCode.NONE if allowed else ErrorCode.UNKNOWN_MEMBER_ID
        error = self.rebalance.check_member(request.member_id, request.group_instance_id)
        if not error and request.generation_id != self.rebalance.generation_id:
            error = ErrorCode.ILLEGAL_GENERATION
        return error

    @property
    def offset_deletion_error(self) -> ErrorCode:
        """NONE unless the group has members that are not consumers."""
        is_consumer = self.rebalance.protocol_type == CONSUMER_PROTOCOL_TYPE
        return ErrorCode.NONE if self.is_empty or is_consumer else ErrorCode.NON_EMPTY_GROUP

    def subscribed(self, topics: set[str]) -> Set[str]:
        """Return those of the topics to which members subscribe: all, if the subscription is unknown."""
        if self.is_empty:
            return frozenset()
        known = self.rebalance.subscribed_topics
        return topics if known is None else topics & known

    def expired_offsets(self, now: Now) -> list[TopicPartition]:
        """Return the partitions whose offsets have expired."""
        return self._offsets.expired(
            now.wall_ms,
            self.rebalance.settings.offsets_retention_ms,
            state=self.rebalance.state,
            state_timestamp_ms=self.rebalance.state_timestamp_ms,
            protocol_type=self.rebalance.protocol_type,
            subscribed_topics=self.rebalance.subscribed_topics,
        )

    def begin_deletion(self, waiter: Waiter, now: Now) -> bool:
        """Return False: all that belongs to a classic group is in its log."""
        return False

    def tombstones(self) -> "list[Record]":
        """Return the record that deletes the group, unless it has no record."""
        return [GroupRecord(self.rebalance.group_id, None)] if self.rebalance.generation_id > 0 else []

    def loaded(self, now: Now) -> None:
        """Restore the stored generation."""
        if self.rebalance.stored.snapshot is not None:
            self.rebalance.restore(self.rebalance.stored.snapshot, now)

    def write_failed(self, now: Now) -> None:
        """Continue as a classic group, because its conversion could not be stored."""

    def generation_written(self, purpose: object, error: ErrorCode, now: Now) -> None:
        """Complete the write of a generation. If `error` is NONE, its record is committed."""
        if error:
            error = self.rebalance.store_failed(error)
        if isinstance(purpose, AssignmentStored):
            self._counts.classic_rebalances += not error
            self.rebalance.assignment_written(purpose, error, now)
        elif isinstance(purpose, StaticMemberStored):
            self._joining.static_member_written(purpose, error, now)

    def tick(self, now: Now) -> None:
        """Process all deadlines that have passed."""
        self.rebalance.tick(now)

    def describe(self) -> GroupDescription:
        """Return the group's description, with subscriptions and assignments only if the group is stable."""
        rebalance = self.rebalance
        stable = rebalance.state is STABLE
        return GroupDescription(
            rebalance.state,
            rebalance.protocol_type or "",
            (rebalance.protocol_name or "") if stable else "",
            tuple(
                MemberDescription(
                    member.member_id,
                    member.group_instance_id,
                    member.client_id,
                    member.client_host,
                    member.metadata(rebalance.protocol_name) if stable else b"",
                    rebalance.stored.assignment(member) if stable else b"",
                )
                for member in rebalance.roster.members.values()
            ),
        )
