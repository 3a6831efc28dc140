"""A consumer group (KIP-848): members that use the consumer protocol, some of which may use the classic one.

A group whose last member has left remains a consumer group. It becomes a classic group when a member joins
with the classic protocol.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_compat.coordinator_runtime.machine import Now, Output, Waiter, Write
from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.classic_members import ClassicMembers
from kafka_compat.groups.consumer.heartbeat import Heartbeat
from kafka_compat.groups.consumer.members import ConsumerMembers
from kafka_compat.groups.consumer.offset_checks import check_commit, check_fetch
from kafka_compat.groups.member_writes import STORE_FAILURES
from kafka_compat.groups.offsets import GroupOffsets
from kafka_compat.groups.requests import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_MEMBER_ID,
    Commit,
    GroupType,
    Join,
    JoinResult,
    Leaving,
    Sync,
    TopicPartition,
)
from kafka_compat.groups.typed_group import GroupView
from kafka_compat.long_work import Steps

if TYPE_CHECKING:
    from kafka_compat.groups.records import Record


@dataclass(slots=True)
class ConsumerGroupReplaced:
    """The purpose of a write for a JoinGroup request that turns an empty consumer group into a classic group.
    The request is processed when the tombstones have been appended.
    """

    waiter: Waiter
    is_appended: bool = False


class ConsumerGroup:
    """A consumer group. `members` is the state machine of its members, and `state` what is stored of them.
    `join_classic` processes a JoinGroup request when the group has become a classic group.
    """

    __slots__ = (
        "_classic_members",
        "_join_classic",
        "_offsets",
        "_offsets_retention_ms",
        "_outbox",
        "members",
        "state",
    )

    type: Final = GroupType.CONSUMER
    ends_with_deleted_offsets: Final = False
    ends_with_expired_offsets: Final = True

    def __init__(
        self,
        members: ConsumerMembers,
        offsets: GroupOffsets,
        offsets_retention_ms: int,
        new_member_id: Callable[[str | None], str],
        join_classic: Callable[[Join, Waiter, Now], Output],
    ) -> None:
        self.members = members
        self.state = members.state
        self._classic_members = ClassicMembers(members, new_member_id)
        self._offsets = offsets
        self._offsets_retention_ms = offsets_retention_ms
        self._join_classic = join_classic
        self._outbox = members.outbox

    @property
    def exists(self) -> bool:
        return self.state.exists

    @property
    def is_empty(self) -> bool:
        return not self.state.members.current

    @property
    def is_gone(self) -> bool:
        return not self.state.exists and self.state.committed is None

    @property
    def view(self) -> GroupView | None:
        view = self.state.committed
        if view is None:
            return None
        return GroupView(GroupType.CONSUMER, CONSUMER_PROTOCOL_TYPE, view.state, view.members)

    def join(self, request: Join, waiter: Waiter, now: Now) -> Steps[None]:
        """Process a JoinGroup request, in steps. An empty group becomes a classic group."""
        if not self.is_empty:
            yield from self._classic_members.join(request, waiter, now)
            return
        if request.member_id != UNKNOWN_MEMBER_ID:
            self._outbox.respond(waiter, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
            return
        purpose = ConsumerGroupReplaced(waiter)

        def join() -> Output:
            purpose.is_appended = True
            return self._join_classic(request, waiter, now)

        self._outbox.write(Write(self.members.tombstones(), purpose, then=join))

    def replacement_written(self, purpose: ConsumerGroupReplaced, error: ErrorCode) -> None:
        """Reject the JoinGroup request if the group could not become a classic group."""
        if error and not purpose.is_appended:
            result = JoinResult(STORE_FAILURES.get(error, error), UNKNOWN_MEMBER_ID)
            self._outbox.respond(purpose.waiter, result)

    def sync(self, request: Sync, waiter: Waiter, now: Now) -> None:
        """Process a SyncGroup request."""
        self._classic_members.sync(request, waiter, now)

    def heartbeat(
        self, generation_id: int, member_id: str, group_instance_id: str | None, now: Now
    ) -> ErrorCode:
        """Process a heartbeat of a classic member, and return an error code."""
        return self._classic_members.heartbeat(generation_id, member_id, group_instance_id, now)

    def leave(self, leaving: Iterable[Leaving], waiter: Waiter, now: Now) -> None:
        """Process a LeaveGroup request."""
        self._classic_members.leave(leaving, waiter, now)

    def consumer_heartbeat(self, request: Heartbeat, waiter: Waiter, now: Now) -> Steps[None]:
        """Process a ConsumerGroupHeartbeat request, in steps."""
        return self.members.heartbeat(request, waiter, now)

    def regexes_resolved(self, found: Mapping[str, frozenset[str]], version: int, now: Now) -> Steps[None]:
        """Store the topics that match the group's regular expressions, in steps."""
        return self.members.regexes_resolved(found, version, now)

    def topics_changed(self, names: frozenset[str]) -> None:
        """Compare the metadata hash with the next heartbeat, if members subscribe to any of these topics."""
        if self.state.exists and self.state.subscribed_names(existing=names.intersection):
            self.members.topics_changed()

    def commit_error(self, request: Commit, partitions: Collection[TopicPartition], now: Now) -> ErrorCode:
        """Return NONE if offsets for these partitions may be committed, or an error code."""
        return check_commit(self.state, self.members.common.topics, request, partitions)

    def fetch_error(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Return NONE if a member may fetch offsets, or an error code."""
        return check_fetch(self.state.committed, member_id, epoch)

    @property
    def offset_deletion_error(self) -> ErrorCode:
        return ErrorCode.NONE

    def subscribed(self, topics: set[str]) -> Set[str]:
        """Return those of the topics to which members subscribe."""
        return self.state.subscribed_names(existing=topics.intersection)

    def expired_offsets(self, now: Now) -> list[TopicPartition]:
        """Return the partitions whose offsets have expired."""
        return self._offsets.expired_without(
            self.state.subscribed_names(), now.wall_ms, self._offsets_retention_ms
        )

    def begin_deletion(self, waiter: Waiter, now: Now) -> bool:
        """Return False: all that belongs to a consumer group is in its log."""
        return False

    def tombstones(self) -> "list[Record]":
        """Return the records that delete the group, in the order that Kafka needs to replay them."""
        return self.members.tombstones()

    def loaded(self, now: Now) -> None:
        """Start the sessions of all members."""
        self.members.timers.loaded(now)

    def write_failed(self, now: Now) -> None:
        """Continue with the stored state."""
        self.members.write_failed(now)

    def tick(self, now: Now) -> None:
        """Process the earliest deadline, if it has passed."""
        timer = self.members.timers.timers.take_due(now.timer_ms)
        if timer is not None:
            self.members.timer_over(timer, now)
