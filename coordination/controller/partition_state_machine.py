"""State machine of partitions: state changes, leader elections and the resulting broker requests.

The table `_FROM` contains all transitions. Other transitions are logged and skipped.
- non-existent -> new.
- new -> online: the first live replica becomes leader with epoch 0, and all live replicas are in sync.
- online or offline -> online: a leader is elected by a strategy, with a higher leader epoch.
- new or online -> offline: the leader failed. offline -> non-existent: the topic is deleted.
"""

from collections.abc import Callable, Sequence
from enum import Enum

from kafka_compat.coordination.controller.context import (
    PAUSE,
    ControllerContext,
    PartitionPhase,
    Procedure,
    change_states,
    each,
    in_steps,
    selected,
    write_states,
)
from kafka_compat.coordination.controller.effects import StateWrite
from kafka_compat.coordination.controller.leader_election import (
    Elected,
    elect_for_reassignment,
    elect_leader,
    elect_on_shutdown,
    elect_preferred,
)
from kafka_compat.coordination.controller.outcomes import CREATE, NO_LEADER, TopicPartition
from kafka_compat.coordination.controller.request_batch import RequestBatch
from kafka_compat.coordination.nodes.cluster_state import PartitionState

_FROM = {
    PartitionPhase.NEW: frozenset({PartitionPhase.NON_EXISTENT}),
    PartitionPhase.ONLINE: frozenset({PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE}),
    PartitionPhase.OFFLINE: frozenset({PartitionPhase.NEW, PartitionPhase.ONLINE, PartitionPhase.OFFLINE}),
    PartitionPhase.NON_EXISTENT: frozenset({PartitionPhase.OFFLINE}),
}


class Strategy(Enum):
    """Leader election strategy. leader_election.py describes the rules."""

    OFFLINE = "offline partition"
    UNCLEAN = "unclean"
    PREFERRED = "preferred replica"
    REASSIGNMENT = "reassignment"
    SHUTDOWN = "controlled shutdown"


