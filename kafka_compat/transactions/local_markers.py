"""Write transaction markers from any coordinator to the partitions that this broker leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata.cache import MetadataCache
from kafka_compat.metadata.topic_names import OFFSETS_TOPIC
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.storage.clock import Clock
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, build_marker
from kafka_compat.transactions.marker_writer import Marker, MarkerCallback
from kafka_compat.transactions.status import ProducerIdentity, TopicPartition

if TYPE_CHECKING:
    from kafka_compat.groups.coordinator import GroupCoordinator


class LocalMarkerWriter:
    """A MarkerWriter for this broker's partitions. It reports markers in `__consumer_offsets` to `groups`."""

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        clock: Clock,
        groups: Callable[[], GroupCoordinator],
        ended: Callable[[TopicPartition, ProducerIdentity], None],
    ) -> None:
        """`ended` gets the partition and producer of each appended marker before the marker is committed."""
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._groups = groups
        self._ended = ended

    def exists(self, partition: TopicPartition) -> bool:
        return self._metadata.partition(*partition) is not None

    def write(self, marker: Marker, partitions: Iterable[TopicPartition], done: MarkerCallback) -> None:
        for partition in partitions:
            self._write_one(marker, partition, done)

    def _write_one(self, marker: Marker, partition: TopicPartition, done: MarkerCallback) -> None:
        held = self._replicas.get(*partition)
        if held is None:
            done(partition, self._replicas.missing(*partition))
            return
        now_ms = self._clock.now_ms()
        producer_id, producer_epoch = marker.identity
        entry = held.log.producers.entries.get(producer_id)
        if (
            marker.bumped_epoch
            and entry is not None
            and entry.producer_epoch == producer_epoch
            and entry.current_txn_first_offset >= 0
        ):
            # Reject a late copy of a marker: the open transaction began after the marker's transaction.
            done(partition, ErrorCode.INVALID_PRODUCER_EPOCH)
            return
        batch = build_marker(
            EndTransactionMarker(
                ControlRecordType.COMMIT if marker.committed else ControlRecordType.ABORT,
                marker.coordinator_epoch,
            ),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            timestamp=now_ms,
        )
        try:
            held.check_min_isr()
            info = held.append(memoryview(bytearray(batch)), now_ms, internal=True)
        except (StorageError, KafkaError) as error:
            done(partition, code_of(error))
            return
        self._ended(partition, marker.identity)
        end_offset = info.last_offset + 1
        topic, index = partition
        if topic == OFFSETS_TOPIC:
            self._groups().end_transaction(index, producer_id, marker.committed, end_offset)
        held.when_committed(end_offset, partial(done, partition))
