"""Requests to share groups (KIP-932), and the calls of the share coordinator that they lead to.

Each response is passed to a callback, which is called exactly once, even if this broker loses the group while
it waits for the share coordinator.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH
from kafka_compat.groups.requests import GroupType
from kafka_compat.groups.share.heartbeat import ShareHeartbeat, ShareHeartbeatResult, check, rejected
from kafka_compat.groups.share.members import InitializeStates
from kafka_compat.groups.share.offset_changes import AlterStates, DeleteStates, NewOffsets, OffsetsResult
from kafka_compat.share_coordinator.persister import SharePartitionKey

if TYPE_CHECKING:
    from uuid import UUID

    from kafka_compat.groups.hosted_groups import HostedGroups, Running
    from kafka_compat.groups.share.groups_of_broker import ShareGroups
    from kafka_compat.groups.share.state import ShareView
    from kafka_compat.share_coordinator.persister import Persister

    Errors = Mapping[tuple[UUID, int], ErrorCode]

Effect = InitializeStates | AlterStates | DeleteStates

_CALL_SIZE = 20
"""Amount of work to call the share coordinator, in the unit of step sizes (see `run_cooperatively`)."""


class ShareGroupRequests:
    """Requests to the share groups of one broker."""

    def __init__(self, hosted: "HostedGroups", common: "ShareGroups") -> None:
        self._hosted = hosted
        self._common = common
        self._running = hosted.running
        self._runtime = hosted.runtime
        self._now = hosted.now
        self._calls: deque[Iterator[int]] = deque()
        """The effects whose calls of the share coordinator have not begun."""
        self._is_calling = False

    def heartbeat(
        self, group_id: str, request: ShareHeartbeat, respond: Callable[[ShareHeartbeatResult], None]
    ) -> None:
        """Process a ShareGroupHeartbeat request."""
        try:
            check(group_id, request)
        except KafkaError as invalid:
            respond(rejected(invalid))
            return
        running, error = self._hosted.find_or_host(
            group_id, ErrorCode.GROUP_ID_NOT_FOUND, is_created=request.member_epoch == JOIN_EPOCH
        )
        if error or running is None:
            message = None
            if error is ErrorCode.GROUP_ID_NOT_FOUND:
                noun = "Group" if request.member_epoch == LEAVE_EPOCH else "Share group"
                message = f"{noun} {group_id} not found."
            respond(ShareHeartbeatResult(error, message))
            return
        machine = running.machine
        self._hosted.long_events.process(
            running,
            lambda: machine.share_heartbeat(request, respond, self._now()),
            lambda: self.heartbeat(group_id, request, respond),
            lambda: respond(ShareHeartbeatResult(ErrorCode.UNKNOWN_SERVER_ERROR)),
        )

    def describe(self, group_id: str) -> "tuple[ErrorCode, ShareView | None]":
        """Return an error code, and the committed state of a share group if there is no error."""
        return self._hosted.view(group_id, lambda group: group.share_view)

    def initialized_partitions(self, group_id: str) -> "tuple[ErrorCode, Mapping[UUID, frozenset[int]]]":
        """Return an error code, and the partitions of a group whose state is initialized."""
        error, view = self.describe(group_id)
        if view is None:
            is_known = error not in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID)
            return error if is_known else ErrorCode.NONE, {}
        initialized = view.partition_states.initialized
        return error, {topic_id: each.partitions for topic_id, each in initialized.items()}

    def alter_offsets(
        self, group_id: str, topics: Sequence[NewOffsets], respond: Callable[[OffsetsResult], None]
    ) -> None:
        """Set the start offsets of a share group without members, which may be new."""
        error = self._hosted.refusal(group_id)
        if error:
            respond(OffsetsResult(error))
            return
        running = self._running.get(group_id) or self._runtime.host(group_id)
        machine, once = running.machine, _Once(respond)
        self._hosted.long_events.process(
            running,
            lambda: machine.alter_share_offsets(topics, once, self._now()),
            lambda: self.alter_offsets(group_id, topics, respond),
            lambda: once(OffsetsResult(ErrorCode.UNKNOWN_SERVER_ERROR)),
        )

    def delete_offsets(
        self, group_id: str, names: Sequence[str], respond: Callable[[OffsetsResult], None]
    ) -> None:
        """Delete the offsets of a share group without members for these topics."""
        running, error = self._hosted.find(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if error or running is None:
            message = f"Group {group_id} not found." if error is ErrorCode.GROUP_ID_NOT_FOUND else None
            respond(OffsetsResult(error, message))
            return
        machine, once = running.machine, _Once(respond)
        self._hosted.long_events.process(
            running,
            lambda: machine.delete_share_offsets(names, once, self._now()),
            lambda: self.delete_offsets(group_id, names, respond),
            lambda: once(OffsetsResult(ErrorCode.UNKNOWN_SERVER_ERROR)),
        )

    def topics_deleted(self, topic_ids: "Collection[UUID]") -> None:
        """Let share groups forget the states of deleted topics, in the background."""
        self._runtime.run_cooperatively(self._telling(frozenset(topic_ids)))

    def _telling(self, topic_ids: "frozenset[UUID]") -> Iterator[int]:
        for running in list(self._running.values()):
            if running.machine.has_states_of(topic_ids):
                self._tell(running, topic_ids)
            yield 2

    def _tell(self, running: "Running", topic_ids: "frozenset[UUID]") -> None:
        if self._running.get(running.key) is not running:
            return
        if not self._hosted.long_events.waits(running, lambda: self._tell(running, topic_ids)):
            self._runtime.carry_out(running, running.machine.topics_deleted(topic_ids, self._now()))

    def perform(self, running: "Running", effect: Effect) -> None:
        """Call the share coordinator for a group."""
        self._calls.append(self._call(running, effect))
        if not self._is_calling:
            self._is_calling = True
            self._runtime.run_cooperatively(self._call_in_order())

    def _call_in_order(self) -> Iterator[int]:
        """Call the share coordinator for thousands of partitions in steps, in the order of the effects."""
        try:
            while self._calls:
                yield from self._calls.popleft()
        finally:
            self._is_calling = False

    def _call(self, running: "Running", effect: Effect) -> Iterator[int]:
        persister = self._common.persister()
        group_id = running.machine.group_id
        done = partial(self._done, running, effect)
        if isinstance(effect, DeleteStates):
            gathered = _Gathered(effect.partitions, done)
            for topic_id, partition in effect.partitions:
                key = SharePartitionKey(group_id, topic_id, partition)
                persister.delete(key, partial(gathered.add, (topic_id, partition)))
                yield _CALL_SIZE
            return
        states = effect.states if isinstance(effect, AlterStates) else effect
        gathered = _Gathered(list(states.start_offsets), done)
        for (topic_id, partition), offset in states.start_offsets.items():
            key = SharePartitionKey(group_id, topic_id, partition)
            persister.initialize(
                key, states.state_epoch, offset, partial(gathered.add, (topic_id, partition))
            )
            yield _CALL_SIZE

    def _done(self, running: "Running", effect: Effect, errors: "Errors") -> None:
        """Continue when the share coordinator has responded for all partitions."""
        if self._running.get(running.key) is not running:
            if isinstance(effect, AlterStates) or (
                isinstance(effect, DeleteStates) and effect.topics is not None
            ):
                _respond(effect.waiter, OffsetsResult(ErrorCode.NOT_COORDINATOR))
            elif isinstance(effect, DeleteStates):
                _respond(effect.waiter, ErrorCode.NOT_COORDINATOR)
            return
        if self._hosted.long_events.waits(running, lambda: self._done(running, effect, errors)):
            return
        machine = running.machine
        if isinstance(effect, DeleteStates):
            output = machine.states_deleted(effect, errors, self._now())
        else:
            output = machine.states_initialized(effect, errors, self._now())
        self._runtime.carry_out(running, output)

    @property
    def persister(self) -> "Persister":
        """The stored states of share-partitions."""
        return self._common.persister()

    def is_share_group(self, group_id: str) -> bool:
        """Return whether a committed group is a share group."""
        running = self._running.get(group_id)
        return running is not None and running.machine.view.type is GroupType.SHARE


class _Once:
    """A callback that ignores all calls but the first: if a write fails after the share coordinator was
    called, both outcomes lead to a response.
    """

    def __init__(self, respond: Callable[[Any], None]) -> None:
        self._respond: Callable[[Any], None] | None = respond

    def __call__(self, result: object) -> None:
        respond, self._respond = self._respond, None
        if respond is not None:
            respond(result)


class _Gathered:
    """The error codes of several calls. `done` is called with all of them."""

    def __init__(self, partitions: "Sequence[tuple[UUID, int]]", done: "Callable[[Errors], None]") -> None:
        self._missing = len(partitions)
        self._errors = dict.fromkeys(partitions, ErrorCode.NONE)
        self._done = done
        if not partitions:
            done({})

    def add(self, partition: "tuple[UUID, int]", error: ErrorCode) -> None:
        self._errors[partition] = error
        self._missing -= 1
        if not self._missing:
            self._done(self._errors)


def _respond(waiter: object, result: object) -> None:
    cast("Callable[[object], None]", waiter)(result)
