"""Moves of logs between the log directories of one broker (KIP-113).

The records of a log are first copied to a partition directory named NAME.…-future, while clients write to the
log. The copy replaces the log in these steps, each durable before the next:
1. `place`: the worker of the new directory gives the partition directory of the copy its final name. After
   this step, the log has two partition directories. If a crash leaves both, startup keeps the longer one (the
   log itself) and sets the other aside.
2. `finish`: the copy, with the same records as the log, replaces it on the event loop, between two requests.
3. The worker of the new directory makes the copy and its checkpoints durable; only then does the worker of
   the old directory rename the old partition directory and drop the old log. A crash before that leaves two
   partition directories with the same records up to the move; the longer one also contains later records.
   Startup reads log starts from both (`LogDirs.load`). Truncations of the new log wait until the old log
   cannot reappear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.storage.directories import directory_names
from kafka_compat.storage.directories.directory_names import DELETE_SUFFIX
from kafka_compat.storage.errors import RefusedForNow

if TYPE_CHECKING:
    from kafka_compat.storage.config import LogConfig
    from kafka_compat.storage.directories.checkpoints import TopicPartition
    from kafka_compat.storage.directories.directory_worker import Done
    from kafka_compat.storage.directories.log_directory import LogDirectory
    from kafka_compat.storage.log.log import Log
    from kafka_compat.storage.log.truncations import Truncation


class _Switch(NamedTuple):
    """A finished move whose old partition directory is not removed yet."""

    key: TopicPartition
    log: Log
    source: LogDirectory
    future: Log
    target: LogDirectory
    truncations: list[Truncation]
    """Truncations of the new log, which wait until the old log cannot reappear."""
    due_ms: int
    """The time, on the monotonic clock, at which the old partition directory may be deleted."""


class LogMoves:
    """The copies of logs that one broker is moving. `logs` contains the logs in use, from all directories."""

    def __init__(
        self,
        directories: Mapping[str, LogDirectory],
        logs: MutableMapping[TopicPartition, Log],
        config_for: Callable[[str], LogConfig],
        monotonic_ms: Callable[[], int],
    ) -> None:
        self.futures: dict[TopicPartition, Log] = {}
        """The copies that will replace logs."""
        self._directories = directories
        self._logs = logs
        self._config_for = config_for
        self._monotonic_ms = monotonic_ms
        self._placed: set[TopicPartition] = set()
        self._unsecured: list[_Switch] = []

    def resume(self, key: TopicPartition, future: Log) -> None:
        """Register a copy found at startup."""
        self._directories[future.disk.path].follow_truncations(future)
        self.futures[key] = future

    def begin(self, key: TopicPartition, directory: str) -> Log:
        """Create an empty copy in `directory`, and drop any earlier copy. The caller then copies the records
        of the log. Raises LogDirFailure or RefusedForNow.
        """
        self.cancel(key)
        target = self._directories[directory]
        path = f"{directory}/{directory_names.unique_name(key, directory_names.FUTURE_SUFFIX)}"
        future = target.create_at(key, path, self._logs[key].topic_id, self._config_for(key[0]))
        target.follow_truncations(future)
        self.futures[key] = future
        return future

    def cancel(self, key: TopicPartition) -> None:
        """Drop the copy of a log, if there is one."""
        future = self.futures.pop(key, None)
        self._placed.discard(key)
        if future is not None and future.disk.failure is None:
            self._directories[future.disk.path].remove(future, DELETE_SUFFIX, self._monotonic_ms())

    def is_placed(self, key: TopicPartition) -> bool:
        """Whether the partition directory of the copy has its final name."""
        return key in self._placed

    def place(self, key: TopicPartition, done: Done) -> None:
        """Give the partition directory of the copy its final name, and replace the copy in `futures` with a
        new Log object. Nearly all of the copy must already be durable. `done` is called with the error, or
        with None if the operation succeeded or the move was canceled.
        """
        future = self.futures[key]
        target = self._directories[future.disk.path]
        path = f"{target.path}/{directory_names.directory_name(key)}"
        topic_id = self._logs[key].topic_id
        placed: list[Log] = []

        def free(error: Exception | None) -> None:
            if error is not None:
                done(error)
            else:
                target.worker.submit(work, after)

        def work() -> None:
            if self.futures.get(key) is not future:
                return  # The move was canceled, and the directory may already have been renamed.
            if future.topic_id is None and topic_id is not None:
                # The broker was killed before it wrote the topic ID to the new partition directory.
                future.assign_topic_id(topic_id)
                future.flush()
            placed.append(target.rename_copy(key, future, path, self._config_for(key[0])))

        def after(error: Exception | None) -> None:
            if error is None and self.futures.get(key) is future:
                target.follow_truncations(placed[0])
                self.futures[key] = placed[0]
                self._placed.add(key)
            elif placed:
                target.remove(placed[0], DELETE_SUFFIX, self._monotonic_ms())
            done(error)

        target.when_free(key, free)

    def finish(self, key: TopicPartition) -> Log:
        """Replace the log with its copy, and return the copy, which must be complete and `is_placed`."""
        log, future = self._logs[key], self.futures.pop(key)
        assert key in self._placed
        assert future.log_end_offset == log.log_end_offset
        self._placed.discard(key)
        future.producers = log.producers
        future.adopt_leader_epochs(log.leader_epochs)
        future.advance_log_start_offset(log.log_start_offset)
        source, target = self._directories[log.disk.path], self._directories[future.disk.path]
        target.adopt(key, future)
        self._logs[key] = future
        # Only abandon the log: its checkpoint entries stay until its partition directory is removed.
        log.abandon()
        switch = _Switch(key, log, source, future, target, [], log.file_deletion_ms())
        future.truncations.follow(partial(_remember, switch.truncations))
        self._secure(switch)
        return future

    def _secure(self, switch: _Switch) -> None:
        switch.target.make_durable(switch.future, partial(self._secured, switch))

    def _secured(self, switch: _Switch, error: Exception | None) -> None:
        source = switch.source
        if isinstance(error, RefusedForNow):
            self._unsecured.append(switch)
        elif source.online and source.logs.get(switch.key) is switch.log:
            source.release(switch.key)
            source.remove(switch.log, DELETE_SUFFIX, switch.due_ms, partial(_finished, switch))
        else:
            _finished(switch, None)

    def tick(self) -> None:
        """Retry making finished moves durable if a temporary error prevented it."""
        again, self._unsecured = self._unsecured, []
        for switch in again:
            self._secure(switch)

    def forget(self, directory: LogDirectory) -> None:
        """Drop the copies of logs that were moving to or from a failed directory."""
        for key, future in list(self.futures.items()):
            if future.disk is directory.disk or key not in self._logs:
                del self.futures[key]
                self._placed.discard(key)


def _remember(truncations: list[Truncation], future: Log, truncation: Truncation) -> None:
    truncations.append(truncation)


def _finished(switch: _Switch, error: Exception | None) -> None:
    switch.target.follow_truncations(switch.future)
    for truncation in switch.truncations:
        switch.future.truncations.take(switch.future, truncation)
