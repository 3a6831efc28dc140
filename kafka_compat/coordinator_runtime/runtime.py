"""Runtime of coordinators: loads and persists the state machines of groups and transactions, and runs their
timers.

Rules
1. A shard is a partition of the topic that this broker leads. It is loading, then active, or failed if its
   log cannot be read. A machine belongs to the shard to which its key hashes.
2. An event of a machine yields at most one batch of records. A batch that cannot be appended is not replayed.
3. A record is replayed when it is appended, or when its shard is loaded. Only a machine's `replay` changes
   its logged state. The current state of a machine therefore always equals the state loaded from the whole
   log, and its committed state (`timeline.py`) the state loaded from the committed part. The next event sees
   the current state; lists and descriptions show the committed state.
4. When a batch is committed, the machine's `written` is called and responds. It is called exactly once, even
   if the append is rejected, if leadership is lost (NOT_LEADER_OR_FOLLOWER), or after `commit_timeout_ms`
   (REQUEST_TIMED_OUT). After a timeout, the records stay in the log and may still be committed.
5. A response that shows the current state (`Output.responses_when_committed`) waits until all earlier batches
   of its machine are committed.
6. Records of a transaction are replayed with their producer ID and stay pending in the machine until
   `replay_end_marker`, which is called when the marker is appended. A marker that is appended during loading
   is replayed after the log.
7. Loading skips superseded records (`loader.py`) and yields every few milliseconds. A machine runs once all
   of its records are replayed and `loaded` has been called, even while other machines are still loading. A
   machine without state is removed.
8. When a machine is unloaded, its pending writes fail. It responds to its other requests and is removed.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Generic, TypeVar

from kafka_compat.coordinator_runtime.coordinator_log import NO_PRODUCER_ID, CoordinatorLog, is_committed
from kafka_compat.coordinator_runtime.loader import Loader, RecordLoader
from kafka_compat.coordinator_runtime.machine import (
    KeyedRecord,
    Machine,
    Now,
    Output,
    ResponseWhenCommitted,
    Write,
)
from kafka_compat.coordinator_runtime.partitioning import shard_of
from kafka_compat.coordinator_runtime.scheduler import Scheduler, run_cooperatively
from kafka_compat.coordinator_runtime.shard import Append, RunningMachine, Shard, ShardState
from kafka_compat.coordinator_runtime.timeline import SnapshotRegistry
from kafka_compat.coordinator_runtime.timers import Timers
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.codec import MalformedRequest

log = logging.getLogger(__name__)

_LOAD_TIMES_KEPT: Final = 100

M = TypeVar("M", bound=Machine[Any])
R = TypeVar("R", bound=KeyedRecord)


class CoordinatorRuntime(Generic[M, R]):
    """The runtime of one kind of coordinator. `running` maps keys to active machines."""

    def __init__(
        self,
        *,
        topic: str,
        noun: str,
        coordinator_log: CoordinatorLog,
        scheduler: Scheduler,
        now_ms: Callable[[], int],
        new_machine: Callable[[str, SnapshotRegistry], M],
        encode: Callable[[R], tuple[bytes, bytes | None]],
        decode: Callable[[bytes, bytes], R | None],
        perform: Callable[[RunningMachine[M], Any], None],
        commit_timeout_ms: int | None = None,
        new_loader: Callable[[], RecordLoader] = Loader,
    ) -> None:
        """`topic` and `noun` (for example "group") are used in log lines. `now_ms` returns the time of day.

        `encode` raises ValueError for a value that does not fit into a record. `decode` raises
        MalformedRequest for an invalid record, and returns None for other types of records. `perform` carries
        out the effects of an Output. `new_loader` returns a loader, which knows which records are superseded.
        """
        self.running: dict[str, RunningMachine[M]] = {}
        self.timers = Timers(scheduler)
        self._topic = topic
        self._noun = noun
        self._log = coordinator_log
        self._scheduler = scheduler
        self._now_ms = now_ms
        self._new_machine = new_machine
        self._encode = encode
        self._decode = decode
        self._perform = perform
        self._commit_timeout_ms = commit_timeout_ms
        self._new_loader = new_loader
        self._shards: dict[int, Shard[M]] = {}
        self.is_closed = False
        self.load_times_ms: deque[int] = deque(maxlen=_LOAD_TIMES_KEPT)
        """Load times in ms of the most recently loaded shards."""

    def close(self) -> None:
        """Stop all timers and respond to pending requests. Later requests get COORDINATOR_NOT_AVAILABLE."""
        self.is_closed = True
        for index in list(self._shards):
            self.unload(index)
        self.timers.close()

    def every(self, interval_ms: int, callback: Callable[[], None]) -> None:
        """Call `callback` periodically until the runtime is closed."""

        def call() -> None:
            self.timers.call_later(interval_ms, call)
            callback()

        self.timers.call_later(interval_ms, call)

    def run_cooperatively(self, work: Iterator[int]) -> None:
        """Execute long-running work between requests until it ends or the runtime is closed."""
        is_done = False

        def to_its_end() -> Iterator[int]:
            nonlocal is_done
            yield from work
            is_done = True

        def on_error(error: Exception) -> None:
            log.error("A background task for topic %s failed: %s", self._topic, error, exc_info=error)

        run_cooperatively(self._scheduler, to_its_end(), lambda: not (is_done or self.is_closed), on_error)

    def load(self, index: int, leader_epoch: int = 0, *, delay: bool = False) -> None:
        """Load a shard of which this broker became leader. With `delay`, start after this method returns."""
        self.unload(index)
        shard = self._shards[index] = Shard(index, leader_epoch)
        work = self._loading(shard)

        def is_wanted() -> bool:
            return shard.state is ShardState.LOADING and self._shards.get(index) is shard

        def on_error(error: Exception) -> None:
            expected = isinstance(error, KafkaError)
            log.error(
                "Could not load %s-%d: %s. Its groups or transactions are unavailable; make another replica "
                "the leader",
                self._topic,
                index,
                error,
                exc_info=None if expected else error,
            )
            self._give_up(shard)

        step = partial(run_cooperatively, self._scheduler, work, is_wanted, on_error)
        if delay:
            self._scheduler.call_later(0, step)
        else:
            step()

    def _loading(self, shard: Shard[M]) -> Iterator[int]:
        """Load a shard in small steps. Each step yields its size (see `run_cooperatively`)."""
        began_ms = self._now_ms()
        loader = self._new_loader()
        for batch in self._log.replay(shard.index):
            loader.feed(batch)
            yield 1 + len(batch.records) // 4
        for key, value, log_offset, producer_id in loader.records():
            try:
                record = self._decode(key, value)
            except MalformedRequest as error:
                log.warning(
                    "Skipped an invalid record in %s-%d before offset %d: %s",
                    self._topic,
                    shard.index,
                    log_offset,
                    error,
                )
                continue
            if record is not None:
                self._replay(shard, record, log_offset, producer_id)
            yield 2 + len(value) // 200
        shard.finish_replay()
        for running in list(shard.machines.values()):
            self._run(running)
            yield 20
        shard.state = ShardState.ACTIVE
        self.load_times_ms.append(max(self._now_ms() - began_ms, 0))
        if loader.record_count:
            log.info(
                "Loaded %s-%d (%ss: %d, records: %d)",
                self._topic,
                shard.index,
                self._noun,
                len(shard.machines),
                loader.record_count,
            )

    def _run(self, running: RunningMachine[M]) -> None:
        self.running[running.key] = running
        self.carry_out(running, running.machine.loaded(self.now()))

    def unload(self, index: int) -> None:
        """Unload a shard that this broker no longer leads."""
        shard = self._shards.pop(index, None)
        if shard is not None:
            self._give_up(shard)

    def _give_up(self, shard: Shard[M]) -> None:
        shard.state = ShardState.FAILED
        appends = list(shard.appends)
        shard.appends.clear()
        if shard.appends_alarm is not None:
            shard.appends_alarm.cancel()
        for append in appends:
            self._report(append, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        for running in list(shard.machines.values()):
            if self.running.get(running.key) is running:
                self.carry_out(running, running.machine.unload())
            self._drop(running)

    @property
    def loading_count(self) -> int:
        """Number of shards that are still being loaded."""
        return sum(shard.state is ShardState.LOADING for shard in self._shards.values())

    @property
    def is_loading(self) -> bool:
        """Whether any shard is still being loaded."""
        return any(shard.state is ShardState.LOADING for shard in self._shards.values())

    def active_shards(self) -> list[Shard[M]]:
        """Return the shards that are completely loaded."""
        return [shard for shard in self._shards.values() if shard.state is ShardState.ACTIVE]

    def shard_of(self, key: str) -> int:
        """Return the partition of the topic to which a key belongs. The topic must exist."""
        return shard_of(key, self._log.shard_count)

    def refusal(self, key: str) -> ErrorCode:
        """Return the error code for a key not in `running`, or NONE if this broker is its coordinator."""
        if self.is_closed:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        shard_count = self._log.shard_count
        shard = self._shards.get(shard_of(key, shard_count)) if shard_count else None
        if shard is None or shard.state is ShardState.FAILED:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.state is ShardState.LOADING else ErrorCode.NONE

    def host(self, key: str) -> RunningMachine[M]:
        """Activate a new machine for a key whose `refusal` is NONE."""
        shard = self._shards[self.shard_of(key)]
        running = self.running[key] = shard.add(key, self._new_machine(key, shard.snapshots))
        return running

    def is_running(self, running: RunningMachine[M]) -> bool:
        """Return whether this broker still leads the machine's shard."""
        return running.shard.state is not ShardState.FAILED

    def now(self) -> Now:
        return Now(self._scheduler.monotonic_ms(), self._now_ms())

    def carry_out(self, running: RunningMachine[M], out: Output) -> None:
        """Carry out an Output: respond, append, and set the machine's timer."""
        for note in out.notes:
            log.info("%s%s %s: %s", self._noun[0].upper(), self._noun[1:], running.key, note)
        out.respond()
        if out.write is not None:
            self._append(running, out.write, out.responses_when_committed)
        elif out.responses_when_committed:
            self._respond_when_committed(running, out.responses_when_committed)
        for effect in out.effects:
            self._perform(running, effect)
        machine = running.machine
        if machine.is_dead:
            self._drop(running)
        elif machine.wake_at_ms is not None:
            self.set_alarm(running)

    def _append(
        self, running: RunningMachine[M], write: Write, responses: list[ResponseWhenCommitted]
    ) -> None:
        shard = running.shard
        if shard.state is ShardState.FAILED:
            self._refused(running, write, responses, ErrorCode.NOT_COORDINATOR)
            return
        end_offset, error = self._append_batch(running, write)
        if error:
            self._refused(running, write, responses, error)
        else:
            self._await_commit(Append(shard, running, write, responses, end_offset))

    def _append_batch(self, running: RunningMachine[M], write: Write) -> tuple[int, ErrorCode]:
        """Append and replay the batch of a write. Return the offset after it, and an error code."""
        shard = running.shard
        try:
            encoded = write.encoded or list(map(self._encode, write.records))
            end_offset = self._log.append(shard.index, encoded, write.producer, commits=write.commits)
        except KafkaError as refusal:
            return 0, refusal.code
        except ValueError as problem:
            log.warning("Could not write a record for %s %s: %s", self._noun, running.key, problem)
            return 0, ErrorCode.UNKNOWN_SERVER_ERROR
        producer_id = NO_PRODUCER_ID
        if write.producer is not None:
            producer_id = write.producer.producer_id
            shard.note_transaction(running, producer_id)
        shard.snapshots.begin(end_offset)
        for record in write.records:
            running.machine.replay(record, end_offset, producer_id)
        shard.snapshots.end()
        return end_offset, ErrorCode.NONE

    def _await_commit(self, append: Append[M]) -> None:
        shard, running = append.shard, append.running
        shard.appends.append(append)
        if running is not None:
            running.last_append = append
            if append.write is not None and append.write.then is not None:
                self.carry_out(running, append.write.then())
        self._log.when_committed(shard.index, append.end_offset, partial(self._committed, append))
        if shard.appends and running is not None and self._commit_timeout_ms is not None:
            append.deadline_ms = self._scheduler.monotonic_ms() + self._commit_timeout_ms
            self._set_appends_alarm(shard, append.deadline_ms)

    def _refused(
        self,
        running: RunningMachine[M],
        write: Write,
        responses: list[ResponseWhenCommitted],
        error: ErrorCode,
    ) -> None:
        for response in responses:
            response.fail(error)
        self.carry_out(running, running.machine.written(write.purpose, error, self.now()))

    def _respond_when_committed(
        self, running: RunningMachine[M], responses: list[ResponseWhenCommitted]
    ) -> None:
        append = running.last_append
        if append is not None and not append.is_reported:
            append.responses += responses
            return
        for response in responses:
            if append is None:
                response.send()
            else:
                response.fail(ErrorCode.REQUEST_TIMED_OUT)

    def _committed(self, append: Append[M], error: ErrorCode) -> None:
        """Complete an append that is committed or has failed. The log calls this method in log order."""
        shard = append.shard
        appends = shard.appends
        if error and not is_committed(error):
            if append in appends:
                appends.remove(append)
                self._report(append, error)
            return
        while appends and appends[0].end_offset <= append.end_offset:
            first = appends.popleft()
            shard.snapshots.commit(first.end_offset)
            if first.running is not None and first.running.last_append is first:
                first.running.last_append = None
            self._report(first, error)

    def _replay(self, shard: Shard[M], record: R, log_offset: int, producer_id: int) -> None:
        """Replay a record of the log that is being loaded."""
        key = record.machine_key
        running = shard.machines.get(key)
        if running is None:
            if record.value is None:
                return
            running = shard.add(key, self._new_machine(key, shard.snapshots))
        if producer_id != NO_PRODUCER_ID:
            shard.note_transaction(running, producer_id)
        running.machine.replay(record, log_offset, producer_id)

    def _report(self, append: Append[M], error: ErrorCode) -> None:
        """Send the responses that wait for an append, once."""
        if append.is_reported:
            return
        append.is_reported = True
        running = append.running
        if running is None or append.write is None:
            return
        for response in append.responses:
            if error and not is_committed(error):
                response.fail(error)
            else:
                response.send()
        self.carry_out(running, running.machine.written(append.write.purpose, error, self.now()))

    def end_transaction(self, index: int, producer_id: int, committed: bool, end_offset: int) -> None:
        """Replay the marker of a transaction, which was appended to a shard before `end_offset`."""
        shard = self._shards.get(index)
        if shard is None or shard.state is ShardState.FAILED:
            return
        shard.snapshots.begin(end_offset)
        shard.replay_end_marker(producer_id, committed)
        shard.snapshots.end()
        self._await_commit(Append(shard, None, None, [], end_offset))

    def _drop(self, running: RunningMachine[M]) -> None:
        if running.alarm is not None:
            running.alarm.cancel()
            running.alarm = None
        for machines in (self.running, running.shard.machines):
            if machines.get(running.key) is running:
                del machines[running.key]

    def set_alarm(self, running: RunningMachine[M]) -> None:
        """Set the timer for the machine's next deadline."""
        wake_at_ms = running.machine.wake_at_ms
        if wake_at_ms is None:
            return
        alarm = running.alarm
        if alarm is not None:
            if alarm.at_ms <= wake_at_ms:
                return
            alarm.cancel()
        running.alarm = self.timers.call_at(wake_at_ms, partial(self._wake, running))

    def _wake(self, running: RunningMachine[M]) -> None:
        running.alarm = None
        self.carry_out(running, running.machine.tick(self.now()))

    def _set_appends_alarm(self, shard: Shard[M], at_ms: int) -> None:
        """Set the timer for the oldest append, unless it is already set. Appends are queued in time order."""
        if shard.appends_alarm is None:
            shard.appends_alarm = self.timers.call_at(at_ms, partial(self._report_timeouts, shard))

    def _report_timeouts(self, shard: Shard[M]) -> None:
        """Report REQUEST_TIMED_OUT for appends that were not committed within `commit_timeout_ms`."""
        shard.appends_alarm = None
        now_ms = self._scheduler.monotonic_ms()
        for append in list(shard.appends):
            if append.deadline_ms <= now_ms:
                self._report(append, ErrorCode.REQUEST_TIMED_OUT)
        waiting = next((append for append in shard.appends if not append.is_reported), None)
        if waiting is not None:
            self._set_appends_alarm(shard, waiting.deadline_ms)
