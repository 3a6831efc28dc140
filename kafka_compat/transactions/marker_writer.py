"""Interface through which the transaction coordinator writes markers to partitions."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from kafka_compat.errors import ErrorCode
from kafka_compat.transactions.status import ProducerIdentity, TopicPartition


class Marker(NamedTuple):
    """The end marker of one transaction. `coordinator_epoch` fences markers from replaced coordinators. With
    `bumped_epoch`, the transaction's records have an older epoch than the marker, and records with the
    marker's epoch belong to a different transaction (KIP-1228).
    """

    identity: ProducerIdentity
    committed: bool
    coordinator_epoch: int
    bumped_epoch: bool = False


MarkerCallback = Callable[[TopicPartition, ErrorCode], None]


class MarkerWriter(Protocol):
    def exists(self, partition: TopicPartition) -> bool:
        """Return whether the partition still exists, and therefore needs a marker."""

    def write(self, marker: Marker, partitions: Iterable[TopicPartition], done: MarkerCallback) -> None:
        """Write the marker to each partition. `done` is called exactly once for each partition, with NONE
        when its marker is committed, or with an error code.
        """
