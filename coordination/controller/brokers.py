"""Controller procedures for brokers that join, fail, restart or shut down.

Rules:
- A new broker receives the metadata of all partitions before LeaderAndIsr for its own partitions.
- Partitions led by a failed broker first get new leaders. Then the broker is removed from other ISRs.
- A broker that returns with a higher epoch before its failure is detected is handled as failed, then as new.
- A broker that is shutting down still receives requests, but never becomes leader and never joins an ISR.
"""

from collections.abc import Iterable

from kafka_compat.coordination.controller import outcomes
from kafka_compat.coordination.controller.context import (
    ControllerContext,
    PartitionPhase,
    Procedure,
    Replica,
    ReplicaPhase,
    each,
    selected,
)
from kafka_compat.coordination.controller.effects import ControlledShutdownReply
from kafka_compat.coordination.controller.events import LeaderAndIsrAnswered
from kafka_compat.coordination.controller.outcomes import ControllerError, TopicPartition
from kafka_compat.coordination.controller.partition_state_machine import Partitions, Strategy
from kafka_compat.coordination.controller.reassignment import Reassignments
from kafka_compat.coordination.controller.replica_state_machine import Replicas
from kafka_compat.coordination.controller.request_batch import RequestBatch, send_metadata
from kafka_compat.coordination.controller.topic_deletion import Deletions
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo


