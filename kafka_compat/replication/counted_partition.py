"""A partition that counts what it takes in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.replication.counts import Counts, TopicCounts
from kafka_compat.replication.flusher import Flushing
from kafka_compat.replication.in_sync import IsrAnswer, IsrProposer, Proposal
from kafka_compat.replication.listeners import CallSoon
from kafka_compat.replication.partition import Partition
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.log.log import AppendInfo, Log
from kafka_compat.storage.records.validation import ValidatedBatches

FIRST_VERSION_WITH_FORMAT_2: Final = 3
"""Of Produce."""


class CountedPartition(Partition):
    """See the module; it does what a Partition does."""

    __slots__ = ("_counts", "_of_topic", "lag")

    def __init__(
        self,
        log: Log,
        local_id: int,
        flusher: Flushing,
        call_soon: CallSoon,
        *,
        counts: Counts,
        monotonic_ms: Callable[[], int],
        proposer: IsrProposer | None,
        lag_time_max_ms: int,
        high_watermark: int,
        moved: set[Partition],
    ) -> None:
        super().__init__(
            log,
            local_id,
            flusher,
            call_soon,
            monotonic_ms=monotonic_ms,
            proposer=proposer,
            lag_time_max_ms=lag_time_max_ms,
            high_watermark=high_watermark,
            moved=moved,
        )
        self._counts = counts
        self._of_topic: TopicCounts = counts.topic(self.topic)
        self.lag = 0
        """How many committed records it lacked when it last heard of its leader."""

    def check_min_isr(self) -> None:
        try:
            super().check_min_isr()
        except KafkaError as error:
            self._of_topic.not_appended(error, 0)
            raise

    def append(
        self,
        data: memoryview,
        now_ms: int,
        produce_version: int | None = None,
        internal: bool = False,
        validated: ValidatedBatches | None = None,
    ) -> AppendInfo:
        counted = self._of_topic
        counted.produces += 1
        try:
            info = Partition.append(self, data, now_ms, produce_version, internal, validated)
        except (KafkaError, StorageError) as error:
            counted.refused(error, len(data))
            raise
        records = info.last_offset - info.first_offset + 1
        counted.records_in += records
        counted.bytes_in += len(data)
        if produce_version is not None and produce_version < FIRST_VERSION_WITH_FORMAT_2:
            counted.converted_in += records
        return info

    def append_as_follower(self, data: memoryview, leader_high_watermark: int, leader_log_start: int) -> None:
        Partition.append_as_follower(self, data, leader_high_watermark, leader_log_start)
        self._of_topic.replicated_bytes_in += len(data)
        self.lag = max(leader_high_watermark - self.log.log_end_offset, 0)

    def _answered(self, proposal: Proposal, answer: IsrAnswer) -> None:
        self._counts.isr_refusals += answer.error != ErrorCode.NONE
        before = len(self.isr)
        super()._answered(proposal, answer)
        if self.is_leader and self.isr:
            self._counts.isr_shrinks += len(self.isr) < before
            self._counts.isr_expands += len(self.isr) > before