class Partitions:
    """The state machine of all partitions."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def load(self, partitions: Sequence[TopicPartition]) -> Procedure[None]:
        """Set the initial states of the partitions: online, offline, or new if there is no state node."""
        context = self._context

        def load_one(partition: TopicPartition) -> None:
            state = context.states.get(partition)
            if state is None:
                phase = PartitionPhase.NEW
            elif context.is_online(partition, state.leader):
                phase = PartitionPhase.ONLINE
            else:
                phase = PartitionPhase.OFFLINE
            context.partition_phases[partition] = phase

        yield from each(partitions, load_one)

    def move(self, partitions: Sequence[TopicPartition], target: PartitionPhase) -> Procedure[None]:
        """Move partitions to the state `target` if the transition is valid. For ONLINE, use `elect`."""
        movable = yield from self._movable(partitions, target)
        self._context.partition_phases.update(dict.fromkeys(movable, target))

    def bring_online(self) -> Procedure[set[TopicPartition]]:
        """Elect leaders for all partitions without a leader. Return the partitions that got a leader."""
        waiting = yield from selected((yield from self._context.partitions()), self._is_leaderless)
        return (yield from self.elect(waiting, Strategy.OFFLINE))

    def elect(
        self, partitions: Sequence[TopicPartition], strategy: Strategy
    ) -> Procedure[set[TopicPartition]]:
        """Elect leaders with `strategy`; new partitions get their first leaders. Return the partitions that
        got a leader.
        """
        context = self._context
        movable = yield from self._movable(partitions, PartitionPhase.ONLINE)
        batch = RequestBatch(context)
        phases = context.partition_phases
        new = yield from selected(movable, lambda partition: phases[partition] is PartitionPhase.NEW)
        led = yield from self._initialize(new, batch)
        others = yield from selected(
            movable, lambda partition: partition not in led and phases[partition] is not PartitionPhase.NEW
        )
        led |= yield from self._elect(others, strategy, batch)
        yield from batch.send()
        return led

    def _is_leaderless(self, partition: TopicPartition) -> bool:
        """Whether an existing partition needs a leader."""
        context = self._context
        state = context.states.get(partition)
        offline = context.partition_phases[partition] is PartitionPhase.OFFLINE
        needs_one = state is None or state.leader == NO_LEADER or offline
        return needs_one and not context.is_deleted(partition.topic)

    def _movable(
        self, partitions: Sequence[TopicPartition], target: PartitionPhase
    ) -> Procedure[list[TopicPartition]]:
        def may_move(partition: TopicPartition) -> bool:
            phase = self._context.partition_phases.get(partition, PartitionPhase.NON_EXISTENT)
            if phase in _FROM[target]:
                return True
            self._context.note(f"Cannot make {partition} {target.value}: it is {phase.value}")
            return False

        return (yield from selected(partitions, may_move))

    def _initialize(
        self, partitions: list[TopicPartition], batch: RequestBatch
    ) -> Procedure[set[TopicPartition]]:
        context = self._context
        writes = []
        for some, long in in_steps(partitions):
            for partition in some:
                replicas = context.assignment(partition).replicas
                alive = context.online(partition, replicas)
                if alive:
                    state = PartitionState(alive[0], 0, alive, context.controller_epoch)
                    writes.append(StateWrite(partition, state, CREATE))
                else:
                    context.note(
                        f"Elected no leader for {partition}: all replicas {list(replicas)} are offline"
                    )
            if long:
                yield PAUSE
        written, conflicts = yield from write_states(context, writes)
        for created, long in in_steps(list(written.items())):
            for partition, state in created:
                context.partition_phases[partition] = PartitionPhase.ONLINE
                batch.leader_and_isr(state.isr, partition, state, is_new=True)
            if long:
                yield PAUSE
        # Keep an existing state: an earlier controller, or a write whose response was lost, created it.
        led = set(written)
        for partition in conflicts:
            found = context.states.get(partition)
            if found is None:
                continue
            if context.is_online(partition, found.leader):
                context.partition_phases[partition] = PartitionPhase.ONLINE
                batch.leader_and_isr(context.assignment(partition).replicas, partition, found, is_new=True)
                led.add(partition)
            else:
                context.partition_phases[partition] = PartitionPhase.OFFLINE
        return led

    def _elect(
        self, partitions: list[TopicPartition], strategy: Strategy, batch: RequestBatch
    ) -> Procedure[set[TopicPartition]]:
        context = self._context
        choose = self._chooser(strategy)

        def decide(partition: TopicPartition, state: PartitionState) -> PartitionState | None:
            elected = choose(partition, state)
            if elected is None:
                return None
            context.unclean_elections += elected.unclean
            return state._replace(
                leader=elected.leader,
                isr=elected.isr,
                leader_epoch=state.leader_epoch + 1,
                recovering=state.recovering or (elected.unclean and context.settings.recovers_leaders),
            )

        elected = yield from change_states(context, partitions, decide)

        def inform(partition: TopicPartition) -> None:
            if partition not in elected:
                context.note(f"Could not elect a leader for {partition} ({strategy.value} election)")
                return
            context.partition_phases[partition] = PartitionPhase.ONLINE
            replicas = context.assignment(partition).replicas
            batch.leader_and_isr(
                context.online(
                    partition, replicas, or_shutting_down=strategy not in (Strategy.OFFLINE, Strategy.UNCLEAN)
                ),
                partition,
                elected[partition],
                is_new=False,
            )

        yield from each(partitions, inform)
        return set(elected)

    def _chooser(self, strategy: Strategy) -> Callable[[TopicPartition, PartitionState], Elected | None]:
        context = self._context

        def choose(partition: TopicPartition, state: PartitionState) -> Elected | None:
            assignment = context.assignment(partition)
            replicas = assignment.replicas
            alive = context.online(partition, replicas)
            match strategy:
                case Strategy.OFFLINE:
                    unclean = context.unclean_allowed(partition.topic)
                    return elect_leader(replicas, state.isr, alive, unclean_allowed=unclean)
                case Strategy.UNCLEAN:
                    return elect_leader(replicas, state.isr, alive, unclean_allowed=True)
                case Strategy.PREFERRED:
                    return elect_preferred(replicas, state.isr, alive)
                case Strategy.REASSIGNMENT:
                    return elect_for_reassignment(assignment.target, state.isr, alive)
                case Strategy.SHUTDOWN:
                    alive = context.online(partition, replicas, or_shutting_down=True)
                    return elect_on_shutdown(replicas, state.isr, alive, context.shutting_down)

        return choose
