"""Coordinator log on the partitions of an internal topic that this broker leads."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kafka_compat.coordinator_runtime.coordinator_log import ReplayedBatch, TransactionalProducer
from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.metadata.topic_names import OFFSETS_TOPIC
from kafka_compat.replication.partition import Partition
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.storage.clock import Clock
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, read_header
from kafka_compat.storage.records.kinds import CompressionType, ControlRecordType
from kafka_compat.storage.records.legacy import records_of
from kafka_compat.storage.records.records import Record, build_batch, control_record_type

_READ_BYTES: Final = 1024 * 1024
_PART_RECORDS: Final = 500
"""Maximum number of records that are replayed before replay yields."""


class PartitionCoordinatorLog:
    """CoordinatorLog for the partitions that this broker leads."""

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        clock: Clock,
        compression: CompressionType,
        topic: str = OFFSETS_TOPIC,
    ) -> None:
        self._topic = topic
        self._compression = compression
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock

    @property
    def shard_count(self) -> int:
        topic = self._metadata.topics.get(self._topic)
        return len(topic.partitions) if topic is not None else 0

    def append(
        self,
        shard: int,
        records: Sequence[tuple[bytes, bytes | None]],
        producer: TransactionalProducer | None = None,
        *,
        commits: bool = False,
    ) -> int:
        now_ms = self._clock.now_ms()
        producer_id, producer_epoch = producer or (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        batch = build_batch(
            [Record(timestamp=now_ms, key=key, value=value) for key, value in records],
            compression=self._compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            # Use the same base sequence for offset commits as Kafka, because Kafka's tools print it.
            base_sequence=0 if commits else NO_SEQUENCE,
            transactional=producer is not None,
        )
        try:
            partition = self._partition(shard)
            partition.check_min_isr()
            info = partition.append(memoryview(bytearray(batch)), now_ms, internal=True)
        except StorageError as error:
            raise KafkaError(code_of(error), str(error)) from error
        return info.last_offset + 1

    def when_committed(self, shard: int, offset: int, callback: Callable[[ErrorCode], None]) -> None:
        partition = self._replicas.get(self._topic, shard)
        if partition is None:
            callback(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            partition.when_committed(offset, callback)

    def replay(self, shard: int) -> Iterator[ReplayedBatch]:
        """Yield the batches of a shard's log. Raises KafkaError if the log cannot be read."""
        try:
            yield from _replay(self._partition(shard).log)
        except StorageError as error:
            raise KafkaError(code_of(error), str(error)) from error

    def delete_before(self, shard: int, offset: int | None) -> None:
        """Delete the committed records of a shard before an offset; None stands for the high watermark.
        Raises KafkaError on failure.
        """
        try:
            partition = self._partition(shard)
            end_offset = partition.high_watermark
            partition.log.advance_log_start_offset(end_offset if offset is None else min(offset, end_offset))
        except StorageError as error:
            raise KafkaError(code_of(error), str(error)) from error

    def _partition(self, shard: int) -> Partition:
        partition = self._replicas.get(self._topic, shard)
        if partition is None or not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return partition


def _replay(log: Log) -> Iterator[ReplayedBatch]:
    offset = log.log_start_offset
    while True:
        found = log.read(offset, _READ_BYTES, upper_bound=log.log_end_offset, min_one_batch=True)
        if found is None:
            return
        data = memoryview(found.read())
        position = 0
        while position < len(data):
            header = read_header(data, position)
            batch = data[position : position + header.size_bytes]
            position += header.size_bytes
            offset = header.next_offset
            producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
            records = iter(records_of(batch))
            if header.is_control:
                marker = next(records, None)
                # Without a marker, nothing is left to apply: compaction has removed the whole transaction.
                if marker is not None:
                    committed = control_record_type(marker) is ControlRecordType.COMMIT
                    yield ReplayedBatch(offset, producer_id, committed, [])
                continue
            while part := list(itertools.islice(records, _PART_RECORDS)):
                pairs = [(item.key, item.value) for item in part if item.key is not None]
                yield ReplayedBatch(offset, producer_id, None, pairs, header.base_offset)
