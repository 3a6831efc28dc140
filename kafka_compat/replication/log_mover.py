"""Move logs between the log directories of one broker (KIP-113) while they are read and written.

A log is copied batch by batch to a second log, including batches that are appended during the move. Once the
copy is complete and durable, it replaces the log between two requests. `storage.directories.log_moves`
explains why a crash at any step loses no data. After a truncation of the log, the copy starts from scratch.
After a restart of the broker, unfinished moves are continued.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.replication.disk_work import finished
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.log.log import Log
from kafka_compat.tasks import Background, Tasks

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig
    from kafka_compat.replication.partition import Partition
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.storage.directories.log_dirs import LogDirs

log = logging.getLogger(__name__)

CHUNK_BYTES = 256 * 1024
"""Size of a copied chunk. An append of this size blocks the event loop for well below a millisecond."""
LAST_BYTES_MAX = 4 * CHUNK_BYTES
"""Maximum number of bytes that the last step copies and makes durable while requests wait."""
RETRY_S = 1.0

Key = tuple[str, int]


class LogMover:
    """The moves of one broker, with one task for each move. If a task is canceled, its copy is kept."""

    def __init__(
        self, log_dirs: LogDirs, replicas: ReplicaManager, config: BrokerConfig, tasks: Tasks
    ) -> None:
        self._log_dirs = log_dirs
        self._replicas = replicas
        self._config = config
        self._tasks = tasks
        self._moves: dict[Key, Background] = {}

    def resume(self) -> None:
        """Continue the moves whose copies were found at startup."""
        for key in list(self._log_dirs.futures):
            if key in self._log_dirs.logs:
                self._run(key)

    def move(self, topic: str, partition: int, directory: str) -> None:
        """Start moving a log to `directory`. Raises KafkaError or StorageError if this is impossible.

        If the log does not exist yet, it will be created in `directory`, and REPLICA_NOT_AVAILABLE is raised.
        """
        key = (topic, partition)
        if directory not in self._log_dirs.directories:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND)
        if directory in self._log_dirs.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        held = self._replicas.get(topic, partition)
        if held is None:
            reason = self._replicas.missing(topic, partition)
            if reason == ErrorCode.KAFKA_STORAGE_ERROR:
                raise KafkaError(reason)
            self._log_dirs.prefer(topic, partition, directory)
            is_known = reason == ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE if is_known else reason)
        future = self._log_dirs.futures.get(key)
        if held.log.disk.path == directory:
            self._cancel(key)
        elif future is None or future.disk.path != directory:
            self._cancel(key)
            self._log_dirs.moves.begin(key, directory)
            self._run(key)

    def _cancel(self, key: Key) -> None:
        move = self._moves.pop(key, None)
        if move is not None:
            move.cancel()
        self._log_dirs.moves.cancel(key)

    def _run(self, key: Key) -> None:
        # After an unexpected failure, the task is restarted and continues at the end of the copy.
        self._moves[key] = self._tasks.spawn(
            f"moving {key[0]}-{key[1]}", partial(self._move_until_done, key), restarts=True
        )

    async def _move_until_done(self, key: Key) -> None:
        await self._move(key)
        self._moves.pop(key, None)

    async def _move(self, key: Key) -> None:
        moves = self._log_dirs.moves
        future = moves.futures.get(key)
        if future is None:
            return
        truncations: int | None = None
        while moves.futures.get(key) is future:
            held = self._replicas.get(*key)
            try:
                if held is None or held.log.is_settling:
                    # Retry later: the disk failed, the leader is changing, or the log is being truncated.
                    await asyncio.sleep(RETRY_S)
                    continue
                if truncations is None and future.log_end_offset <= held.log.log_end_offset:
                    truncations = held.log.truncation_count
                if held.log.truncation_count != truncations or _is_overtaken(future, held.log):
                    truncations = held.log.truncation_count
                    # Start at the batch that contains the log start offset: batches are copied as a whole.
                    future.truncate_fully_and_start_at(
                        held.log.segments.batch_start(held.log.log_start_offset)
                    )
                await _await_truncations(future)
                if not await self._copy(held, future):
                    continue
                if moves.is_placed(key):
                    if held.log.truncation_count == truncations and self._finish(held, future):
                        return
                elif moves.futures.get(key) is future:
                    refusal = await finished(partial(moves.place, key))
                    if refusal is not None:
                        raise refusal
                    future = moves.futures.get(key, future)
            except StorageError as error:
                if future.disk.failure is not None:
                    log.error("Stopped moving %s-%d: %s", *key, error)
                    return
                log.warning("Could not move %s-%d: %s; retrying", *key, error)
                await asyncio.sleep(RETRY_S)
                if future.closed and moves.futures.get(key) is future:
                    # Start a new copy, because the last step of the move failed and closed the copy.
                    future, truncations = moves.begin(key, future.disk.path), None

    async def _copy(self, held: Partition, future: Log) -> bool:
        """Copy one chunk, and return whether all but a small remainder of the log is copied durably."""
        source = held.log
        if _is_overtaken(future, source):
            return False
        found = source.read(future.log_end_offset, CHUNK_BYTES)
        if found is not None:
            # Import the module here, because few brokers ever move a log.
            import aiofiles.os

            data: bytes = await aiofiles.os.wrap(found.read)()
            if held.log is source and not source.closed and not future.closed:
                future.append_as_follower(memoryview(data))
            await self._throttle(len(data))
            return False
        refusal = await finished(partial(future.disk.worker.submit, future.flush))
        if refusal is not None:
            raise refusal
        if held.log is not source or source.closed or _is_overtaken(future, source):
            return False
        rest = source.read(future.log_end_offset, LAST_BYTES_MAX)
        return rest is None or rest.size_bytes < LAST_BYTES_MAX // 2

    async def _throttle(self, size_bytes: int) -> None:
        waited_s = 0.0
        while True:
            # Read the setting each time, because it may change during the move.
            rate = self._config.int("replica.alter.log.dirs.io.max.bytes.per.second")
            rest_s = (size_bytes / rate if rate > 0 else RETRY_S) - waited_s
            await asyncio.sleep(min(max(rest_s, 0.0), RETRY_S))
            if rest_s <= RETRY_S:
                return
            waited_s += RETRY_S

    def _finish(self, held: Partition, future: Log) -> bool:
        """Copy the remainder and replace the log, without yielding. Return False during a truncation."""
        if held.log.is_settling:
            return False
        while (found := held.log.read(future.log_end_offset, CHUNK_BYTES)) is not None:
            future.append_as_follower(memoryview(found.read()))
        held.replace_log(self._log_dirs.moves.finish((held.topic, held.partition)))
        log.info("Moved %s-%d to %s", held.topic, held.partition, held.log.directory)
        return True


def _is_overtaken(future: Log, log: Log) -> bool:
    """Return whether records were deleted before they were copied, so that the copy must restart."""
    return future.log_end_offset < log.log_start_offset


async def _await_truncations(future: Log) -> None:
    if future.is_settling:
        await finished(lambda done: future.truncations.when_none(lambda: done(None)))
