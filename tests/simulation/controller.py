"""A minimal controller for the simulated cluster: its state changes immediately, and brokers receive it
later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from kafka_compat.errors import ErrorCode
from kafka_compat.replication.in_sync import IsrAnswer

if TYPE_CHECKING:
    from tests.simulation.cluster import Broker, Cluster

TOPIC, TOPIC_ID = "t", UUID(int=7)
BROKERS = (1, 2, 3)
DELAY_MAX_MS = 25
"""The longest time that a message takes."""


class Controls(Protocol):
    """The interface of controllers in the simulated cluster."""

    alive: set[int]
    """The brokers with a session."""
    partitions: int
    """The number of partitions."""

    def isrs(self) -> list[tuple[int, ...]]:
        """Return the actual ISRs, by partition."""

    def possible_isrs(self) -> list[tuple[int, ...]]:
        """Return the actual ISRs, and those of proposals that the controller may still accept, even if their
        sender has died.
        """

    def tell(self) -> None:
        """Start with all brokers registered."""

    def lost(self, broker_id: int) -> None:
        """Handle the end of a broker's session."""

    def registered(self, broker_id: int) -> None:
        """Handle a broker's new registration."""

    def leads(self, broker_id: int, leader_epoch: int) -> bool:
        """Return whether the broker is actually the leader of the first partition in that epoch."""

    def counts_on(self, broker_id: int) -> bool:
        """Return whether the dead broker may still be elected leader instead of other in-sync replicas."""

    def move_leader(self) -> None:
        """Elect a different replica."""

    def change(self) -> None:
        """Elect a different controller."""

    def is_alive(self, asker: Broker, broker_id: int) -> bool:
        """Return whether a broker considers another broker alive."""

    def propose(
        self,
        asker: Broker,
        index: int,
        isr: tuple[int, ...],
        leader_epoch: int,
        partition_epoch: int,
        callback: Callable[[IsrAnswer], None],
    ) -> None:
        """Send AlterPartition, like `IsrProposer.propose`."""


class Controller:
    """The actual leader and ISR of one partition, which brokers receive later."""

    partitions = 1

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.leader = BROKERS[0]
        self.leader_epoch = 0
        self.isr: tuple[int, ...] = BROKERS
        self.partition_epoch = 0
        self.alive = set(BROKERS)
        self._proposed: list[tuple[int, ...]] = []
        """The ISRs of proposals that have not arrived."""

    def tell(self) -> None:
        for broker_id in sorted(self.alive):
            self.tell_one(broker_id)

    def tell_one(self, broker_id: int) -> None:
        said = (self.leader, self.leader_epoch, self.isr, self.partition_epoch)
        broker = self.cluster.brokers[broker_id]
        self.cluster.send(broker, lambda: broker.leader_and_isr(*said))

    def elect(self, leader: int, isr: tuple[int, ...]) -> None:
        self.leader, self.isr = leader, isr
        self.leader_epoch += 1
        self.partition_epoch += 1
        self.tell()

    def lost(self, broker_id: int) -> None:
        self.alive.discard(broker_id)
        isr = tuple(member for member in self.isr if member != broker_id) or self.isr
        if isr == self.isr and self.leader != broker_id:
            return
        leader = self.leader
        if leader == broker_id:
            leader = next((member for member in isr if member in self.alive), -1)
        self.elect(leader, isr)

    def registered(self, broker_id: int) -> None:
        self.alive.add(broker_id)
        if self.leader < 0 and broker_id in self.isr:
            self.elect(broker_id, (broker_id,))
        else:
            self.tell_one(broker_id)

    def move_leader(self) -> None:
        others = [member for member in self.isr if member in self.alive and member != self.leader]
        if others:
            self.elect(self.cluster.random.choice(others), self.isr)

    def isrs(self) -> list[tuple[int, ...]]:
        return [self.isr]

    def possible_isrs(self) -> list[tuple[int, ...]]:
        return [self.isr, *self._proposed]

    def leads(self, broker_id: int, leader_epoch: int) -> bool:
        return (broker_id, leader_epoch) == (self.leader, self.leader_epoch)

    def counts_on(self, broker_id: int) -> bool:
        return any(broker_id in isr and len(isr) > 1 for isr in self.possible_isrs())

    def change(self) -> None:
        """Does nothing, because this controller never changes."""

    def is_alive(self, asker: Broker, broker_id: int) -> bool:
        return broker_id in self.alive

    def propose(
        self,
        asker: Broker,
        index: int,
        isr: tuple[int, ...],
        leader_epoch: int,
        partition_epoch: int,
        callback: Callable[[IsrAnswer], None],
    ) -> None:
        def arrive() -> None:
            self._proposed.remove(isr)
            answer = self.alter(asker.broker_id, isr, leader_epoch, partition_epoch)
            self.cluster.send(asker, lambda: callback(answer))

        # The request arrives even if its sender dies.
        self._proposed.append(isr)
        self.cluster.at(None, self.cluster.random.randint(1, DELAY_MAX_MS), arrive)

    def alter(
        self, broker_id: int, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int
    ) -> IsrAnswer:
        if leader_epoch != self.leader_epoch or broker_id != self.leader:
            return IsrAnswer(ErrorCode.FENCED_LEADER_EPOCH)
        if partition_epoch != self.partition_epoch:
            return IsrAnswer(ErrorCode.INVALID_UPDATE_VERSION)
        if not self.alive.issuperset(isr):
            return IsrAnswer(ErrorCode.INELIGIBLE_REPLICA)
        self.isr = isr
        self.partition_epoch += 1
        return IsrAnswer(ErrorCode.NONE, leader_epoch, isr, self.partition_epoch)
