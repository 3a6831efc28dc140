"""Offset checkpoints of one log directory, read at startup and then written by its worker."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kafka_compat.storage.directories import checkpoints
from kafka_compat.storage.errors import CorruptFile

if TYPE_CHECKING:
    from kafka_compat.storage.directories.checkpoints import TopicPartition
    from kafka_compat.storage.directories.disk import Disk
    from kafka_compat.storage.filesystem import Filesystem
    from kafka_compat.storage.log.log import Log

logger = logging.getLogger(__name__)


class OffsetCheckpoints:
    """The offset checkpoints of one directory. Only its worker writes them, with entries for the current logs
    of the directory. `names` may be called from any thread. Methods that write raise LogDirFailure or
    RefusedForNow if the write fails.
    """

    def __init__(
        self,
        filesystem: Filesystem,
        disk: Disk,
        logs: Mapping[TopicPartition, Log],
        clean_offsets: Mapping[TopicPartition, int],
    ) -> None:
        """`logs` contains the logs of this directory. `clean_offsets` covers all directories."""
        self._filesystem = filesystem
        self._disk = disk
        self._logs = logs
        self._clean_offsets = clean_offsets
        self._stored: dict[str, dict[TopicPartition, int]] = {}
        self.leaving: set[TopicPartition] = set()
        """Removed logs whose directories may reappear after a crash. `forget` removes their entries later."""
        self._moved_high_watermarks: dict[TopicPartition, int] = {}
        """High watermarks that are not written yet."""
        self._high_watermark_lines: dict[TopicPartition, bytes] | None = None
        """Cache of the encoded high watermarks, because few of them change between two writes."""

    def read(self, name: str) -> dict[TopicPartition, int]:
        """Return the offsets in the checkpoint `name`, or an empty dict if it is missing or malformed."""
        path = f"{self._disk.path}/{name}"
        try:
            offsets = checkpoints.decode_offsets(self._filesystem.read_file(path))
        except FileNotFoundError:
            return {}
        except CorruptFile as error:
            logger.error("Ignored the malformed checkpoint %s, which will be rewritten: %s", path, error)
            return {}
        self._stored[name] = offsets
        return dict(offsets)

    def write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        """Replace the checkpoint `name` durably if its offsets differ. Do not modify `offsets` afterwards."""
        self._disk.check()
        if self._stored.get(name) == offsets:
            return
        self._replace(name, checkpoints.encode_offsets(offsets))
        self._stored[name] = offsets
        if name == checkpoints.HIGH_WATERMARKS:
            self._high_watermark_lines = None

    def _replace(self, name: str, content: bytes) -> None:
        try:
            self._filesystem.write_file_atomically(f"{self._disk.path}/{name}", content)
        except OSError as error:
            raise self._disk.refuse(error, f"checkpoint {name}") from error

    def write_recovery_points(self) -> None:
        """Write the recovery point of each log, the offset up to which the log is durable."""
        self._disk.recovery_points_moved = False
        self.write(
            checkpoints.RECOVERY_POINTS,
            self._with_leaving(
                checkpoints.RECOVERY_POINTS,
                {key: log.flushed_end_offset for key, log in list(self._logs.items())},
            ),
        )

    def write_log_start_offsets(self) -> None:
        """Write the start offset of each log.

        Kafka omits a log start that equals the base offset of the oldest segment. This broker writes it as
        well, because deleted segments may reappear after a crash.
        """
        self._disk.log_starts_moved = False
        starts = {key: log.log_start_offset for key, log in list(self._logs.items())}
        self.write(
            checkpoints.LOG_START_OFFSETS,
            self._with_leaving(
                checkpoints.LOG_START_OFFSETS, {key: offset for key, offset in starts.items() if offset > 0}
            ),
        )

    def write_clean_offsets(self) -> None:
        """Write the clean offset of each log, the offset up to which the log has been compacted."""
        clean_offsets = dict(self._clean_offsets)
        self.write(
            checkpoints.CLEANER_OFFSETS,
            self._with_leaving(
                checkpoints.CLEANER_OFFSETS,
                {key: clean_offsets[key] for key in list(self._logs) if key in clean_offsets},
            ),
        )

    def update_high_watermarks(self, moved: Mapping[TopicPartition, int]) -> None:
        """Write the changed high watermarks, `moved`, to the checkpoint."""
        logs = self._logs
        waiting = self._moved_high_watermarks
        waiting.update((key, offset) for key, offset in moved.items() if key in logs)
        if not waiting:
            return
        self._disk.check()
        name = checkpoints.HIGH_WATERMARKS
        if self._high_watermark_lines is None:
            stored = self._stored[name] = dict(self._stored.get(name, {}))
            self._high_watermark_lines = {
                key: checkpoints.encode_line(key, offset) for key, offset in stored.items()
            }
        lines = self._high_watermark_lines
        lines.update((key, checkpoints.encode_line(key, offset)) for key, offset in waiting.items())
        self._replace(name, checkpoints.join_lines(lines.values()))
        self._stored[name].update(waiting)
        waiting.clear()

    def write_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Replace the checkpoint of the high watermarks. Partitions without a log in `logs` are omitted."""
        self.write(
            checkpoints.HIGH_WATERMARKS,
            {key: high_watermarks[key] for key in list(self._logs) if key in high_watermarks},
        )

    def forget(self, keys: Collection[TopicPartition]) -> None:
        """Durably remove the entries of these partitions from all checkpoints."""
        for name, offsets in list(self._stored.items()):
            if any(key in offsets for key in keys):
                gone = set(keys)
                self.write(name, {key: offset for key, offset in offsets.items() if key not in gone})
        self.leaving.difference_update(keys)

    def _with_leaving(self, name: str, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        stored = self._stored.get(name, {})
        for key in list(self.leaving):
            if key in stored:
                offsets[key] = stored[key]
        return offsets

    def keep(self, keys: Collection[TopicPartition]) -> None:
        """Durably remove the entries of all partitions except `keys` from all checkpoints."""
        self.forget({key for offsets in self._stored.values() for key in offsets}.difference(keys))

    def names(self, key: TopicPartition) -> bool:
        """Whether any checkpoint has an entry for this partition."""
        return any(key in offsets for offsets in list(self._stored.values()))

    def exceeds(self, key: TopicPartition, offset: int) -> bool:
        """Whether any checkpoint that recovery uses contains an offset for the partition beyond `offset`."""
        return any(
            self._stored.get(name, {}).get(key, -1) > offset
            for name in (
                checkpoints.RECOVERY_POINTS,
                checkpoints.LOG_START_OFFSETS,
                checkpoints.CLEANER_OFFSETS,
            )
        )
