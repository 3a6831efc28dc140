"""The group coordinator: all groups of the shards of `__consumer_offsets` that this broker leads.

It passes each request to the state machine of its group; the runtime does the remaining work. Each response
is passed to the callback of its request, immediately or when the records that it depends on are committed.
Each callback is called exactly once, even if this broker loses the shard or shuts down.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from uuid import uuid4

from kafka_compat.coordinator_runtime.coordinator_log import CoordinatorLog
from kafka_compat.coordinator_runtime.machine import Output
from kafka_compat.coordinator_runtime.runtime import CoordinatorRuntime
from kafka_compat.coordinator_runtime.scheduler import Scheduler
from kafka_compat.coordinator_runtime.shard import RunningMachine
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.consumer.groups_of_broker import ConsumerGroups
from kafka_compat.groups.consumer.heartbeat import Heartbeat, HeartbeatResult, check, rejected
from kafka_compat.groups.consumer.member import JOIN_EPOCH
from kafka_compat.groups.consumer.regular_expressions import ResolveRegexes, are_supported, resolved
from kafka_compat.groups.consumer.state import View
from kafka_compat.groups.counts import GroupCounts
from kafka_compat.groups.group import Group
from kafka_compat.groups.long_events import LongEvents
from kafka_compat.groups.offsets import CommittedOffset
from kafka_compat.groups.records import OffsetRecord, Record, decode_record, encode_record
from kafka_compat.groups.requests import (
    NO_GENERATION,
    Commit,
    EncodedRecord,
    GroupDescription,
    GroupOverview,
    GroupType,
    Join,
    JoinResult,
    LeaveResult,
    Leaving,
    OffsetAndMetadata,
    PartitionErrors,
    Sync,
    SyncResult,
    TopicPartition,
)
from kafka_compat.groups.settings import GroupSettings
from kafka_compat.groups.share.groups_of_broker import ShareGroups
from kafka_compat.groups.share.requests import Effect, ShareGroupRequests
from kafka_compat.long_work import Steps, batched
from kafka_compat.metadata.topic_names import OFFSETS_TOPIC
from kafka_compat.metadata.topic_nodes import new_id

if TYPE_CHECKING:
    from kafka_compat.metadata.described import TopicMetadata

log = logging.getLogger(__name__)


DELETED_AT_ONCE: Final = 500
"""Number of offsets to delete in one step when they expire or their topic is deleted."""
_LISTED_AT_ONCE: Final = 100
"""Number of groups to list in one step."""
_ENCODED_AT_ONCE: Final = 100
"""Number of committed offsets to encode in one step."""


def random_member_id(prefix: str | None) -> str:
    """Return a new member ID as Kafka does: with a prefix in a classic group, without in a consumer group."""
    return new_id() if prefix is None else f"{prefix}-{uuid4()}"


def _encoded(
    group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> Steps[dict[TopicPartition, EncodedRecord] | None]:
    """Encode the records of committed offsets, in steps. Return None if a string in a record is too long; the
    runtime then rejects the commit.
    """
    encoded: dict[TopicPartition, EncodedRecord] = {}
    try:
        for some in batched(offsets.items(), _ENCODED_AT_ONCE):
            yield None
            for (topic, partition), value in some:
                encoded[topic, partition] = encode_record(OffsetRecord(group_id, topic, partition, value))
    except ValueError:
        return None
    return encoded


class KnownMember(Protocol):
    """A member of a group of any type."""

    @property
    def member_id(self) -> str: ...
    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...


class GroupProgress(NamedTuple):
    """The type, state, members and committed offsets of a group. `members` maps member IDs to members. Both
    mappings are live views.
    """

    type: GroupType
    state: str
    members: Mapping[str, KnownMember]
    committed: Mapping[TopicPartition, CommittedOffset]


FetchedOffsets = dict[TopicPartition, tuple[OffsetAndMetadata | None, ErrorCode]]


class GroupCoordinator:
    """All groups of one broker.

    `partition_exists` returns whether a topic has a partition; offsets for other partitions are rejected.
    `now_ms` returns the time of day.
    """

    def __init__(
        self,
        *,
        coordinator_log: CoordinatorLog,
        scheduler: Scheduler,
        settings: GroupSettings,
        now_ms: Callable[[], int],
        partition_exists: Callable[[str, int], bool],
        consumer_groups: ConsumerGroups,
        share_groups: ShareGroups,
        new_member_id: Callable[[str | None], str] = random_member_id,
    ) -> None:
        self._settings = settings
        self._partition_exists = partition_exists
        self._new_member_id = new_member_id
        self._consumer_groups = consumer_groups
        self._share_groups = share_groups
        self.counts = GroupCounts()
        self._has_told_of_regexes = False
        self._runtime: CoordinatorRuntime[Group, Record] = CoordinatorRuntime(
            topic=OFFSETS_TOPIC,
            noun="group",
            coordinator_log=coordinator_log,
            scheduler=scheduler,
            now_ms=now_ms,
            new_machine=self._new_group,
            encode=encode_record,
            decode=decode_record,
            perform=self._perform,
            commit_timeout_ms=settings.offsets_commit_timeout_ms,
        )
        self._long_events = LongEvents(self._runtime, scheduler, encode_record)
        self._running = self._runtime.running
        self._now = self._runtime.now
        self.share = ShareGroupRequests(self._runtime, self._long_events, share_groups, self._refusal)

    def _new_group(self, group_id: str, snapshots: SnapshotRegistry) -> Group:
        return Group(
            group_id,
            snapshots,
            self._settings,
            self._new_member_id,
            self._consumer_groups,
            self._share_groups,
            self.counts,
            self._now(),
        )

    def start(self) -> None:
        """Start checking for expired offsets, every offsets.retention.check.interval.ms."""
        self._runtime.every(
            self._settings.offsets_retention_check_interval_ms,
            lambda: self._runtime.run_cooperatively(self._expiring()),
        )

    def close(self) -> None:
        """Stop all timers and complete pending requests; later requests get COORDINATOR_NOT_AVAILABLE."""
        self._runtime.close()
        self._long_events.end_lost()

    def load(self, index: int, leader_epoch: int = 0) -> None:
        """Load a shard of which this broker became leader. A long log is read in steps, during which requests
        get COORDINATOR_LOAD_IN_PROGRESS.
        """
        self._runtime.load(index, leader_epoch)
        self._long_events.end_lost()

    def unload(self, index: int) -> None:
        """Unload a shard that this broker no longer leads."""
        self._runtime.unload(index)
        self._long_events.end_lost()

    def shard_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that stores a group. The topic must exist."""
        return self._runtime.shard_of(group_id)

    def end_transaction(self, index: int, producer_id: int, committed: bool, end_offset: int) -> None:
        """Process the marker of a transaction, which was appended to a shard before `end_offset`: publish the
        offsets of the transaction, or discard them.
        """
        self._runtime.end_transaction(index, producer_id, committed, end_offset)

    def join(self, group_id: str, request: Join, respond: Callable[[JoinResult], None]) -> None:
        error = self._refusal(group_id)
        settings = self._settings
        if not error and not (
            settings.group_min_session_timeout_ms
            <= request.session_timeout_ms
            <= settings.group_max_session_timeout_ms
        ):
            error = ErrorCode.INVALID_SESSION_TIMEOUT
        running = self._running.get(group_id)
        if not error and running is None:
            if request.member_id:
                error = ErrorCode.UNKNOWN_MEMBER_ID
            else:
                running = self._host(group_id)
        if error or running is None:
            respond(JoinResult(error=error, member_id=request.member_id))
        else:
            machine = running.machine
            self._long_events.process(
                running,
                lambda: machine.join(request, respond, self._now()),
                lambda: self.join(group_id, request, respond),
                lambda: respond(JoinResult(ErrorCode.UNKNOWN_SERVER_ERROR, request.member_id)),
            )

    def sync(self, group_id: str, request: Sync, respond: Callable[[SyncResult], None]) -> None:
        running, error = self._find(group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Make clients rejoin: the rebalance may have been lost with the previous coordinator.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error or running is None:
            respond(SyncResult(error=error))
        elif not self._long_events.waits(running, lambda: self.sync(group_id, request, respond)):
            self._runtime.carry_out(running, running.machine.sync(request, respond, self._now()))

    def heartbeat(
        self, group_id: str, generation_id: int, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        running = self._running.get(group_id)
        if running is not None:
            machine = running.machine
            error = machine.heartbeat(generation_id, member_id, group_instance_id, self._now())
            # Set the timer only for an earlier deadline: most requests are heartbeats, which rarely set one.
            wake_at_ms, alarm = machine.wake_at_ms, running.alarm
            if alarm is None or wake_at_ms is None or wake_at_ms < alarm.at_ms:
                self._runtime.set_alarm(running)
            return error
        error = self._refusal(group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Accept the heartbeat, because all sessions restart when the shard has been loaded.
            return ErrorCode.NONE
        return error or ErrorCode.UNKNOWN_MEMBER_ID

    def consumer_heartbeat(
        self, group_id: str, request: Heartbeat, respond: Callable[[HeartbeatResult], None]
    ) -> None:
        """Process a ConsumerGroupHeartbeat request (KIP-848)."""
        try:
            check(group_id, request, self._consumer_groups.limits.assignors)
        except KafkaError as invalid:
            respond(rejected(invalid))
            return
        if request.topic_regex and not self._has_told_of_regexes and not are_supported():
            # Log this, because clients such as librdkafka do not show the message of the response.
            log.warning(
                "Rejected a subscription to the regular expression %r in group %s: the package google-re2 is "
                "missing. Install kafka-compat[regex], and restart the broker",
                request.topic_regex,
                group_id,
            )
            self._has_told_of_regexes = True
        error = self._refusal(group_id)
        running = self._running.get(group_id)
        if not error and running is None:
            if request.member_epoch == JOIN_EPOCH:
                running = self._host(group_id)
            else:
                error = ErrorCode.GROUP_ID_NOT_FOUND
        if error or running is None:
            message = (
                f"The group {group_id} does not exist" if error is ErrorCode.GROUP_ID_NOT_FOUND else None
            )
            respond(HeartbeatResult(error, message))
        else:
            machine = running.machine
            self._long_events.process(
                running,
                lambda: machine.consumer_heartbeat(request, respond, self._now()),
                lambda: self.consumer_heartbeat(group_id, request, respond),
                lambda: respond(HeartbeatResult(ErrorCode.UNKNOWN_SERVER_ERROR)),
            )

    def _perform(self, running: RunningMachine[Group], effect: ResolveRegexes | Effect) -> None:
        if isinstance(effect, ResolveRegexes):
            self._resolve_regexes(running, effect)
        else:
            self.share.perform(running, effect)

    def _resolve_regexes(self, running: RunningMachine[Group], request: ResolveRegexes) -> None:
        """Resolve the regular expressions of a consumer group in the background."""
        topics = self._consumer_groups.topics

        def resolving() -> Iterator[int]:
            version = topics.version
            found = yield from resolved(request, topics.names)
            self._store_topics(running, found, version)

        self._runtime.run_cooperatively(resolving())

    def _store_topics(
        self, running: RunningMachine[Group], found: dict[str, frozenset[str]], version: int
    ) -> None:
        """Store the topics that match regular expressions, unless this broker has lost the group."""
        if self._running.get(running.key) is running:
            self._long_events.process(
                running,
                lambda: running.machine.regexes_resolved(found, version, self._now()),
                lambda: self._store_topics(running, found, version),
                lambda: None,
            )

    def describe_consumer_group(self, group_id: str) -> tuple[ErrorCode, View | None]:
        """Return an error code, and the committed state of a consumer group if there is no error."""
        error = self._refusal(group_id)
        running = self._running.get(group_id)
        view = None if running is None else running.machine.consumer.state.committed
        if view is None and not error:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        return error, view

    @property
    def default_assignor(self) -> str:
        """The assignor of consumer groups whose members have no preference."""
        return self._consumer_groups.limits.assignors[0]

    def topics_changed(self, names: Collection[str]) -> None:
        """Let consumer and share groups that subscribe to these topics compare their metadata hash, in the
        background if there are many groups.
        """
        self._runtime.run_cooperatively(self._telling(frozenset(names)))

    def _telling(self, changed: frozenset[str]) -> Iterator[int]:
        for running in list(self._running.values()):
            consumer = running.machine.consumer
            if consumer.state.exists and consumer.state.subscribed_names(existing=changed.intersection):
                consumer.topics_changed()
            share = running.machine.share
            if not changed.isdisjoint(share.state.subscribers):
                share.topics_changed()
            yield 2

    def leave(
        self, group_id: str, leaving: list[Leaving], respond: Callable[[LeaveResult], None]
    ) -> Steps[None]:
        """Remove members from a group. Each part of a long list is an event of the group."""
        parts = list(batched(leaving)) or [[]]
        results: dict[int, LeaveResult] = {}

        def answer(number: int, result: LeaveResult) -> None:
            results[number] = result
            if len(results) == len(parts):
                ordered = [results[each] for each in range(len(parts))]
                error = next((each.error for each in ordered if each.error), ErrorCode.NONE)
                members: list[tuple[Leaving, ErrorCode]] = []
                for each in ordered:
                    members += each.members
                respond(LeaveResult(error, tuple(members)))

        for number, part in enumerate(parts):
            self._leave(group_id, part, partial(answer, number))
            yield None

    def _leave(self, group_id: str, leaving: list[Leaving], respond: Callable[[LeaveResult], None]) -> None:
        error = self._refusal(group_id)
        running = self._running.get(group_id)
        if error:
            respond(LeaveResult(error=error))
        elif running is None:
            members = tuple((one, ErrorCode.UNKNOWN_MEMBER_ID) for one in leaving)
            respond(LeaveResult(error=ErrorCode.NONE, members=members))
        elif not self._long_events.waits(running, lambda: self._leave(group_id, leaving, respond)):
            self._runtime.carry_out(running, running.machine.leave(leaving, respond, self._now()))

    # Offsets

    def commit_offsets(
        self, group_id: str, request: Commit, respond: Callable[[PartitionErrors], None]
    ) -> Steps[None]:
        """Commit offsets. `respond` receives an error code for each partition."""
        refused: PartitionErrors = {}
        for some in batched(request.offsets):
            for partition in some:
                if not self._partition_exists(*partition):
                    refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            yield None
        if refused:
            offsets: dict[TopicPartition, OffsetAndMetadata] = {}
            for rest in batched(request.offsets.items()):
                offsets.update((key, value) for key, value in rest if key not in refused)
                yield None
            request = request._replace(offsets=offsets)
            if not request.offsets:
                respond(refused)
                return
            inner = respond
            respond = lambda errors: inner(refused | errors)  # noqa: E731
        if len(request.offsets) > _ENCODED_AT_ONCE:
            request = request._replace(encoded=(yield from _encoded(group_id, request.offsets)))
        error = self._refusal(group_id, empty_id_allowed=request.producer is None)
        running = self._running.get(group_id)
        if not error and running is None:
            if request.generation_id < 0:
                running = self._host(group_id)
            else:
                error = request.missing_group_error
        if error or running is None:
            respond(dict.fromkeys(request.offsets, error))
        else:
            self._runtime.carry_out(running, running.machine.commit_offsets(request, respond, self._now()))

    def fetch_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None,
        *,
        require_stable: bool,
        member_id: str | None = None,
        member_epoch: int = NO_GENERATION,
    ) -> tuple[ErrorCode, FetchedOffsets]:
        """Return an error code, and the committed offsets for these partitions (None: all partitions). If a
        member of a consumer group requests them, its epoch must be the current one (KIP-848).

        With `require_stable`, partitions for which `is_unstable` is true get UNSTABLE_OFFSET_COMMIT
        (KIP-447).
        """
        error = self._refusal(group_id, empty_id_allowed=True)
        if error:
            return error, {}
        running = self._running.get(group_id)
        if running is None:
            return ErrorCode.NONE, {partition: (None, ErrorCode.NONE) for partition in partitions or ()}
        error = running.machine.consumer.check_fetch(member_id, member_epoch)
        if error:
            return error, {}
        offsets = running.machine.offsets
        fetched: FetchedOffsets = {}
        for partition in list(offsets.stored.committed) if partitions is None else partitions:
            if require_stable and offsets.is_unstable(partition):
                fetched[partition] = (None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            else:
                fetched[partition] = (offsets.get(partition), ErrorCode.NONE)
        return ErrorCode.NONE, fetched

    def delete_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        respond: Callable[[PartitionErrors | ErrorCode], None],
    ) -> Steps[None]:
        """Delete offsets. `respond` receives an error code for each partition, or one for the whole group."""
        refused: PartitionErrors = {}
        known: list[TopicPartition] = []
        for some in batched(partitions):
            for partition in some:
                if self._partition_exists(*partition):
                    known.append(partition)
                else:
                    refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            yield None

        def merge(result: PartitionErrors | ErrorCode) -> None:
            respond(refused | result if isinstance(result, dict) else result)

        self._delete_offsets(group_id, known, merge)

    def _delete_offsets(
        self,
        group_id: str,
        partitions: list[TopicPartition],
        respond: Callable[[PartitionErrors | ErrorCode], None],
    ) -> None:
        running, error = self._find(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if error or running is None:
            respond(error)
            return
        machine = running.machine
        self._long_events.process(
            running,
            lambda: machine.delete_offsets(partitions, respond),
            lambda: self._delete_offsets(group_id, partitions, respond),
            lambda: respond(ErrorCode.UNKNOWN_SERVER_ERROR),
        )

    def copy_offsets(
        self,
        source: str,
        target: str,
        group_ids: Collection[str] | None,
        respond: Callable[[str, ErrorCode], None],
    ) -> list[str]:
        """Copy the committed offsets of `group_ids`, or of all groups if None, from the topic `source` to the
        topic `target`. Return the IDs of the groups that have offsets for `source`. When a group's offsets
        are stored, `respond` is called with its ID and the first error code, or NONE.
        """
        copied = []
        topic_id = self._consumer_groups.topics.topic_id(target)
        for group_id, running in list(self._running.items()):
            if group_ids is not None and group_id not in group_ids:
                continue
            offsets = {
                (target, partition): each.value._replace(
                    topic_id=None if each.value.topic_id is None else topic_id
                )
                for (topic, partition), each in running.machine.offsets.stored.committed.items()
                if topic == source
            }
            if offsets:
                copied.append(group_id)

                def stored(errors: PartitionErrors, group_id: str = group_id) -> None:
                    respond(group_id, next(filter(None, errors.values()), ErrorCode.NONE))

                self._runtime.carry_out(running, running.machine.put_offsets(offsets, stored))
        return copied

    @property
    def load_times_ms(self) -> Sequence[int]:
        """Load times in ms of the most recently loaded shards."""
        return self._runtime.load_times_ms

    @property
    def is_loading(self) -> bool:
        """Whether any shard is being loaded. While this is true, groups may be missing from the results."""
        return self._runtime.is_loading

    def forget_topic(self, topic: "TopicMetadata") -> None:
        """Delete all groups' offsets for a topic that was deleted, in the background if there are many."""
        self._runtime.run_cooperatively(self._forgetting(topic, self._now().wall_ms))

    def _forgetting(self, topic: "TopicMetadata", deleted_ms: int) -> Iterator[int]:
        for running in list(self._running.values()):
            machine = running.machine
            find = partial(machine.offsets.of_topic, topic, deleted_ms)
            found = find()
            if found and self._running.get(running.key) is running:
                yield from self._delete_in_parts(running, found, find, machine.forget_partitions)
            yield 1

    def _expiring(self) -> Iterator[int]:
        for running in list(self._running.values()):
            machine = running.machine

            def expired(machine: Group = machine) -> list[TopicPartition]:
                return machine.expired_offsets(self._now())

            if self._running.get(running.key) is running:
                yield from self._delete_in_parts(running, expired(), expired, machine.delete_expired)

    def _delete_in_parts(
        self,
        running: RunningMachine[Group],
        found: list[TopicPartition],
        find: Callable[[], list[TopicPartition]],
        delete: Callable[[list[TopicPartition]], Output],
    ) -> Iterator[int]:
        """Delete the offsets in `found`, in parts. `find` returns them again after each part, because offsets
        may be committed in the meantime.
        """
        for _ in range(len(found) // DELETED_AT_ONCE + 1):
            part = found[:DELETED_AT_ONCE]
            self._runtime.carry_out(running, delete(part))
            yield 2 + 2 * len(part)
            if self._running.get(running.key) is not running:
                return
            found = find()
            if not found:
                return

    def list_groups(self, states: set[str], types: set[str]) -> tuple[ErrorCode, list[GroupOverview]]:
        """Return an error code, and the groups with these states and types, which must be in lower case.
        Empty filters match all.
        """
        steps = self.list_groups_in_steps(states, types)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                found: tuple[ErrorCode, list[GroupOverview]] = stop.value
                return found

    def list_groups_in_steps(
        self, states: set[str], types: set[str]
    ) -> Steps[tuple[ErrorCode, list[GroupOverview]]]:
        """Do the same as `list_groups`, in steps."""
        if self._runtime.is_closed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self._runtime.is_loading else ErrorCode.NONE
        found: list[GroupOverview] = []
        for some in batched(list(self._running.values()), _LISTED_AT_ONCE):
            yield None
            overviews = [each.machine.overview() for each in some if not each.machine.is_dead]
            found += (
                group
                for group in overviews
                if (not states or group.state.lower() in states) and (not types or group.type in types)
            )
        return error, found

    def describe_group(self, group_id: str) -> tuple[ErrorCode, GroupDescription | None]:
        """Return an error code, and the description of a classic group, or None if there is no such group."""
        error = self._refusal(group_id, empty_id_allowed=True)
        running = self._running.get(group_id)
        is_classic = running is not None and running.machine.committed_type is GroupType.CLASSIC
        return error, running.machine.describe() if running is not None and is_classic else None

    def group_ids(self) -> list[str]:
        """Return the IDs of all groups on this broker."""
        return list(self._running)

    def progress(self, group_id: str) -> GroupProgress | None:
        """Return the state, members and offsets of a group, or None if the group is unknown."""
        running = self._running.get(group_id)
        if running is None:
            return None
        machine = running.machine
        offsets = machine.offsets.stored.committed
        view = machine.consumer.state.committed
        if view is not None:
            return GroupProgress(GroupType.CONSUMER, view.state, view.members, offsets)
        share = machine.share.state.committed
        if share is not None:
            return GroupProgress(GroupType.SHARE, share.state, share.members, offsets)
        rebalance = machine.rebalance
        return GroupProgress(GroupType.CLASSIC, rebalance.state, rebalance.roster.members, offsets)

    def delete_groups(
        self, group_ids: Iterable[str], respond: Callable[[dict[str, ErrorCode]], None]
    ) -> None:
        """Delete groups. `respond` is called when all groups have been deleted or rejected."""
        waiting = dict.fromkeys(group_ids)
        errors: dict[str, ErrorCode] = {}

        def answer(group_id: str, error: ErrorCode) -> None:
            errors[group_id] = error
            if len(errors) == len(waiting):
                respond({group_id: errors[group_id] for group_id in waiting})

        if not waiting:
            respond({})
        for group_id in waiting:
            self._delete_group(group_id, partial(answer, group_id))

    def _delete_group(self, group_id: str, respond: Callable[[ErrorCode], None]) -> None:
        error = self._refusal(group_id, empty_id_allowed=True)
        running = self._running.get(group_id)
        if error or running is None:
            respond(error or ErrorCode.GROUP_ID_NOT_FOUND)
        else:
            machine = running.machine
            self._long_events.process(
                running,
                lambda: machine.delete(respond, self._now()),
                lambda: self._delete_group(group_id, respond),
                lambda: respond(ErrorCode.UNKNOWN_SERVER_ERROR),
            )

    def _find(self, group_id: str, missing: ErrorCode) -> tuple[RunningMachine[Group] | None, ErrorCode]:
        """Return a group and NONE, or None and an error code, which is `missing` if the group is unknown."""
        error = self._refusal(group_id)
        running = self._running.get(group_id)
        return running, missing if running is None and not error else error

    def _refusal(self, group_id: str, *, empty_id_allowed: bool = False) -> ErrorCode:
        """Return the error code if this broker cannot serve a group with this ID, or NONE if it can."""
        if not group_id and not empty_id_allowed:
            return ErrorCode.INVALID_GROUP_ID
        return ErrorCode.NONE if group_id in self._running else self._runtime.refusal(group_id)

    def _host(self, group_id: str) -> RunningMachine[Group]:
        return self._runtime.host(group_id)
