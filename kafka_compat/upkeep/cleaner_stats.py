"""Statistics of the log cleaner's last runs, as in Kafka's metrics. No I/O."""

from kafka_compat.storage.compaction.cleaner_job import CleanedGroup, CleaningJob
from kafka_compat.storage.compaction.offset_map import SLOT_BYTES
from kafka_compat.storage.log.cleaning import DirtyPart

NEVER = -1


class Cleaning:
    """Statistics of one cleaning of one log."""

    __slots__ = ("_sizes", "_slots", "began_ms", "read_bytes", "took_ms", "utilization", "written_bytes")

    def __init__(self, job: CleaningJob, now_ms: int) -> None:
        """In all methods of this class, `now_ms` is a monotonic time in milliseconds."""
        self._sizes = {segment.base_offset: segment.size_bytes for segment in job.segments}
        self._slots = max(job.dedupe_buffer_bytes // SLOT_BYTES, 1)
        self.began_ms = now_ms
        self.took_ms = 0
        self.read_bytes = 0
        """Size in bytes of the copied segments before cleaning. `written_bytes` is their size afterwards."""
        self.written_bytes = 0
        self.utilization = 0.0
        """Utilization of log.cleaner.dedupe.buffer.size, assuming Kafka's entries of 24 bytes."""

    def copied(self, group: CleanedGroup) -> None:
        """Record that a group of segments has been cleaned."""
        self.read_bytes += sum(self._sizes.get(base_offset, 0) for base_offset in group.sources)
        self.written_bytes += group.size_bytes

    def ended(self, key_count: int, now_ms: int) -> None:
        """Record the end of the cleaning, which found `key_count` different keys."""
        self.utilization = min(key_count / self._slots, 1.0)
        self.took_ms = max(now_ms - self.began_ms, 0)


class CleanerStats:
    """Statistics of one broker's cleaner."""

    def __init__(self) -> None:
        self.last: Cleaning | None = None
        """The most recently completed cleaning."""
        self.looked_ms = NEVER
        """Time in ms at which the last pass over the logs began, or NEVER."""
        self.dirtiest_ratio = 0.0
        """The dirty ratio of the dirtiest log in the last pass, from 0 to 1."""
        self.overdue_ms = 0
        """Maximum time in ms by which a record exceeded max.compaction.lag.ms in the last pass."""

    def look_begins(self, now_ms: int) -> None:
        """Start a pass over the logs that may be compacted. The caller must then call `saw` for each log."""
        self.looked_ms = now_ms
        self.dirtiest_ratio, self.overdue_ms = 0.0, 0

    def saw(self, dirty: DirtyPart) -> None:
        """Record the state of a log that was examined in this pass."""
        self.dirtiest_ratio = max(self.dirtiest_ratio, dirty.ratio)
        self.overdue_ms = max(self.overdue_ms, dirty.overdue_ms)
