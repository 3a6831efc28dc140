"""Dead letter topics of share groups (KIP-1191). Their partitions are led by this broker or by others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from kafka_compat.error_mapping import code_of
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from kafka_compat.cluster.remote_producer import RemoteProducer
    from kafka_compat.metadata.cache import MetadataCache
    from kafka_compat.replication.replica_manager import ReplicaManager
    from kafka_compat.storage.clock import Clock

_PRODUCE_VERSION: Final = 9

Done = Callable[[ErrorCode], None]


class Prepare(Protocol):
    def __call__(self, topic: str, *, creates: bool, done: Done) -> None: ...


class DeadLetterTopics:
    """Appends dead letters to their topics, and creates missing topics."""

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        clock: Clock,
        prepare: Prepare,
        remote: RemoteProducer | None,
    ) -> None:
        """`prepare` creates a missing topic if `creates` is true, and reads the topic's settings. `remote` is
        None on a standalone broker.
        """
        self._replicas = replicas
        self._metadata = metadata
        self._clock = clock
        self._remote = remote
        self.prepare = prepare

    def produce(self, topic: str, partition: int, batch: bytes, done: Done) -> None:
        """Append a batch with acks=all, as if a client had sent it. `done` may be called at once."""
        known = self._metadata.partition(topic, partition)
        if known is None:
            done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif known.leader == self._metadata.local_id or self._remote is None:
            self._append(topic, partition, batch, done)
        elif known.leader not in self._metadata.brokers:
            done(ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            self._remote.produce(known.leader, topic, partition, batch, done)

    def _append(self, topic: str, partition: int, batch: bytes, done: Done) -> None:
        held = self._replicas.get(topic, partition)
        if held is None:
            done(self._replicas.missing(topic, partition))
            return
        try:
            held.check_min_isr()
            info = held.append(memoryview(bytearray(batch)), self._clock.now_ms(), _PRODUCE_VERSION)
        except (StorageError, KafkaError) as error:
            done(code_of(error))
            return
        held.when_committed(info.last_offset + 1, done)
