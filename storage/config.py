"""Topic settings that apply to a log, under Kafka's topic-level names with underscores instead of dots."""

from typing import NamedTuple

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DAY_MS = 24 * 60 * 60 * 1000


class LogConfig(NamedTuple):
    """The topic settings of a log, with Kafka's defaults. In the retention settings, -1 means no limit."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096

    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    file_delete_delay_ms: int = 60_000
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    min_cleanable_dirty_ratio: float = 0.5

    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX

    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = LONG_MAX
    compression_type: str = "producer"
    compression_level: int | None = None
    """The level of the codec in `compression_type`, or None for the codec's default level (KIP-390)."""
    message_downconversion_enable: bool = True
    """Whether records are converted to an older format for consumers that use Fetch versions 0 to 3."""
    validate_records: bool = True
    """Whether the records in produced batches are checked. Not a setting of Apache Kafka."""

    producer_id_expiration_ms: int = DAY_MS
    """The broker setting producer.id.expiration.ms, shared by all logs of the broker."""

    @property
    def compact(self) -> bool:
        """Whether cleanup.policy includes compaction, which requires keys."""
        return "compact" in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """The age in ms at which a segment is rolled: segment.ms, or max.compaction.lag.ms if that is smaller
        and the topic is compacted (KIP-354).
        """
        if self.compact and self.max_compaction_lag_ms > 0:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    @property
    def delete(self) -> bool:
        """Whether cleanup.policy includes deletion by time and size."""
        return "delete" in self.cleanup_policy
