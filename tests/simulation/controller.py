"""The simulated cluster's controller in the fewest lines that keep Kafka's rules: what it says is at once the
truth, and brokers hear of it later.
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
"""How long a message takes."""


class Controls(Protocol):
    """What the simulated cluster needs of controllers."""

    alive: set[int]
    """The brokers whose sessions last."""
    partitions: int
    """How many there are."""

    def isrs(self) -> list[tuple[int, ...]]:
        """The true ones, by partition."""

    def tell(self) -> None:
        """Begin: all brokers are there."""

    def lost(self, broker_id: int) -> None:
        """A broker's session has ended."""

    def registered(self, broker_id: int) -> None:
        """A broker has a session again."""

    def leads(self, broker_id: int, leader_epoch: int) -> bool:
        """Whether that broker leads the first partition in that epoch, in truth."""

    def counts_on(self, broker_id: int) -> bool:
        """Whether the broker, which has died, may still be made leader beside others for what it had."""

    def move_leader(self) -> None:
        """Have another replica lead."""

    def change(self) -> None:
        """Have another controller elected."""

    def is_alive(self, asker: Broker, broker_id: int) -> bool:
        """Whether a broker knows another one to be there."""

    def propose(
        self,
        asker: Broker,
        index: int,
        isr: tuple[int, ...],
        leader_epoch: int,
        partition_epoch: int,
        callback: Callable[[IsrAnswer], None],
    ) -> None:
        """AlterPartition, as `IsrProposer.propose`."""


class Controller:
    """Who leads and who is in sync of one partition: the truth, which brokers hear of later."""

    partitions = 1

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.leader = BROKERS[0]
        self.leader_epoch = 0
        self.isr: tuple[int, ...] = BROKERS
        self.partition_epoch = 0
        self.alive = set(BROKERS)

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

    def leads(self, broker_id: int, leader_epoch: int) -> bool:
        return (broker_id, leader_epoch) == (self.leader, self.leader_epoch)

    def counts_on(self, broker_id: int) -> bool:
        return broker_id in self.isr and len(self.isr) > 1

    def change(self) -> None:
        """This one lives for ever."""

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
            answer = self.alter(asker.broker_id, isr, leader_epoch, partition_epoch)
            self.cluster.send(asker, lambda: callback(answer))

        # It arrives, whatever becomes of the one who sent it.
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
