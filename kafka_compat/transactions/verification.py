"""Verification that records may be appended to a partition as part of a transaction (KIP-890), so that a late
retry cannot open a transaction that never ends.

The partition's leader asks the coordinator of the transactional ID whether the partition is in the
transaction. For a producer of transaction.version 2, it asks the coordinator to add the partition. If a
marker or a new leader epoch of the partition arrives before the response, the response is ignored.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple, Protocol
from weakref import WeakSet

from kafka_compat.errors import ErrorCode
from kafka_compat.replication.replica_manager import ReplicaManager
from kafka_compat.transactions.coordinator import TransactionCoordinator
from kafka_compat.transactions.status import (
    NO_PRODUCER_ID,
    VERSION_WITH_EPOCH_BUMP,
    ProducerIdentity,
    TopicPartition,
)

PartitionErrors = dict[TopicPartition, ErrorCode]
Respond = Callable[[PartitionErrors], None]


class Coordinators(Protocol):
    """The coordinators of all transactional IDs in the cluster."""

    def ask(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: list[TopicPartition],
        respond: Respond,
        *,
        adds: bool,
    ) -> None:
        """Ask whether each partition is in the open transaction or, with `adds`, add the partitions to it.
        `respond` is called exactly once, immediately or later.
        """


class LocalCoordinators:
    """The coordinators on this broker. A standalone broker has no other coordinators."""

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


class _Question(NamedTuple):
    """A request to a coordinator, and the deadline for its retries."""

    transactional_id: str
    identity: ProducerIdentity
    partitions: list[TopicPartition]
    adds: bool
    deadline_s: float


class Verifications:
    """Verifications in progress. Transactions that end in the meantime may invalidate them."""

    def __init__(self, replicas: ReplicaManager, coordinators: Coordinators) -> None:
        self._replicas = replicas
        self._coordinators = coordinators
        self._asked: WeakSet[Verification] = WeakSet()

    def is_open(self, partition: TopicPartition, identity: ProducerIdentity) -> bool:
        """Return whether the transaction has records in the partition, so that no verification is needed."""
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
    ) -> "Verification":
        """Verify the partitions in which the transaction has no records yet. The verification completes
        immediately if the coordinator is local and has nothing to write. With `adds`, the partitions are
        added to the transaction. While an earlier transaction is ending, this is retried for a short time.

        A client that does not know TRANSACTION_ABORTABLE gets INVALID_TXN_STATE instead.
        """
        loop = asyncio.get_running_loop()
        asked = list(dict.fromkeys(partitions))
        unknown = [item for item in asked if not self.is_open(item, identity)]
        # With `adds` (KIP-890), ending a transaction increments the epoch before the marker is written.
        end_epoch = identity.producer_epoch + 1 if adds else identity.producer_epoch
        verification = Verification(
            self.leader_epoch, identity.producer_id, end_epoch, asked, knows_abortable
        )
        self._asked.add(verification)
        if unknown:
            deadline_s = loop.time() + _ADD_PATIENCE_S if adds else 0.0
            self._ask(_Question(transactional_id, identity, unknown, adds, deadline_s), verification)
        else:
            verification.answer({})
        return verification

    def _ask(self, question: _Question, verification: "Verification") -> None:
        self._coordinators.ask(
            question.transactional_id,
            question.identity,
            question.partitions,
            partial(self._answered, question, verification),
            adds=question.adds,
        )

    def _answered(self, question: _Question, verification: "Verification", found: PartitionErrors) -> None:
        loop = asyncio.get_running_loop()
        if ErrorCode.CONCURRENT_TRANSACTIONS in found.values() and loop.time() < question.deadline_s:
            loop.call_later(_ADD_AGAIN_S, self._ask, question, verification)
        else:
            verification.answer(found)

    def refuse(self, partitions: Iterable[TopicPartition], error: ErrorCode) -> "Verification":
        """Return a verification that fails with `error`."""
        verification = Verification(self.leader_epoch, NO_PRODUCER_ID, 0, list(partitions), True)
        verification.answer(dict.fromkeys(partitions, error))
        return verification

    def ended(self, partition: TopicPartition, identity: ProducerIdentity) -> None:
        """Invalidate verifications, because a marker of this producer was written to the partition."""
        for verification in self._asked:
            verification.ended(partition, identity)

    def leader_epoch(self, partition: TopicPartition) -> int:
        """Return the epoch in which this broker leads the partition, or -1 if it is not the leader."""
        held = self._replicas.get(*partition)
        return held.leader_epoch if held is not None and held.is_leader else _NOT_LED


_NOT_LED: Final = -1
_ENDED: Final = -2
_ADD_AGAIN_S: Final = 0.02
_ADD_PATIENCE_S: Final = 0.1
"""Kafka's add.partitions.to.txn.retry.backoff.ms and .max.ms. The markers of the last transaction are often
still being written when the next transaction begins.
"""


class Verification:
    """A verification in progress. It is void if, before `take`, a marker ends the transaction or the leader
    changes.
    """

    def __init__(
        self,
        leader_epoch: Callable[[TopicPartition], int],
        producer_id: int,
        end_epoch: int,
        partitions: list[TopicPartition],
        knows_abortable: bool,
    ) -> None:
        """`end_epoch` is the lowest producer epoch of a marker that ends the transaction."""
        self._leader_epoch = leader_epoch
        self._producer_id = producer_id
        self._end_epoch = end_epoch
        self._epochs = {partition: leader_epoch(partition) for partition in partitions}
        self._knows_abortable = knows_abortable
        self._found: PartitionErrors = dict.fromkeys(partitions, ErrorCode.NONE)
        self._answered = asyncio.Event()

    def answer(self, found: PartitionErrors) -> None:
        self._found.update(found)
        self._answered.set()

    def ended(self, partition: TopicPartition, identity: ProducerIdentity) -> None:
        """Void this partition's verification if the marker written to it ends the verified transaction."""
        if (
            identity.producer_id == self._producer_id
            and identity.producer_epoch >= self._end_epoch
            and partition in self._epochs
        ):
            self._epochs[partition] = _ENDED

    @property
    def is_answered(self) -> bool:
        return self._answered.is_set()

    async def wait(self) -> None:
        """Wait until the coordinator has responded."""
        await self._answered.wait()

    def take(self) -> PartitionErrors:
        """Return each partition's error code. On NONE, the caller must append the records before awaiting."""
        return {partition: self._error(partition) for partition in self._found}

    def _error(self, partition: TopicPartition) -> ErrorCode:
        error = self._found[partition]
        if not error and self._epochs[partition] == _ENDED:
            return ErrorCode.INVALID_TXN_STATE
        if not error and self._leader_epoch(partition) != self._epochs[partition]:
            # A different leader may have written the marker. The client's retry is verified again.
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if error is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if error is ErrorCode.TRANSACTION_ABORTABLE and not self._knows_abortable:
            return ErrorCode.INVALID_TXN_STATE
        return error
