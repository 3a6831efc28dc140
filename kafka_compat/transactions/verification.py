"""Whether records of a transaction may be appended to a partition where it has none yet (KIP-890): a late
retry must not open a transaction that nobody will end.

The leader of the partition asks the coordinator of the transactional id, or, for a producer of
transaction.version 2, has it add the partition. While the answer is on its way the
transaction may end: its marker, or another leadership of the partition, makes the answer worthless.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from kafka_compat.errors import ErrorCode
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.transactions.coordinator import TransactionCoordinator
from kafka_compat.transactions.model import VERSION_WITH_EPOCH_BUMP, ProducerIdentity, TopicPartition

PartitionErrors = dict[TopicPartition, ErrorCode]
Respond = Callable[[PartitionErrors], None]


class Coordinators(Protocol):
    """The coordinators of all transactional ids of the cluster."""

    def ask(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: list[TopicPartition],
        respond: Respond,
        *,
        adds: bool,
    ) -> None:
        """Whether each partition is in the open transaction, or (`adds`) let it be; answered exactly once,
        at once or later.
        """


class LocalCoordinators:
    """All of them are on this broker."""

    def __init__(self, coordinator: Callable[[], TransactionCoordinator]) -> None:
        self._coordinator = coordinator

    def ask(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: list[TopicPartition],
        respond: Respond,
        *,
        adds: bool,
    ) -> None:
        coordinator = self._coordinator()
        if adds:
            coordinator.add_partitions(
                transactional_id,
                identity,
                partitions,
                lambda error: respond(dict.fromkeys(partitions, error)),
                VERSION_WITH_EPOCH_BUMP,
            )
            return
        respond({item: coordinator.verify(transactional_id, identity, [item]) for item in partitions})


class Verifications:
    """What this broker has asked coordinators, and what came in between."""

    def __init__(self, replicas: ReplicaManager, coordinators: Coordinators) -> None:
        self._replicas = replicas
        self._coordinators = coordinators
        self._asked: set[_Asked] = set()

    def is_open(self, partition: TopicPartition, identity: ProducerIdentity) -> bool:
        """Whether the transaction has records in the partition, so that nobody needs to be asked."""
        held = self._replicas.get(*partition)
        entry = None if held is None else held.log.producers.entries.get(identity.producer_id)
        return (
            entry is not None
            and entry.producer_epoch == identity.producer_epoch
            and entry.current_txn_first_offset >= 0
        )

    def ask(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        *,
        knows_abortable: bool,
        adds: bool,
    ) -> asyncio.Future[PartitionErrors]:
        """NONE for each partition whose records may be appended now. Done at once when a coordinator that is
        here has nothing to write. With `adds` the partitions are added, and a transaction that is about to
        end is waited for shortly.

        A client that does not know TRANSACTION_ABORTABLE is told INVALID_TXN_STATE.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[PartitionErrors] = loop.create_future()
        errors = dict.fromkeys(partitions, ErrorCode.NONE)
        unknown = [item for item in errors if not self.is_open(item, identity)]
        if not unknown:
            answer.set_result(errors)
            return answer
        # The marker of a transaction that has an epoch of its own is of the next epoch.
        end_epoch = identity.producer_epoch + 1 if adds else identity.producer_epoch
        asked = _Asked(identity.producer_id, end_epoch, {item: self._leader_epoch(item) for item in unknown})
        self._asked.add(asked)

        deadline = loop.time() + _ADD_PATIENCE_S if adds else 0

        def ask() -> None:
            self._coordinators.ask(transactional_id, identity, unknown, answered, adds=adds)

        def answered(found: PartitionErrors) -> None:
            if ErrorCode.CONCURRENT_TRANSACTIONS in found.values() and loop.time() < deadline:
                loop.call_later(_ADD_AGAIN_S, ask)
                return
            self._asked.discard(asked)
            for item in unknown:
                error = found[item]
                if not error and self._leader_epoch(item) != asked.leader_epochs[item]:
                    error = ErrorCode.INVALID_TXN_STATE
                elif error is ErrorCode.PRODUCER_FENCED:
                    error = ErrorCode.INVALID_PRODUCER_EPOCH
                elif error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
                    error = ErrorCode.INVALID_TXN_STATE
                errors[item] = error
            if not answer.done():
                answer.set_result(errors)

        ask()
        return answer

    def ended(self, partition: TopicPartition, identity: ProducerIdentity) -> None:
        """A marker of that producer was written to the partition."""
        for asked in self._asked:
            if (
                asked.producer_id == identity.producer_id
                and asked.end_epoch <= identity.producer_epoch
                and partition in asked.leader_epochs
            ):
                asked.leader_epochs[partition] = _ENDED

    def _leader_epoch(self, partition: TopicPartition) -> int:
        held = self._replicas.get(*partition)
        return held.leader_epoch if held is not None and held.is_leader else _NOT_LED


_NOT_LED: Final = -1
_ENDED: Final = -2
_ADD_AGAIN_S: Final = 0.02
_ADD_PATIENCE_S: Final = 0.1
"""Kafka's add.partitions.to.txn.retry.backoff.ms and .max.ms: the markers of the last transaction are often
just on their way when the next begins.
"""


class _Asked:
    """A question on its way: the epochs in which this broker led the partitions when it asked, and the
    producer epoch from which on a marker ends the transaction.
    """

    def __init__(self, producer_id: int, end_epoch: int, leader_epochs: dict[TopicPartition, int]) -> None:
        self.producer_id = producer_id
        self.end_epoch = end_epoch
        self.leader_epochs = leader_epochs
