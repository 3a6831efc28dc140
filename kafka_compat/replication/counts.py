"""Per-topic counters of a broker's produce and fetch traffic since startup. No I/O.

The counters are integers that partitions and fetches increment. They match Kafka's BrokerTopicMetrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode
from kafka_compat.storage.errors import InvalidRecord, InvalidTimestamp, MisplacedBatch

if TYPE_CHECKING:
    from kafka_compat.metadata.feed import MetadataDelta

_NO_FAILED_PRODUCE: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors that do not count as failed Produce requests, because Kafka counts them elsewhere."""


class TopicCounts:
    """Counters of one topic, or sums over several topics."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "converted_in",
        "converted_out",
        "corrupt_in",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "keyless_in",
        "misplaced_in",
        "produces",
        "records_in",
        "replicated_bytes_in",
        "replicated_bytes_out",
    )

    def __init__(self) -> None:
        self.records_in = 0
        """The number of records written by clients and coordinators."""
        self.bytes_in = 0
        """Size in bytes, as received, of the batches written by clients and coordinators."""
        self.bytes_out = 0
        """Size in bytes of the batches in responses to consumers."""
        self.bytes_rejected = 0
        """Size in bytes of the batches that exceeded the size limit."""
        self.converted_in = 0
        """The number of records that were converted because producers sent an old record format."""
        self.converted_out = 0
        """The number of records and compressed record sets converted to old record formats for consumers."""
        self.produces = 0
        """The number of attempts to append a batch to a partition."""
        self.failed_produces = 0
        self.fetches = 0
        """The number of partition reads for Fetch responses."""
        self.failed_fetches = 0
        self.replicated_bytes_in = 0
        self.replicated_bytes_out = 0
        self.corrupt_in = 0
        """The number of batches with an incorrect checksum or length."""
        self.keyless_in = 0
        """The number of records without a key for a compacted topic."""
        self.misplaced_in = 0
        """The number of batches with an unexpected sequence number or an incorrect offset."""

    def refused(self, error: Exception, size_bytes: int) -> None:
        """Count a batch that was rejected with `error`."""
        code = code_of(error)
        if code == ErrorCode.MESSAGE_TOO_LARGE:
            self.bytes_rejected += size_bytes
        if code not in _NO_FAILED_PRODUCE:
            self.failed_produces += 1
        if code == ErrorCode.CORRUPT_MESSAGE:
            self.corrupt_in += 1
        elif isinstance(error, MisplacedBatch):
            self.misplaced_in += 1
        elif isinstance(error, (InvalidRecord, InvalidTimestamp)):
            from kafka_compat.storage.records.validation import KEYLESS

            self.keyless_in += sum(text.startswith(KEYLESS) for _, text in error.record_errors)

    def not_appended(self, error: Exception, size_bytes: int) -> None:
        """Count a batch that was rejected before it reached its log."""
        self.produces += 1
        self.refused(error, size_bytes)

    def add(self, other: TopicCounts) -> None:
        self.records_in += other.records_in
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.bytes_rejected += other.bytes_rejected
        self.converted_in += other.converted_in
        self.converted_out += other.converted_out
        self.produces += other.produces
        self.failed_produces += other.failed_produces
        self.fetches += other.fetches
        self.failed_fetches += other.failed_fetches
        self.replicated_bytes_in += other.replicated_bytes_in
        self.replicated_bytes_out += other.replicated_bytes_out
        self.corrupt_in += other.corrupt_in
        self.keyless_in += other.keyless_in
        self.misplaced_in += other.misplaced_in


class Counts:
    """Counters of all topics of one broker."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicCounts] = {}
        self.follower_fetches: dict[int, int] = {}
        """The number of Fetch requests from other brokers, by request version."""
        self.fetched_copied_bytes = 0
        """Size in bytes of the records that this process copied into responses. `fetched_sendfile_bytes`
        counts the records that were sent directly from files.
        """
        self.fetched_sendfile_bytes = 0
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.isr_refusals = 0
        """The number of ISR proposals that the controller rejected."""
        self.expired_fetches = {"consumer": 0, "follower": 0}
        """The number of fetches that waited until max_wait_ms expired, by type of client."""
        self.deleted = TopicCounts()
        """Sums of the counters of all deleted topics."""

    def topic(self, name: str) -> TopicCounts:
        """Return the counters of a topic. They are created on first use."""
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicCounts()
        return found

    def on_metadata(self, delta: MetadataDelta) -> None:
        """Remove the counters of deleted topics."""
        for topic in delta.deleted:
            self.forget(topic.name)

    def forget(self, name: str) -> None:
        """Remove the counters of a topic. Its counts remain in the total."""
        deleted = self.topics.pop(name, None)
        if deleted is not None:
            self.deleted.add(deleted)

    def total(self) -> TopicCounts:
        """Return the sum over all topics, including deleted topics."""
        total = TopicCounts()
        total.add(self.deleted)
        for of_topic in self.topics.values():
            total.add(of_topic)
        return total
