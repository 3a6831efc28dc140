"""Members of a consumer group that use the classic protocol, while clients migrate (KIP-848).

Rules
- JoinGroup is answered when its records are committed, with the member's epoch as the generation and without
  a leader: the broker assigns the partitions. The subscription lists the partitions that the member owns,
  and those that it does not list are revoked.
- SyncGroup returns the member's current assignment.
- A heartbeat is answered with REBALANCE_IN_PROGRESS if the member must rejoin: to reach a new target
  assignment, to confirm that it has revoked partitions, or to get partitions that others have released.
- A member is fenced when its session ends, if it does not rejoin within its rebalance timeout after such a
  response, or if it does not send SyncGroup within its rebalance timeout after JoinGroup.
- A member must support a protocol that all classic members support.
- If a static classic member replaces the last member of the consumer protocol, the group may become classic
  (`conversion.py`).
"""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from kafka_compat.coordinator_runtime.machine import Now, Waiter, Write
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.consumer.embedded_protocol import (
    Subscription,
    encode_assignment,
    read_subscription,
)
from kafka_compat.groups.consumer.member import ClassicMember, Member, MemberState
from kafka_compat.groups.consumer.members import ConsumerMembers
from kafka_compat.groups.member_writes import STORE_FAILURES, MembersStored
from kafka_compat.groups.requests import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_MEMBER_ID,
    Join,
    JoinResult,
    LeaveResult,
    Leaving,
    Sync,
    SyncResult,
)
from kafka_compat.groups.timers import Timer, TimerKind
from kafka_compat.long_work import Steps, batched
from kafka_compat.protocol.codec import MalformedRequest

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.groups.consumer.reconciliation import Owned
    from kafka_compat.groups.consumer.records import ConsumerRecord
    from kafka_compat.groups.records import Record


