"""An idempotent producer that sends one batch at a time with acks=all, and resends it unchanged until it is
acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.storage.errors import OutOfOrderSequence, StorageError
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import Record, build_batch

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

PRODUCER_ID = 7
PAUSE_MS = 20
RESEND_MS = 150


class Violation(AssertionError):
    """A violated guarantee of the cluster."""


class IdempotentProducer:
    """A producer whose records must be in the log exactly once and in order."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.acknowledged = 0
        """The number of acknowledged records, which is also the next sequence number."""
        self._count = 1
        self._sent_ms = -RESEND_MS
        self._stopped = False
        cluster.at(None, PAUSE_MS, self._step)

    def stop(self) -> None:
        """Stop sending."""
        self._stopped = True

    def _step(self) -> None:
        if self._stopped:
            return
        if self._cluster.now_ms() - self._sent_ms >= RESEND_MS:
            self._send()
        self._cluster.at(None, PAUSE_MS, self._step)

    def _send(self) -> None:
        cluster, sequence = self._cluster, self.acknowledged
        broker = cluster.any_leader()
        partition = broker.partition if broker is not None else None
        if broker is None or partition is None:
            return
        value = b"idempotent:%d" % sequence
        batch = build_batch(
            [Record(timestamp=cluster.time_ms, value=value) for _ in range(self._count)],
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            base_sequence=sequence,
        )
        try:
            partition.check_min_isr()
            info = partition.append(memoryview(bytearray(batch)), cluster.time_ms)
        except OutOfOrderSequence as error:
            if cluster.keeps_all and cluster.controller.leads(broker.broker_id, partition.leader_epoch):
                raise Violation(f"the leader lacks an acknowledged sequence: {error}") from error
            return
        except (KafkaError, StorageError):
            return
        self._sent_ms = cluster.now_ms()

        def committed(code: ErrorCode) -> None:
            # A late acknowledgement may belong to an earlier attempt.
            if code == ErrorCode.NONE and sequence == self.acknowledged:
                self.acknowledged += self._count
                self._count = cluster.random.randint(1, 3)
                self._sent_ms = cluster.now_ms() - RESEND_MS

        partition.when_committed(info.last_offset + 1, committed)

    def check(self, batches: list[bytes]) -> None:
        """Check that a whole log has no gaps and no repetitions."""
        expected = 0
        for content in batches:
            for header in read_headers(memoryview(content)):
                if header.producer_id == PRODUCER_ID:
                    if header.base_sequence != expected:
                        raise Violation(f"found sequence {header.base_sequence} instead of {expected}")
                    expected += header.record_count
        if expected < self.acknowledged:
            raise Violation(f"{self.acknowledged} records are acknowledged, {expected} are in the log")
