"""State machine of replicas. At each state change, the replica's broker may get a request.

The table `_FROM` contains all transitions. Other transitions are logged and skipped.
- non-existent -> new: the broker gets LeaderAndIsr, if there is a leader.
- new -> online: the broker gets no request, because it already got LeaderAndIsr.
- any other state -> online: the broker gets LeaderAndIsr.
- any state except deleted -> offline: the broker gets StopReplica. The replica leaves the ISR, and the other
  replicas get LeaderAndIsr with a higher leader epoch. The last ISR member stays in the ISR, and the
  partition has no leader.
- offline -> deletion started: the broker gets StopReplica with `delete`.
- deletion started -> deletion successful -> non-existent.
- offline or deletion started -> deletion ineligible.
"""

from collections.abc import Sequence

from kafka_compat.coordination.controller.context import (
    PAUSE,
    ControllerContext,
    Procedure,
    Replica,
    ReplicaPhase,
    change_states,
    each,
    in_steps,
)
from kafka_compat.coordination.controller.outcomes import NO_LEADER, TopicPartition
from kafka_compat.coordination.controller.request_batch import RequestBatch
from kafka_compat.coordination.nodes.cluster_state import PartitionState

_LIVING = frozenset(
    {ReplicaPhase.NEW, ReplicaPhase.ONLINE, ReplicaPhase.OFFLINE, ReplicaPhase.DELETION_INELIGIBLE}
)
_FROM = {
    ReplicaPhase.NEW: frozenset({ReplicaPhase.NON_EXISTENT}),
    ReplicaPhase.ONLINE: _LIVING,
    ReplicaPhase.OFFLINE: _LIVING,
    ReplicaPhase.DELETION_STARTED: frozenset({ReplicaPhase.OFFLINE}),
    ReplicaPhase.DELETION_SUCCESSFUL: frozenset({ReplicaPhase.DELETION_STARTED}),
    ReplicaPhase.DELETION_INELIGIBLE: frozenset({ReplicaPhase.OFFLINE, ReplicaPhase.DELETION_STARTED}),
    ReplicaPhase.NON_EXISTENT: frozenset({ReplicaPhase.DELETION_SUCCESSFUL}),
}


class Replicas:
    """The state machine of all replicas."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context

    def load(self, partitions: Sequence[TopicPartition]) -> Procedure[tuple[list[Replica], list[Replica]]]:
        """Set the initial states of replicas: online, or deletion ineligible if a replica is offline. Return
        the online and the offline replicas.
        """
        context = self._context
        online: list[Replica] = []
        offline: list[Replica] = []

        def load_one(partition: TopicPartition) -> None:
            for broker in context.assignment(partition).replicas:
                replica = (partition, broker)
                if context.is_online(partition, broker):
                    context.replica_phases[replica] = ReplicaPhase.ONLINE
                    online.append(replica)
                else:
                    context.replica_phases[replica] = ReplicaPhase.DELETION_INELIGIBLE
                    offline.append(replica)

        yield from each(partitions, load_one)
        return online, offline

    def move(self, replicas: Sequence[Replica], target: ReplicaPhase) -> Procedure[None]:
        """Move replicas to the state `target` if the transition is valid, and send the resulting requests."""
        batch = RequestBatch(self._context)
        by_broker: dict[int, list[TopicPartition]] = {}

        def group(replica: Replica) -> None:
            if self._may_move(*replica, target):
                by_broker.setdefault(replica[1], []).append(replica[0])

        yield from each(replicas, group)
        for broker, partitions in sorted(by_broker.items()):
            for some, long in in_steps(partitions):
                yield from self._move(broker, some, target, batch)
                if long:
                    yield PAUSE
        yield from batch.send()

    def _move(
        self, broker: int, partitions: Sequence[TopicPartition], target: ReplicaPhase, batch: RequestBatch
    ) -> Procedure[None]:
        match target:
            case ReplicaPhase.NEW | ReplicaPhase.ONLINE:
                self._inform(broker, partitions, target, batch)
            case ReplicaPhase.OFFLINE:
                yield from self._to_offline(broker, partitions, batch)
            case ReplicaPhase.DELETION_STARTED:
                for partition in partitions:
                    batch.stop_replica(broker, partition, delete=True)
            case _:
                pass
        for partition in partitions:
            self._set(partition, broker, target)

    def _may_move(self, partition: TopicPartition, broker: int, target: ReplicaPhase) -> bool:
        phase = self._context.replica_phases.get((partition, broker), ReplicaPhase.NON_EXISTENT)
        if phase in _FROM[target]:
            return True
        self._context.note(f"Cannot make replica {broker} of {partition} {target.value}: it is {phase.value}")
        return False

    def _set(self, partition: TopicPartition, broker: int, target: ReplicaPhase) -> None:
        if target is ReplicaPhase.NON_EXISTENT:
            self._context.replica_phases.pop((partition, broker), None)
        else:
            self._context.replica_phases[(partition, broker)] = target

    def _inform(
        self, broker: int, partitions: Sequence[TopicPartition], target: ReplicaPhase, batch: RequestBatch
    ) -> None:
        for partition in partitions:
            state = self._context.states.get(partition)
            is_informed = self._context.replica_phases.get((partition, broker)) is ReplicaPhase.NEW
            if state is not None and not is_informed:
                batch.leader_and_isr([broker], partition, state, is_new=target is ReplicaPhase.NEW)

    def _to_offline(
        self, broker: int, partitions: Sequence[TopicPartition], batch: RequestBatch
    ) -> Procedure[None]:
        context = self._context

        def without(_: TopicPartition, state: PartitionState) -> PartitionState | None:
            if broker not in state.isr:
                return None
            isr = tuple(other for other in state.isr if other != broker) or state.isr
            leader = NO_LEADER if state.leader == broker else state.leader
            return state._replace(leader=leader, isr=isr, leader_epoch=state.leader_epoch + 1)

        for partition in partitions:
            batch.stop_replica(broker, partition, delete=False)
        yield from change_states(context, partitions, without)
        for partition in partitions:
            state = context.states.get(partition)
            if state is None:
                batch.update_metadata(context.brokers, [partition])
            elif not context.is_deleted(partition.topic):
                others = [other for other in context.assignment(partition).replicas if other != broker]
                batch.leader_and_isr(others, partition, state, is_new=False)