class ClassicMembers:
    """Handler of the classic protocol's requests for a consumer group with members."""

    __slots__ = ("_group", "_new_member_id", "_outbox", "_state", "_timers", "_topics")

    def __init__(self, group: ConsumerMembers, new_member_id: Callable[[str | None], str]) -> None:
        self._group = group
        self._state = group.state
        self._outbox = group.outbox
        self._timers = group.timers.timers
        self._topics = group.common.topics
        self._new_member_id = new_member_id

    def join(self, request: Join, waiter: Waiter, now: Now) -> Steps[None]:
        """Process a JoinGroup request, in steps."""
        is_new = request.member_id == UNKNOWN_MEMBER_ID
        member_id = self._new_member_id(None) if is_new else request.member_id
        try:
            subscription = yield from self._check_join(request, member_id)
            if is_new and request.requires_known_member_id:
                result = JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id)
                self._outbox.respond(waiter, result)
            else:
                yield from self._join(request, member_id, subscription, waiter, now)
        except KafkaError as error:
            self._outbox.respond(waiter, JoinResult(error.code, UNKNOWN_MEMBER_ID))

    def _check_join(self, request: Join, member_id: str) -> Steps[Subscription]:
        limits, state = self._group.common.limits, self._state
        if not (limits.may_upgrade or limits.may_downgrade):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The migration of groups is disabled")
        self._group.check_size(member_id, request.group_instance_id)
        if request.protocol_type != CONSUMER_PROTOCOL_TYPE or all(
            state.classic_protocols[name] != state.classic_members for name, _ in request.protocols
        ):
            raise KafkaError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "No protocol is supported by all classic members"
            )
        try:
            return (yield from read_subscription(request.protocols[0][1]))
        except MalformedRequest as error:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, str(error)) from None

    def _join(
        self, request: Join, member_id: str, subscription: Subscription, waiter: Waiter, now: Now
    ) -> Steps[None]:
        group, state = self._group, self._state
        records: list[ConsumerRecord] = []
        conversion: list[Record] = []
        static = state.static_member(request.group_instance_id or "")
        former, replaced = self._joining_member(request, member_id, static, records)
        updated = _with_subscription(former, request, subscription)
        has_new_topics = group.change_member(former, updated, replaced, records)
        group_epoch, compared = yield from group.next_epoch(former, updated, has_new_topics, records)
        owned = yield from self._owned(subscription)
        then = None
        if static is not None and group.downgrade.is_due_if_replaced(state, static):
            target_epoch = state.target.current.epoch
            reason = None
            if target_epoch < group_epoch:
                reason = "a classic member replaced the last member of the consumer protocol"
                after = updated
            else:
                target = state.target_of(updated.member_id, updated.instance_id)
                after = group.reconcile(former, updated, target_epoch, target, owned, records)
            record, then = group.downgrade.convert(state, (), after, reason, now)
            conversion = [*group.tombstones(static.member_id, after.member_id), record]
        else:
            target_epoch, target = yield from group.target(
                group_epoch, compared, former, updated, replaced, now, records
            )
            after = group.reconcile(former, updated, target_epoch, target, owned, records)
            self._set_timers(after, now)
        if records or conversion:
            self._outbox.write(Write([*records, *conversion], MembersStored(), then=then))
        self._outbox.respond_when_committed(waiter, _joined(after), _join_failed)

    def _joining_member(
        self,
        request: Join,
        member_id: str,
        known: Member | None,
        records: "list[ConsumerRecord]",
    ) -> tuple[Member, Member | None]:
        """Return the member that joins, which may be new, and the static member that it replaces. `known` is
        the member with its instance ID.
        """
        if request.group_instance_id is None:
            return self._state.members.current.get(member_id) or Member(member_id), None
        if request.member_id != UNKNOWN_MEMBER_ID:
            return self._known_member(request.member_id, request.group_instance_id), None
        if known is None:
            return Member(member_id), None
        self._outbox.note(
            f"static member {request.group_instance_id} rejoined as {member_id}, replacing {known.member_id}"
        )
        return self._group.replace_static(known, member_id, records), known

    def _owned(self, subscription: Subscription) -> "Steps[Owned]":
        owned: dict[UUID, Collection[int]] = {}
        for some in batched(subscription.owned.items()):
            for name, partitions in some:
                topic_id = self._topics.topic_id(name)
                if topic_id is not None:
                    owned[topic_id] = partitions
            yield None
        return owned

    def _set_timers(self, member: Member, now: Now) -> None:
        self._group.timers.start_session(member, now)
        self._timers.cancel(Timer(TimerKind.JOIN, member.member_id))
        timer = Timer(TimerKind.SYNC, member.member_id)
        self._timers.set(timer, now.timer_ms + member.rebalance_timeout_ms)

    def sync(self, request: Sync, waiter: Waiter, now: Now) -> None:
        """Process a SyncGroup request."""
        try:
            member, classic = self._classic_member(
                request.member_id, request.group_instance_id, request.generation_id
            )
        except KafkaError as error:
            self._outbox.respond(waiter, SyncResult(error.code))
            return
        protocol, metadata = classic.protocols[0]
        error_code = ErrorCode.NONE
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
            request.protocol_name not in (None, protocol)
        ):
            error_code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        elif (
            self._state.target.current.epoch > member.epoch
            and member.state is not MemberState.UNREVOKED_PARTITIONS
        ):
            self._await_join(member, now)
            error_code = ErrorCode.REBALANCE_IN_PROGRESS
        if error_code:
            self._outbox.respond(waiter, SyncResult(error_code))
            return
        self._timers.cancel(Timer(TimerKind.SYNC, member.member_id))
        self._group.timers.start_session(member, now)
        result = SyncResult(
            ErrorCode.NONE, request.protocol_type, request.protocol_name, self._assignment(member, metadata)
        )
        self._outbox.respond_when_committed(waiter, result, _sync_failed)

    def _assignment(self, member: Member, metadata: bytes) -> bytes:
        names = {topic_id: self._topics.topic_name(topic_id) for topic_id in member.assigned}
        named = {name: tuple(member.assigned[key]) for key, name in names.items() if name is not None}
        return encode_assignment(named, metadata)

    def heartbeat(
        self, generation_id: int, member_id: str, group_instance_id: str | None, now: Now
    ) -> ErrorCode:
        """Process a heartbeat and return an error code: REBALANCE_IN_PROGRESS if the member must rejoin."""
        try:
            member, _ = self._classic_member(member_id, group_instance_id, generation_id)
        except KafkaError as error:
            return error.code
        self._group.timers.start_session(member, now)
        if not self._must_rejoin(member):
            return ErrorCode.NONE
        self._await_join(member, now)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _must_rejoin(self, member: Member) -> bool:
        state = self._state
        if member.epoch < state.target.current.epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
            return True
        return member.state is MemberState.UNRELEASED_PARTITIONS and all(
            state.owner(topic_id, partition) is None
            for topic_id, partitions in state.target_of(member.member_id, member.instance_id).items()
            for partition in partitions
            if partition not in member.assigned.get(topic_id, ())
        )

    def _await_join(self, member: Member, now: Now) -> None:
        timer = Timer(TimerKind.JOIN, member.member_id)
        if timer not in self._timers.pending:
            self._timers.set(timer, now.timer_ms + member.rebalance_timeout_ms)

    def leave(self, leaving: Iterable[Leaving], waiter: Waiter, now: Now) -> None:
        """Process a LeaveGroup request, which may also name members of the consumer protocol."""
        errors: list[tuple[Leaving, ErrorCode]] = []
        members: dict[str, Member] = {}
        for one in leaving:
            try:
                member = self._leaving_member(one)
            except KafkaError as error:
                errors.append((one, error.code))
                continue
            errors.append((one, ErrorCode.NONE))
            members[member.member_id] = member
            self._outbox.note(f"member {member.member_id} left; client reason: {one.reason}")
        if members:
            self._outbox.write(self._group.remove(members.values(), now))
        result = LeaveResult(error=ErrorCode.NONE, members=tuple(errors))
        self._outbox.respond_when_committed(waiter, result, _leave_failed)

    def _leaving_member(self, leaving: Leaving) -> Member:
        instance_id = leaving.group_instance_id
        if instance_id is not None and leaving.member_id == UNKNOWN_MEMBER_ID:
            member = self._state.static_member(instance_id)
            if member is None:
                raise _unknown()
            return member
        return self._known_member(leaving.member_id, instance_id)

    def _classic_member(
        self, member_id: str, instance_id: str | None, generation_id: int
    ) -> tuple[Member, ClassicMember]:
        """Return a classic member. Raises KafkaError if it is not one, or if the generation is wrong."""
        member = self._known_member(member_id, instance_id)
        if member.classic is None:
            raise _unknown()
        if member.epoch != generation_id:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"The member's epoch is {member.epoch}")
        return member, member.classic

    def _known_member(self, member_id: str, instance_id: str | None) -> Member:
        """Return a member. Raises KafkaError if it does not exist or has been replaced."""
        if instance_id is None:
            member = self._state.members.current.get(member_id)
        else:
            member = self._state.static_member(instance_id)
        if member is None:
            raise _unknown()
        if member.member_id != member_id:
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, f"Member {member.member_id} has the instance ID")
        return member


def _with_subscription(member: Member, request: Join, subscription: Subscription) -> Member:
    """Return the member with the fields of its JoinGroup request."""
    timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topic_names=subscription.topics,
        topic_regex="",
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        classic=ClassicMember(request.session_timeout_ms, request.protocols),
    )


def _joined(member: Member) -> JoinResult:
    assert member.classic is not None
    return JoinResult(
        ErrorCode.NONE,
        member.member_id,
        generation_id=member.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=member.classic.protocols[0][0],
    )


def _unknown() -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "The group has no such member of the classic protocol")


def _join_failed(error: ErrorCode) -> JoinResult:
    return JoinResult(STORE_FAILURES.get(error, error), UNKNOWN_MEMBER_ID)


def _sync_failed(error: ErrorCode) -> SyncResult:
    return SyncResult(STORE_FAILURES.get(error, error))


def _leave_failed(error: ErrorCode) -> LeaveResult:
    return LeaveResult(STORE_FAILURES.get(error, error))
