"""The group coordinator: runs the machines of all groups of the shards that this broker leads.

It finds the group, hands it the event, appends what the group wants written, and answers. Each answer goes
to the callback that came with the request: at once, or when the records it depends on are committed.
Callbacks are called exactly once, also when the shard or the broker goes away.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from uuid import uuid4

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.coordinator_log import CoordinatorLog
from kafka_compat.groups.group import Group
from kafka_compat.groups.loader import LoadedGroup, Loader
from kafka_compat.groups.model import (
    Commit,
    GroupDescription,
    GroupOverview,
    GroupSettings,
    GroupState,
    Join,
    JoinResult,
    LeaveResult,
    Leaving,
    Now,
    OffsetAndMetadata,
    OffsetsStored,
    Output,
    PartitionErrors,
    Purpose,
    Sync,
    SyncResult,
    TopicPartition,
    Write,
)
from kafka_compat.groups.records import encode_record
from kafka_compat.groups.scheduler import Scheduler, TimerHandle, run_in_steps
from kafka_compat.groups.shards import shard_of

log = logging.getLogger(__name__)

"""How many records of a shard are loaded before others get their turn on the event loop."""

FetchedOffsets = dict[TopicPartition, tuple[OffsetAndMetadata | None, ErrorCode]]


@dataclass(slots=True, eq=False)
class _Hosted:
    """A group that runs here, with the one timer that wakes it up."""

    group: Group
    shard: _Shard
    wake_at_ms: int | None = None
    wake_up: TimerHandle | None = None


@dataclass(slots=True, eq=False)
class _Shard:
    """A partition of `__consumer_offsets` that this broker leads."""

    index: int
    loading: bool = True
    hosted: dict[str, _Hosted] = field(default_factory=dict)
    completed: list[tuple[int, bool]] = field(default_factory=list)
    """Transactions that ended while the shard was loading."""


class GroupCoordinator:
    """All classic groups of one broker.

    `partition_exists` says whether a topic has a partition; offsets of others are refused. `now_ms` is the
    time of day.
    """

    def __init__(
        self,
        *,
        coordinator_log: CoordinatorLog,
        scheduler: Scheduler,
        settings: GroupSettings,
        now_ms: Callable[[], int],
        partition_exists: Callable[[str, int], bool],
        new_member_id: Callable[[str], str] = lambda prefix: f"{prefix}-{uuid4()}",
    ) -> None:
        self._log = coordinator_log
        self._scheduler = scheduler
        self._settings = settings
        self._now_ms = now_ms
        self._partition_exists = partition_exists
        self._new_member_id = new_member_id
        self._shards: dict[int, _Shard] = {}
        self._hosted: dict[str, _Hosted] = {}
        self._retention_check: TimerHandle | None = None
        self._closed = False

    # Life

    def start(self) -> None:
        """Begin to look for expired offsets every offsets.retention.check.interval.ms."""
        self._retention_check = self._scheduler.call_later(
            self._settings.offsets_retention_check_interval_ms, self._check_retention
        )

    def close(self) -> None:
        """Stop all timers and answer whoever waits; afterwards every request is COORDINATOR_NOT_AVAILABLE."""
        self._closed = True
        if self._retention_check is not None:
            self._retention_check.cancel()
        for index in list(self._shards):
            self.unload(index)

    def load(self, index: int) -> None:
        """This broker has become the leader of a shard. A long log is read in steps; until then it is
        loading.
        """
        self.unload(index)
        shard = self._shards[index] = _Shard(index)
        loader = Loader(lambda problem: log.warning("__consumer_offsets-%d: %s", index, problem))
        work = self._loading(loader, shard)

        def is_wanted() -> bool:
            return shard.loading and self._shards.get(index) is shard

        def on_error(error: KafkaError) -> None:
            log.error("__consumer_offsets-%d: its groups cannot be loaded: %s", index, error)
            self.unload(index)

        run_in_steps(self._scheduler, work, is_wanted, on_error)

    def _loading(self, loader: Loader, shard: _Shard) -> Iterator[None]:
        """All the work of loading, in pieces of about one record."""
        for batch in self._log.replay(shard.index):
            loader.feed(batch)
            yield from itertools.repeat(None, len(batch.records))
        yield from loader.decode()
        for loaded in loader.groups.values():
            self._restore(shard, loaded)
        shard.loading = False
        for producer_id, committed in shard.completed:
            self.complete_transaction(shard.index, producer_id, committed)
        if loader.record_count:
            log.info(
                "__consumer_offsets-%d: loaded %d groups from %d records",
                shard.index,
                len(shard.hosted),
                loader.record_count,
            )

    def _restore(self, shard: _Shard, loaded: LoadedGroup) -> None:
        hosted = self._host(shard, loaded.group_id)
        hosted.group.offsets.committed = loaded.offsets
        hosted.group.offsets.pending_transactional = loaded.pending_transactional
        if loaded.snapshot is not None:
            self._carry_out(hosted, hosted.group.restore(loaded.snapshot, self._now()))

    def unload(self, index: int) -> None:
        """This broker no longer leads a shard."""
        shard = self._shards.pop(index, None)
        if shard is not None:
            for hosted in list(shard.hosted.values()):
                self._carry_out(hosted, hosted.group.unload())

    def shard_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` of a group; the topic must exist."""
        return shard_of(group_id, self._log.shard_count)

    # Requests of members

    def join(self, group_id: str, request: Join, respond: Callable[[JoinResult], None]) -> None:
        error = self._refusal(group_id)
        settings = self._settings
        if not error and not (
            settings.group_min_session_timeout_ms
            <= request.session_timeout_ms
            <= settings.group_max_session_timeout_ms
        ):
            error = ErrorCode.INVALID_SESSION_TIMEOUT
        hosted = self._hosted.get(group_id)
        if not error and hosted is None:
            if request.member_id:
                error = ErrorCode.UNKNOWN_MEMBER_ID
            else:
                hosted = self._host(self._shards[self.shard_of(group_id)], group_id)
        if error or hosted is None:
            respond(JoinResult(error=error, member_id=request.member_id))
        else:
            self._carry_out(hosted, hosted.group.join(request, respond, self._now()))

    def sync(self, group_id: str, request: Sync, respond: Callable[[SyncResult], None]) -> None:
        error = self._refusal(group_id)
        hosted = self._hosted.get(group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Clients take this to mean "join again", and the rebalance may well be lost.
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if not error and hosted is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error or hosted is None:
            respond(SyncResult(error=error))
        else:
            self._carry_out(hosted, hosted.group.sync(request, respond, self._now()))

    def heartbeat(
        self, group_id: str, generation_id: int, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        hosted = self._hosted.get(group_id)
        if hosted is not None:
            error = hosted.group.heartbeat(generation_id, member_id, group_instance_id, self._now())
            self._set_alarm(hosted)
            return error
        error = self._refusal(group_id)
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Sessions begin anew once the shard is loaded.
            return ErrorCode.NONE
        return error or ErrorCode.UNKNOWN_MEMBER_ID

    def leave(self, group_id: str, leaving: list[Leaving], respond: Callable[[LeaveResult], None]) -> None:
        error = self._refusal(group_id)
        hosted = self._hosted.get(group_id)
        if error:
            respond(LeaveResult(error=error))
        elif hosted is None:
            members = tuple((one, ErrorCode.UNKNOWN_MEMBER_ID) for one in leaving)
            respond(LeaveResult(error=ErrorCode.NONE, members=members))
        else:
            self._carry_out(hosted, hosted.group.leave(leaving, respond, self._now()))

    # Offsets

    def commit_offsets(
        self, group_id: str, request: Commit, respond: Callable[[PartitionErrors], None]
    ) -> None:
        """Partitions that do not exist are refused one by one; the rest shares its fate."""
        unknown = [partition for partition in request.offsets if not self._partition_exists(*partition)]
        if unknown:
            refused = dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            request = Commit(
                generation_id=request.generation_id,
                member_id=request.member_id,
                group_instance_id=request.group_instance_id,
                offsets={key: value for key, value in request.offsets.items() if key not in refused},
                producer=request.producer,
            )
            if not request.offsets:
                respond(refused)
                return
            inner = respond
            respond = lambda errors: inner(refused | errors)  # noqa: E731
        error = self._refusal(group_id, empty_id_allowed=True)
        hosted = self._hosted.get(group_id)
        if not error and hosted is None:
            if request.generation_id < 0:
                hosted = self._host(self._shards[self.shard_of(group_id)], group_id)
            elif request.producer is None:
                error = ErrorCode.ILLEGAL_GENERATION
            else:
                error = ErrorCode.UNKNOWN_MEMBER_ID
        if error or hosted is None:
            respond(dict.fromkeys(request.offsets, error))
        else:
            self._carry_out(hosted, hosted.group.commit_offsets(request, respond, self._now()))

    def complete_transaction(self, index: int, producer_id: int, committed: bool) -> None:
        """The marker of a transaction is committed in a shard: the offsets that it committed there show, or
        are gone.
        """
        shard = self._shards.get(index)
        if shard is None:
            return
        if shard.loading:
            shard.completed.append((producer_id, committed))
            return
        for hosted in shard.hosted.values():
            hosted.group.offsets.complete_transaction(producer_id, committed)

    def fetch_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None, *, require_stable: bool
    ) -> tuple[ErrorCode, FetchedOffsets]:
        """Committed offsets, of all partitions that have one when `partitions` is None.

        With `require_stable` a partition whose commit is under way is UNSTABLE_OFFSET_COMMIT (KIP-447).
        """
        error = self._refusal(group_id, empty_id_allowed=True)
        if error:
            return error, {}
        hosted = self._hosted.get(group_id)
        if hosted is None:
            return ErrorCode.NONE, {partition: (None, ErrorCode.NONE) for partition in partitions or ()}
        offsets = hosted.group.offsets
        fetched: FetchedOffsets = {}
        for partition in list(offsets.committed) if partitions is None else partitions:
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
    ) -> None:
        """Answers with one error for all when the group as a whole is the trouble."""
        error = self._refusal(group_id)
        hosted = self._hosted.get(group_id)
        if not error and hosted is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        if error or hosted is None:
            respond(error)
            return
        refused: PartitionErrors = {}
        known: list[TopicPartition] = []
        for partition in partitions:
            if self._partition_exists(*partition):
                known.append(partition)
            else:
                refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

        def merge(result: PartitionErrors | ErrorCode) -> None:
            respond(refused | result if isinstance(result, dict) else result)

        self._carry_out(hosted, hosted.group.delete_offsets(known, merge))

    def forget_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Their topic has been deleted: delete the offsets that any group has there."""
        gone = list(partitions)
        for hosted in list(self._hosted.values()):
            offsets = hosted.group.offsets
            if any(item in offsets.committed or offsets.is_unstable(item) for item in gone):
                self._carry_out(hosted, hosted.group.forget_partitions(gone))

    def _check_retention(self) -> None:
        self.start()
        now = self._now()
        for hosted in list(self._hosted.values()):
            self._carry_out(hosted, hosted.group.expire_offsets(now))

    # Administration

    def list_groups(self, states: set[str], types: set[str]) -> tuple[ErrorCode, list[GroupOverview]]:
        """Groups in any of these states and of any of these types, whatever their case; empty means all."""
        if self._closed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        loading = any(shard.loading for shard in self._shards.values())
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE
        if types and "classic" not in {name.lower() for name in types}:
            return error, []
        wanted = {name.lower() for name in states}
        return error, [
            hosted.group.overview()
            for hosted in self._hosted.values()
            if not wanted or hosted.group.state.lower() in wanted
        ]

    def describe_group(self, group_id: str) -> tuple[ErrorCode, GroupDescription | None]:
        """None when there is no such group."""
        error = self._refusal(group_id, empty_id_allowed=True)
        hosted = self._hosted.get(group_id)
        return error, None if hosted is None else hosted.group.describe()

    def delete_groups(
        self, group_ids: Iterable[str], respond: Callable[[dict[str, ErrorCode]], None]
    ) -> None:
        """Answers when each of the groups is deleted or has been refused."""
        waiting = dict.fromkeys(group_ids)
        errors: dict[str, ErrorCode] = {}

        def settle(group_id: str, error: ErrorCode) -> None:
            errors[group_id] = error
            if len(errors) == len(waiting):
                respond({group_id: errors[group_id] for group_id in waiting})

        if not waiting:
            respond({})
        for group_id in waiting:
            error = self._refusal(group_id, empty_id_allowed=True)
            hosted = self._hosted.get(group_id)
            if error or hosted is None:
                settle(group_id, error or ErrorCode.GROUP_ID_NOT_FOUND)
            else:
                self._carry_out(hosted, hosted.group.delete(partial(settle, group_id)))

    # Running the machines

    def _now(self) -> Now:
        return Now(self._scheduler.monotonic_ms(), self._now_ms())

    def _refusal(self, group_id: str, *, empty_id_allowed: bool = False) -> ErrorCode:
        """Why this broker does not speak for a group; NONE when it does."""
        if group_id in self._hosted and group_id:
            # A shard that is loading has no groups yet.
            return ErrorCode.NONE
        if not group_id and not empty_id_allowed:
            return ErrorCode.INVALID_GROUP_ID
        if self._closed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        shard_count = self._log.shard_count
        shard = self._shards.get(shard_of(group_id, shard_count)) if shard_count else None
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else ErrorCode.NONE

    def _host(self, shard: _Shard, group_id: str) -> _Hosted:
        group = Group(group_id, self._settings, self._new_member_id, self._now())
        hosted = self._hosted[group_id] = shard.hosted[group_id] = _Hosted(group, shard)
        return hosted

    def _carry_out(self, hosted: _Hosted, out: Output) -> None:
        group = hosted.group
        for note in out.notes:
            log.info("group %s: %s", group.group_id, note)
        for waiter, result in out.responses:
            cast("Callable[[Any], None]", waiter)(result)
        for write in out.writes:
            self._write(hosted, write)
        if group.state is GroupState.DEAD:
            self._drop(hosted)
        else:
            self._set_alarm(hosted)

    def _write(self, hosted: _Hosted, write: Write) -> None:
        shard = hosted.shard.index
        try:
            records = [encode_record(record) for record in write.records]
            end_offset = self._log.append(
                shard, records, write.producer, commits=isinstance(write.purpose, OffsetsStored)
            )
        except KafkaError as error:
            self._written(hosted, write.purpose, -1, error.code)
        except ValueError as error:
            log.warning("group %s: a record cannot be written: %s", hosted.group.group_id, error)
            self._written(hosted, write.purpose, -1, ErrorCode.UNKNOWN_SERVER_ERROR)
        else:
            self._await_commit(shard, end_offset, partial(self._written, hosted, write.purpose, end_offset))

    def _await_commit(self, shard: int, end_offset: int, done: Callable[[ErrorCode], None]) -> None:
        """Call `done` once the records are committed, or after offsets.commit.timeout.ms: they may then be
        committed later, which the client, who must try again, is not told.
        """
        timer: TimerHandle | None = None
        is_done = False

        def end(error: ErrorCode) -> None:
            nonlocal is_done
            if not is_done:
                is_done = True
                if timer is not None:
                    timer.cancel()
                done(error)

        self._log.when_committed(shard, end_offset, end)
        if not is_done:
            timeout_ms = self._settings.offsets_commit_timeout_ms
            timer = self._scheduler.call_later(timeout_ms, lambda: end(ErrorCode.REQUEST_TIMED_OUT))

    def _written(self, hosted: _Hosted, purpose: Purpose, end_offset: int, error: ErrorCode) -> None:
        self._carry_out(hosted, hosted.group.written(purpose, error, end_offset, self._now()))

    def _drop(self, hosted: _Hosted) -> None:
        if hosted.wake_up is not None:
            hosted.wake_up.cancel()
        group_id = hosted.group.group_id
        if self._hosted.get(group_id) is hosted:
            del self._hosted[group_id]
        if hosted.shard.hosted.get(group_id) is hosted:
            del hosted.shard.hosted[group_id]

    def _set_alarm(self, hosted: _Hosted) -> None:
        wake_at_ms = hosted.group.timers.wake_at_ms
        if wake_at_ms is None or (hosted.wake_at_ms is not None and hosted.wake_at_ms <= wake_at_ms):
            return
        if hosted.wake_up is not None:
            hosted.wake_up.cancel()
        hosted.wake_at_ms = wake_at_ms
        delay_ms = max(wake_at_ms - self._scheduler.monotonic_ms(), 0)
        hosted.wake_up = self._scheduler.call_later(delay_ms, partial(self._wake, hosted))

    def _wake(self, hosted: _Hosted) -> None:
        hosted.wake_at_ms = hosted.wake_up = None
        self._carry_out(hosted, hosted.group.tick(self._now()))
