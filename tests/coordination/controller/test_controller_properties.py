"""The controller among brokers that come, go, lag and fail, topics that are made, moved and deleted, a store
that answers late and with conflicts, and successors that take over in the middle: chosen by hypothesis.

Always: one leader per epoch, epochs never go back, a leader comes out of the ISR unless it may be unclean
(`World._check`, at every write). Whenever nothing is under way: the invariants below. At the end, with all
brokers back and in sync: deletions and reassignments are finished, and every partition is led.

KAFKA_COMPAT_CAMPAIGN=1 makes it long.
"""

from __future__ import annotations

import os

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafka_compat.coordination.controller import events
from kafka_compat.coordination.controller.outcomes import ElectionType, TopicPartition
from tests.coordination.controller.controller_world import World

BROKERS = (1, 2, 3, 4)
TOPICS = ("t", "u")
CAMPAIGN = bool(os.environ.get("KAFKA_COMPAT_CAMPAIGN"))
SETTLING_ROUNDS = 20

brokers = st.sampled_from(BROKERS)
replica_lists = st.lists(brokers, min_size=1, max_size=3, unique=True).map(tuple)


class Cluster(RuleBasedStateMachine):
    """What may happen, and what must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.shutting_down: set[int] = set()
        self.bad_disks: set[int] = set()

    @initialize(unclean=st.sets(st.sampled_from(TOPICS)))
    def begin(self, unclean: set[str]) -> None:
        self.world.unclean = dict.fromkeys(unclean, True)
        for broker in BROKERS[:3]:
            self.world.start_broker(broker)
        self.world.elect()

    @rule(broker=brokers)
    def broker_starts(self, broker: int) -> None:
        self.shutting_down.discard(broker)
        self.bad_disks.discard(broker)
        self.world.start_broker(broker)

    @rule(broker=brokers)
    def broker_stops(self, broker: int) -> None:
        if broker in self.world.brokers:
            self.shutting_down.discard(broker)
            self.bad_disks.discard(broker)
            self.world.stop_broker(broker)

    @rule(broker=brokers)
    def broker_leaves(self, broker: int) -> None:
        if broker in self.world.brokers:
            self.shutting_down.add(broker)
            epoch = self.world.brokers[broker].epoch
            self.world.send(events.ControlledShutdownRequested("shutdown", broker, epoch))

    @rule(broker=brokers, data=st.data())
    def disk_fails(self, broker: int, data: st.DataObject) -> None:
        if broker in self.world.brokers and self.world.states:
            self.bad_disks.add(broker)
            partition = data.draw(self._partitions())
            self.world.send(events.LeaderAndIsrAnswered(broker, 0, {partition: 56}))

    @rule(name=st.sampled_from(TOPICS), replicas=st.lists(replica_lists, min_size=1, max_size=2))
    def topic_appears(self, name: str, replicas: list[tuple[int, ...]]) -> None:
        if name not in self.world.topics:
            self.world.create_topic(name, dict(enumerate(replicas)))

    @rule(name=st.sampled_from(TOPICS), replicas=replica_lists)
    def partition_is_added(self, name: str, replicas: tuple[int, ...]) -> None:
        topic = self.world.topics.get(name)
        if topic is not None and len(topic.replicas) < 4:
            self.world.add_partitions(name, {len(topic.replicas): replicas})

    @rule(name=st.sampled_from(TOPICS))
    def topic_is_deleted(self, name: str) -> None:
        if name in self.world.topics:
            self.world.delete_topic(name)

    @rule(broker=st.one_of(st.none(), brokers), error=st.sampled_from([0, 0, 0, 56]))
    def stops_are_answered(self, broker: int | None, error: int) -> None:
        self.world.answer_stops(broker, error=error)

    @precondition(lambda self: self.world.states)
    @rule(data=st.data(), stale=st.integers(0, 1))
    def isr_moves(self, data: st.DataObject, stale: int) -> None:
        partition = data.draw(self._partitions())
        state = self.world.states[partition]
        replicas = self.world.topics[partition.topic].replicas.get(partition.partition, ())
        others = data.draw(st.lists(st.sampled_from(replicas or BROKERS), unique=True))
        isr = (state.leader, *(broker for broker in others if broker != state.leader))
        if stale:
            self.world.propose_isr(partition, isr, partition_epoch=state.partition_epoch - 1)
        else:
            self.world.propose_isr(partition, isr)

    @precondition(lambda self: self.world.states)
    @rule(data=st.data(), wanted=st.one_of(st.none(), replica_lists))
    def reassignment(self, data: st.DataObject, wanted: tuple[int, ...] | None) -> None:
        self.world.send(events.ReassignmentRequested("reassign", {data.draw(self._partitions()): wanted}))

    @rule()
    def preferred_election(self) -> None:
        self.world.send(events.ElectionRequested("elect", ElectionType.PREFERRED, None))

    @rule()
    def rebalance(self) -> None:
        self.world.send(events.RebalanceTick())

    @rule(name=st.sampled_from(TOPICS))
    def unclean_is_allowed(self, name: str) -> None:
        self.world.unclean[name] = True
        self.world.send(events.UncleanConfigChanged(False, self.world.unclean))

    @rule()
    def store_stalls(self) -> None:
        self.world.hold_writes = True

    @precondition(lambda self: self.world.held)
    @rule(data=st.data())
    def somebody_else_writes(self, data: st.DataObject) -> None:
        assert self.world.held is not None
        partition = data.draw(st.sampled_from([write.partition for write in self.world.held.writes]))
        if partition in self.world.states:
            state = self.world.states[partition]
            self.world.meddle(partition, (state.leader,) if state.leader in state.isr else state.isr)

    @precondition(lambda self: self.world.hold_writes)
    @rule()
    def store_answers(self) -> None:
        self.world.release()

    @rule(written=st.booleans())
    def controller_changes(self, written: bool) -> None:
        if written:
            self.world.release()
        self.shutting_down.clear()
        self.bad_disks.clear()
        self.world.elect()

    @invariant()
    def partitions_are_led(self) -> None:
        if self.world.hold_writes:
            return
        for partition, state in self.world.states.items():
            topic = self.world.topics[partition.topic]
            if partition.topic in self.world.deletions:
                continue
            assert set(state.isr) <= set(topic.replicas[partition.partition]), partition
            able = set(state.isr) & self.world.brokers.keys() - self.shutting_down - self.bad_disks
            if able:
                assert state.leader in self.world.brokers, (partition, state)

    @invariant()
    def brokers_know(self) -> None:
        if self.world.hold_writes:
            return
        for partition, state in self.world.states.items():
            if partition.topic in self.world.deletions:
                continue
            now = (state.leader, state.leader_epoch)
            for metadata in self.world.metadata.values():
                assert (metadata[partition].leader, metadata[partition].leader_epoch) == now, partition
            replicas = self.world.topics[partition.topic].replicas[partition.partition]
            for broker in self.world.brokers.keys() & set(replicas) - self.shutting_down - self.bad_disks:
                told = self.world.beliefs[broker][partition].state
                assert (told.leader, told.leader_epoch) == now, (broker, partition)

    def teardown(self) -> None:
        world = self.world
        if not world.controller.is_active:
            return
        world.release()
        for broker in BROKERS:
            world.start_broker(broker)
        for _ in range(SETTLING_ROUNDS):
            world.answer_stops()
            for partition in sorted(world.states):
                state = world.states.get(partition)
                if state is None or state.leader == -1:
                    continue
                if state.recovering:
                    world.propose_isr(partition, state.isr)
                    state = world.states[partition]
                replicas = world.topics[partition.topic].replicas[partition.partition]
                others = [broker for broker in replicas if broker != state.leader]
                world.propose_isr(partition, (state.leader, *others))
        assert not world.deletions
        for topic in world.topics.values():
            assert not topic.adding_replicas
            assert not topic.removing_replicas
            for index, replicas in topic.replicas.items():
                state = world.states[TopicPartition(topic.name, index)]
                assert state.leader in replicas
                assert set(state.isr) == set(replicas)

    def _partitions(self) -> st.SearchStrategy[TopicPartition]:
        return st.sampled_from(sorted(self.world.states))


TestCluster = Cluster.TestCase
TestCluster.settings = settings(
    max_examples=2000 if CAMPAIGN else 100,
    stateful_step_count=60 if CAMPAIGN else 40,
    deadline=None,
)