class Brokers:
    """The registered brokers, and the procedures that handle their changes."""

    def __init__(
        self,
        context: ControllerContext,
        replicas: Replicas,
        partitions: Partitions,
        deletions: Deletions,
        reassignments: Reassignments,
    ) -> None:
        self._context = context
        self._replicas = replicas
        self._partitions = partitions
        self._deletions = deletions
        self._reassignments = reassignments

    def changed(self, registered: Iterable[BrokerInfo]) -> Procedure[None]:
        """Process changed broker registrations. `registered` contains all registered brokers."""
        known = self._context.brokers
        now = {broker.broker_id: broker for broker in registered}
        both = known.keys() & now.keys()
        new = [now[broker] for broker in sorted(now.keys() - known.keys())]
        bounced = [now[broker] for broker in sorted(both) if now[broker].epoch > known[broker].epoch]
        dead = sorted(known.keys() - now.keys())
        moved = [
            now[broker]
            for broker in both
            if now[broker].epoch == known[broker].epoch and now[broker] != known[broker]
        ]
        yield from self._started(new)
        yield from self._failed([broker.broker_id for broker in bounced])
        yield from self._started(bounced)
        yield from self._failed(dead)
        if moved:
            known.update({broker.broker_id: broker for broker in moved})
            yield from send_metadata(self._context, known, [])

    def shutdown(self, broker: int, broker_epoch: int) -> Procedure[ControlledShutdownReply]:
        """Move leadership from a broker that is shutting down. Return the partitions that it still leads, and
        that another broker may lead later: waiting is of no use if all other replicas are stopping, too.
        """
        context = self._context
        info = context.brokers.get(broker)
        if info is None:
            return ControlledShutdownReply(ControllerError.BROKER_NOT_AVAILABLE)
        if broker_epoch != outcomes.UNKNOWN_BROKER_EPOCH and broker_epoch < info.epoch:
            return ControlledShutdownReply(ControllerError.STALE_BROKER_EPOCH)
        context.shutting_down.add(broker)
        led: list[TopicPartition] = []
        followed: list[TopicPartition] = []

        def sort_out(replica: Replica) -> None:
            partition = replica[0]
            state = context.states.get(partition)
            alone = len(context.assignment(partition).replicas) == 1
            if state is not None and not alone and not context.is_deleted(partition.topic):
                (led if state.leader == broker else followed).append(partition)

        yield from each((yield from context.replicas_on([broker])), sort_out)
        yield from self._partitions.elect(led, Strategy.SHUTDOWN)
        batch = RequestBatch(context)
        yield from each(followed, lambda partition: batch.stop_replica(broker, partition, delete=False))
        yield from batch.send()
        yield from self._replicas.move([(partition, broker) for partition in followed], ReplicaPhase.OFFLINE)
        remaining = tuple(
            partition
            for partition in led
            if context.states[partition].leader == broker
            and not context.shutting_down.issuperset(context.assignment(partition).replicas)
        )
        return ControlledShutdownReply(ControllerError.NONE, remaining)

    def log_dirs_failed(self, brokers: Iterable[int]) -> Procedure[None]:
        """Request the state of all replicas from these brokers, after a log directory failure."""
        replicas = yield from self._context.replicas_on(brokers)
        yield from self._replicas.move(replicas, ReplicaPhase.ONLINE)

    def answered(self, answer: LeaderAndIsrAnswered) -> Procedure[None]:
        """Handle a LeaderAndIsr response, which may report replicas on failed disks."""
        context = self._context
        if answer.error != ControllerError.NONE or answer.broker_id not in context.brokers:
            return
        offline = context.offline_dirs.setdefault(answer.broker_id, set())
        before = set(offline)
        for partition, error in answer.partitions.items():
            if error == ControllerError.NONE:
                offline.discard(partition)
            elif error == ControllerError.KAFKA_STORAGE_ERROR and context.exists(partition):
                offline.add(partition)
        gone = sorted(offline - before)
        if gone:
            yield from self._offline([(partition, answer.broker_id) for partition in gone])

    def _started(self, brokers: list[BrokerInfo]) -> Procedure[None]:
        if not brokers:
            return
        context = self._context
        ids = {broker.broker_id for broker in brokers}
        context.brokers.update({broker.broker_id: broker for broker in brokers})
        for broker in ids:
            context.offline_dirs.pop(broker, None)
        yield from send_metadata(context, context.brokers.keys() - ids, [])
        known = yield from selected(
            (yield from context.partitions()), lambda partition: not context.is_deleted(partition.topic)
        )
        yield from send_metadata(context, ids, known)
        replicas = yield from context.replicas_on(ids)
        settled = (ReplicaPhase.DELETION_STARTED, ReplicaPhase.DELETION_SUCCESSFUL)
        returning = [replica for replica in replicas if context.replica_phases.get(replica) not in settled]
        yield from self._replicas.move(returning, ReplicaPhase.ONLINE)
        yield from self._partitions.bring_online()
        concerned = [
            partition for partition in context.reassigning if ids & set(context.assignment(partition).target)
        ]
        yield from self._reassignments.resume(concerned)
        yield from self._deletions.resume({partition.topic for partition, _ in replicas})

    def _failed(self, brokers: list[int]) -> Procedure[None]:
        if not brokers:
            return
        context = self._context
        for broker in brokers:
            context.brokers.pop(broker)
            context.shutting_down.discard(broker)
            context.offline_dirs.pop(broker, None)
        yield from self._offline((yield from context.replicas_on(brokers)))

    def _offline(self, replicas: list[Replica]) -> Procedure[None]:
        context = self._context

        def is_led_offline(partition: TopicPartition) -> bool:
            state = context.states.get(partition)
            offline = state is not None and not context.is_online(partition, state.leader)
            return offline and not context.is_deleted(partition.topic)

        leaderless = yield from selected((yield from context.partitions()), is_led_offline)
        yield from self._partitions.move(leaderless, PartitionPhase.OFFLINE)
        led = yield from self._partitions.bring_online()
        kept = yield from selected(replicas, lambda replica: not context.is_deleted(replica[0].topic))
        yield from self._replicas.move(kept, ReplicaPhase.OFFLINE)
        yield from self._deletions.fail((yield from selected(replicas, self._is_going)))
        if not kept and not led:
            yield from send_metadata(context, context.brokers, [])

    def _is_going(self, replica: Replica) -> bool:
        partition: TopicPartition = replica[0]
        return self._context.is_deleted(partition.topic) and self._context.replica_phases.get(replica) in (
            ReplicaPhase.OFFLINE,
            ReplicaPhase.DELETION_STARTED,
        )
