"""The real controller machine for the simulated cluster, with changing controllers, and a store and network
with delays and losses.

Real: coordination.controller, the requests that its effects become, and their handling by brokers, including
fencing (ReplicaStates, Fence, UpdateMetadata). Simulated: the store with its versions and ephemeral
registrations, and the transport of AlterPartition, which loses and repeats requests and responses. A deposed
controller learns of its successor after a delay: its writes are rejected, but requests already sent still
arrive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

from kafka_compat.cluster import controller_wire as wire
from kafka_compat.coordination.controller import effects, events
from kafka_compat.coordination.controller import outcomes as model
from kafka_compat.coordination.controller.machine import Controller as Machine
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, Endpoint, PartitionState, TopicState
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.update_metadata import UpdateMetadataRequest
from kafka_compat.replication.in_sync import IsrAnswer
from tests.simulation.controller import BROKERS, DELAY_MAX_MS, TOPIC, TOPIC_ID

if TYPE_CHECKING:
    from tests.simulation.cluster import Broker, Cluster

PARTITIONS = tuple(model.TopicPartition(TOPIC, index) for index in range(3))
RETRY_MS = 50
NEWS_MAX_MS = 200
"""The longest time until a controller learns of its successor."""
LOSSES = 0.1
"""The probability that AlterPartition requests or responses are lost, and that requests are repeated."""


class Store:
    """The content of ZooKeeper."""

    def __init__(self) -> None:
        self.controller_epoch = 0
        self.registered: dict[int, BrokerInfo] = {}
        self.replicas: dict[int, tuple[int, ...]] = {index: BROKERS for _, index in PARTITIONS}
        self.states: dict[model.TopicPartition, PartitionState] = {}
        self._czxid = 0

    def register(self, broker_id: int) -> int:
        """Register a broker, and return its broker epoch."""
        self._czxid += 1
        endpoint = Endpoint("PLAINTEXT", "localhost", 9000 + broker_id)
        self.registered[broker_id] = BrokerInfo(broker_id, (endpoint,), epoch=self._czxid)
        return self._czxid

    def topic(self) -> TopicState:
        return TopicState(TOPIC, TOPIC_ID, dict(self.replicas))

    def write(self, effect: effects.WriteStates) -> events.StatesWritten | None:
        """Write partition states. Return None if the controller was deposed."""
        if effect.epoch_znode_version != self.controller_epoch:
            return None
        written: dict[model.TopicPartition, int] = {}
        conflicts: dict[model.TopicPartition, PartitionState | None] = {}
        for partition, state, expected in effect.writes:
            found = self.states.get(partition)
            if (found.partition_epoch if found is not None else model.CREATE) != expected:
                conflicts[partition] = found
                continue
            written[partition] = expected + 1
            self.states[partition] = _with_epoch(state, expected + 1)
        return events.StatesWritten(effect.write_id, written, conflicts)


class Term:
    """One controller, and its requests that are still in flight when it is deposed."""

    def __init__(self, cluster: Cluster, store: Store) -> None:
        store.controller_epoch += 1
        self._cluster = cluster
        self._store = store
        self._machine = Machine(0)
        self._channels: dict[effects.BrokerEpoch, deque[Callable[[Broker], object]]] = {}
        self._waiting: dict[Hashable, Callable[[Any], None]] = {}
        self.over = False
        self.handle(
            events.Elected(
                store.controller_epoch,
                store.controller_epoch,
                tuple(store.registered.values()),
                (store.topic(),),
                dict(store.states),
                unclean_default=cluster.unclean,
            )
        )

    def handle(self, event: events.Event) -> None:
        if not self.over:
            for effect in self._machine.handle(event):
                self._apply(effect)

    def ask(
        self, make: Callable[[Hashable], events.Event], answered: Callable[[Any], None] = lambda reply: None
    ) -> None:
        request_id = object()
        self._waiting[request_id] = answered
        self.handle(make(request_id))

    def resign(self) -> None:
        if not self.over:
            self.handle(events.Resigned())
            self.over = True
            self._channels.clear()

    def _apply(self, effect: effects.Effect) -> None:
        match effect:
            case effects.WriteStates():
                self._later(lambda: self._write(effect))
            case effects.WriteTopic(topic, version, _):
                if version == self._store.controller_epoch:
                    self._store.replicas = dict(topic.replicas)
            case effects.SendLeaderAndIsr():
                request = wire.leader_and_isr(0, effect, "PLAINTEXT")
                self._send(effect.broker, lambda broker: broker.lead_and_follow(request))
            case effects.SendUpdateMetadata():
                for address in effect.brokers:
                    update = wire.update_metadata(0, effect, address.epoch)
                    self._send(address, partial(_update, update))
            case effects.SendStopReplica():
                stop = wire.stop_replica(0, effect)
                self._send(effect.broker, lambda broker: broker.stop_replicas(stop))
            case effects.Reply(request_id, value):
                self._waiting.pop(request_id)(value)

    def _later(self, action: Callable[[], None]) -> None:
        self._cluster.at(None, self._cluster.random.randint(1, DELAY_MAX_MS), action)

    def _write(self, effect: effects.WriteStates) -> None:
        outcome = self._store.write(effect)
        if outcome is None:
            self.resign()
        else:
            self._later(lambda: self.handle(outcome))

    def _send(self, address: effects.BrokerEpoch, request: Callable[[Broker], object]) -> None:
        queue = self._channels.setdefault(address, deque())
        queue.append(request)
        if len(queue) == 1:
            self._later(lambda: self._arrive(address))

    def _arrive(self, address: effects.BrokerEpoch) -> None:
        queue = self._channels.get(address)
        known = self._store.registered.get(address.broker_id)
        if queue is None or known is None or known.epoch != address.epoch:
            self._channels.pop(address, None)
            return
        broker = self._cluster.brokers[address.broker_id]
        if broker.up:
            queue[0](broker)
        if broker.up and self._cluster.random.random() >= LOSSES:
            queue.popleft()
        if queue:
            self._later(lambda: self._arrive(address))


class Terms:
    """A sequence of controllers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.alive = set(BROKERS)
        self.partitions = len(PARTITIONS)
        self.store = Store()
        self.terms: list[Term] = []
        self._sent: list[tuple[Term, model.TopicPartition, events.IsrChange]] = []
        """Proposals that a controller has not answered yet."""

    def isrs(self) -> list[tuple[int, ...]]:
        return [state.isr for state in self.store.states.values()]

    def possible_isrs(self) -> list[tuple[int, ...]]:
        # A proposal takes effect only if the state has not changed since.
        states = self.store.states
        proposed = [
            change.isr
            for term, partition, change in self._sent
            if not term.over and states[partition].partition_epoch == change.partition_epoch
        ]
        return self.isrs() + proposed

    def leads(self, broker_id: int, leader_epoch: int) -> bool:
        state = self.store.states.get(PARTITIONS[0])
        return state is not None and (broker_id, leader_epoch) == (state.leader, state.leader_epoch)

    def counts_on(self, broker_id: int) -> bool:
        return any(broker_id in isr and len(isr) > 1 for isr in self.possible_isrs())

    def tell(self) -> None:
        for broker_id in BROKERS:
            self.register(broker_id)
        self.change()

    def change(self) -> None:
        """Elect a new controller. The previous one learns of it later."""
        for term in self.terms:
            self.cluster.at(None, self.cluster.random.randint(1, NEWS_MAX_MS), term.resign)
        self.terms = [term for term in self.terms if not term.over][-1:]
        self.terms.append(Term(self.cluster, self.store))

    def register(self, broker_id: int) -> None:
        self.cluster.brokers[broker_id].broker_epoch = self.store.register(broker_id)
        self._registrations_changed()

    def registered(self, broker_id: int) -> None:
        self.alive.add(broker_id)
        self.register(broker_id)

    def lost(self, broker_id: int) -> None:
        """Expire a broker's session. The broker may keep running."""
        self.alive.discard(broker_id)
        self.store.registered.pop(broker_id, None)
        self._registrations_changed()

    def _registrations_changed(self) -> None:
        for term in self.terms:
            self._watched(term)

    def _watched(self, term: Term) -> None:
        def read() -> None:
            term.handle(events.BrokersChanged(tuple(self.store.registered.values())))

        self.cluster.at(None, self.cluster.random.randint(1, DELAY_MAX_MS), read)

    def move_leader(self) -> None:
        """Make a different replica the preferred leader, and elect it if it is eligible."""
        order = list(BROKERS)
        self.cluster.random.shuffle(order)
        partition = self.cluster.random.choice(PARTITIONS)
        term = self.terms[-1]
        term.ask(lambda request: events.ReassignmentRequested(request, {partition: tuple(order)}))
        term.ask(lambda request: events.ElectionRequested(request, model.ElectionType.PREFERRED, None))

    def is_alive(self, asker: Broker, broker_id: int) -> bool:
        return broker_id in asker.metadata.brokers

    def propose(
        self,
        asker: Broker,
        index: int,
        isr: tuple[int, ...],
        leader_epoch: int,
        partition_epoch: int,
        callback: Callable[[IsrAnswer], None],
    ) -> None:
        """Send AlterPartition like IsrProposals: retry until a response has no top-level error."""
        cluster, partition = self.cluster, PARTITIONS[index]
        change = events.IsrChange(leader_epoch, isr, partition_epoch)

        def again() -> None:
            cluster.at(asker, RETRY_MS, attempt)

        def answered(sent: tuple[Term, Any, Any], reply: effects.AlterPartitionReply) -> None:
            self._sent.remove(sent)
            if reply.error != model.ControllerError.NONE or cluster.random.random() < LOSSES:
                cluster.send(asker, again)
            else:
                cluster.send(asker, lambda: callback(_answer(reply.partitions[partition])))

        def attempt() -> None:
            term, broker_epoch = cluster.random.choice(self.terms), asker.broker_epoch
            sent = term, partition, change

            def arrive() -> None:
                if term.over:
                    self._sent.remove(sent)
                    cluster.send(asker, again)
                    return
                term.ask(
                    lambda request: events.AlterPartitionRequested(
                        request, asker.broker_id, broker_epoch, {partition: change}
                    ),
                    partial(answered, sent),
                )

            if cluster.random.random() < LOSSES:
                again()
            else:
                # The request arrives even if its sender dies.
                self._sent.append(sent)
                cluster.at(None, cluster.random.randint(1, 4 * DELAY_MAX_MS), arrive)

        attempt()


def _update(request: UpdateMetadataRequest, broker: Broker) -> None:
    broker.update_metadata(request)


def _answer(found: PartitionState | model.ControllerError) -> IsrAnswer:
    if isinstance(found, PartitionState):
        return IsrAnswer(ErrorCode.NONE, found.leader_epoch, found.isr, found.partition_epoch)
    return IsrAnswer(ErrorCode(found))


def _with_epoch(state: PartitionState, partition_epoch: int) -> PartitionState:
    return PartitionState(
        state.leader,
        state.leader_epoch,
        state.isr,
        state.controller_epoch,
        state.recovering,
        partition_epoch,
    )
