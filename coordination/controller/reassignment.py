"""Reassignments of partitions to other brokers (KIP-455).

Rules:
- Replicas move from the original set (ORS) to the target set (TRS). ARS are the added replicas, and RRS the
  removed replicas.
- First, the topic's node is set to ORS + TRS with ARS and RRS, and replicas that only an earlier target
  needed are stopped at once. All replicas get LeaderAndIsr with a higher leader epoch, and ARS begin to
  follow the leader.
- When TRS is in the ISR, a replica of TRS becomes leader, RRS leave the ISR and are deleted, and the topic's
  node is set to TRS.
- To cancel a reassignment, replicas move back to ORS. This is rejected if no replica of ORS is in sync,
  because records would be lost.
- A topic that is queued for deletion cannot be reassigned. topic_deletion.py describes the reverse case.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from kafka_compat.coordination.controller.context import (
    ControllerContext,
    PartitionPhase,
    Procedure,
    ReplicaPhase,
    change_states,
)
from kafka_compat.coordination.controller.effects import WriteReassignments
from kafka_compat.coordination.controller.outcomes import Assignment, ControllerError, Outcome, TopicPartition
from kafka_compat.coordination.controller.partition_state_machine import Partitions, Strategy
from kafka_compat.coordination.controller.replica_state_machine import Replicas
from kafka_compat.coordination.controller.request_batch import RequestBatch, send_metadata
from kafka_compat.coordination.controller.topic_deletion import Deletions

_UNKNOWN = Outcome(ControllerError.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
_NOTHING_TO_CANCEL = Outcome(
    ControllerError.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
)


class Reassignments:
    """The reassignments of partitions, and the procedures that start, resume, complete and cancel them."""

    def __init__(
        self, context: ControllerContext, replicas: Replicas, partitions: Partitions, deletions: Deletions
    ) -> None:
        self._context = context
        self._replicas = replicas
        self._partitions = partitions
        self._deletions = deletions

    def request(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], may_change_replication_factor: bool
    ) -> Procedure[dict[TopicPartition, Outcome]]:
        """Start reassignments, or cancel them if the target is None. Return an Outcome for each partition."""
        outcomes: dict[TopicPartition, Outcome] = {}
        accepted: dict[TopicPartition, Assignment] = {}
        for partition, target in targets.items():
            current = self._context.assignment(partition)
            if target is None and not current.being_reassigned:
                outcomes[partition] = _NOTHING_TO_CANCEL
                continue
            wanted = current.origin if target is None else target
            refusal = self._refusal(partition, wanted)
            if refusal is None and target is not None and not may_change_replication_factor:
                refusal = _refused_factor(current, target)
            if refusal is None:
                accepted[partition] = current.reassign_to(wanted)
            else:
                outcomes[partition] = refusal
        self._drop_requested(accepted)
        for partition, assignment in accepted.items():
            outcomes[partition] = yield from self._begin(partition, assignment)
        return outcomes

    def begin_legacy(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> Procedure[None]:
        """Start the reassignments in the legacy node that are not in progress yet."""
        context = self._context
        context.requested_reassignments = dict(targets)
        failed = []
        for partition, target in targets.items():
            current = context.assignment(partition)
            wanted = current.reassign_to(target)
            if partition in context.reassigning and wanted == current:
                continue
            # Check the targets here, because any client of the metadata store may have written the node.
            outcome = _refused_target(target, target, ()) or (yield from self._begin(partition, wanted))
            if outcome.error != ControllerError.NONE:
                context.note(f"Could not reassign {partition} to {list(target)}: {outcome.error.name}")
                failed.append(partition)
        self._drop_requested(failed)

    def resume(self, partitions: Iterable[TopicPartition]) -> Procedure[None]:
        """Resume the reassignments of these partitions, at the beginning of a term."""
        for partition in sorted(self._context.reassigning & set(partitions)):
            yield from self._advance(partition, self._context.assignment(partition))

    def complete(self, partitions: Iterable[TopicPartition]) -> Procedure[None]:
        """Complete each reassignment of these partitions whose target replicas are all in sync."""
        for partition in sorted(self._context.reassigning & set(partitions)):
            assignment = self._context.assignment(partition)
            if self._is_complete(partition, assignment):
                yield from self._advance(partition, assignment)

    def under_way(self, partitions: Iterable[TopicPartition] | None) -> dict[TopicPartition, Assignment]:
        """Return the assignments of all partitions being reassigned, or only of `partitions` if not None."""
        context = self._context
        found = context.reassigning if partitions is None else context.reassigning.intersection(partitions)
        assignments = {partition: context.assignment(partition) for partition in sorted(found)}
        return {partition: each for partition, each in assignments.items() if each.being_reassigned}

    def _refusal(self, partition: TopicPartition, target: tuple[int, ...]) -> Outcome | None:
        present = self._context.assignment(partition)
        refused = _refused_target(target, present.origin, self._context.live_brokers())
        if refused is not None:
            return refused
        assignment = present.reassign_to(target)
        state = self._context.states.get(partition)
        if state is not None and not set(state.isr) & set(assignment.replicas):
            invalid = ControllerError.INVALID_REPLICA_ASSIGNMENT
            return Outcome(invalid, f"None of the replicas {list(assignment.replicas)} is in sync")
        return None

    def _begin(self, partition: TopicPartition, assignment: Assignment) -> Procedure[Outcome]:
        if self._context.is_deleted(partition.topic) or not self._context.exists(partition):
            return _UNKNOWN
        yield from self._advance(partition, assignment)
        return Outcome(ControllerError.NONE)

    def _advance(self, partition: TopicPartition, assignment: Assignment) -> Procedure[None]:
        context = self._context
        self._deletions.halt({partition.topic})
        yield from self._adopt(partition, assignment)
        if self._is_complete(partition, assignment):
            yield from self._finish(partition, assignment)
            return
        yield from self._tell(partition, assignment)
        new = [
            (partition, broker)
            for broker in assignment.adding
            if (partition, broker) not in context.replica_phases
        ]
        yield from self._replicas.move(new, ReplicaPhase.NEW)

    def _adopt(self, partition: TopicPartition, assignment: Assignment) -> Procedure[None]:
        context = self._context
        current = context.assignment(partition)
        context.reassigning.add(partition)
        if current != assignment:
            context.write_assignment(partition, assignment)
            unneeded = [broker for broker in current.replicas if broker not in assignment.replicas]
            yield from self._remove(partition, unneeded)

    def _is_complete(self, partition: TopicPartition, assignment: Assignment) -> bool:
        if not assignment.being_reassigned:
            return True
        state = self._context.states.get(partition)
        return state is not None and set(assignment.target) <= set(state.isr)

    def _finish(self, partition: TopicPartition, assignment: Assignment) -> Procedure[None]:
        context = self._context
        added = [(partition, broker) for broker in assignment.adding]
        yield from self._replicas.move(added, ReplicaPhase.ONLINE)
        completed = Assignment(assignment.target)
        context.assignments[partition.topic][partition.partition] = completed
        yield from self._move_leader(partition, completed)
        yield from self._remove(partition, assignment.removing)
        context.write_topic(partition.topic)
        if context.requested_reassignments.get(partition) == completed.replicas:
            self._drop_requested([partition])
        context.reassigning.discard(partition)
        yield from send_metadata(context, context.brokers, [partition])
        yield from self._deletions.resume({partition.topic})

    def _move_leader(self, partition: TopicPartition, completed: Assignment) -> Procedure[None]:
        state = self._context.states.get(partition)
        if state is None:
            return
        if state.leader in completed.replicas and self._context.is_online(partition, state.leader):
            yield from self._tell(partition, completed)
        else:
            yield from self._partitions.elect([partition], Strategy.REASSIGNMENT)

    def _remove(self, partition: TopicPartition, brokers: Iterable[int]) -> Procedure[None]:
        replicas = [(partition, broker) for broker in brokers]
        for phase in (
            ReplicaPhase.OFFLINE,
            ReplicaPhase.DELETION_STARTED,
            ReplicaPhase.DELETION_SUCCESSFUL,
            ReplicaPhase.NON_EXISTENT,
        ):
            yield from self._replicas.move(replicas, phase)

    def _tell(self, partition: TopicPartition, assignment: Assignment) -> Procedure[None]:
        """Increment the leader epoch, and send LeaderAndIsr to all replicas (`is_new` for added replicas)."""
        context = self._context
        if context.partition_phases.get(partition) is PartitionPhase.NEW:
            yield from self._partitions.elect([partition], Strategy.OFFLINE)
        raised = yield from change_states(
            context, [partition], lambda _, state: state._replace(leader_epoch=state.leader_epoch + 1)
        )
        state = raised.get(partition)
        if state is None:
            return
        batch = RequestBatch(context)
        batch.leader_and_isr(assignment.origin, partition, state, is_new=False)
        batch.leader_and_isr(assignment.adding, partition, state, is_new=True)
        yield from batch.send()

    def _drop_requested(self, partitions: Iterable[TopicPartition]) -> None:
        context = self._context
        done = context.requested_reassignments.keys() & set(partitions)
        if done:
            for partition in done:
                del context.requested_reassignments[partition]
            left = dict(context.requested_reassignments)
            context.effects.append(WriteReassignments(left, context.epoch_znode_version))


def _refused_target(
    target: Sequence[int], present: Collection[int], live_brokers: Collection[int]
) -> Outcome | None:
    """Return Kafka's error if a partition cannot move from `present` to `target`, or None if it can."""
    problem = None
    added = [broker for broker in target if broker not in present]
    if not target:
        problem = "Empty replica list specified in partition reassignment."
    elif len(set(target)) != len(target):
        twice = _scala("ArrayBuffer", target)
        problem = f"Duplicate replica ids in partition reassignment replica list: {twice}"
    elif min(target) < 0:
        problem = f"Invalid broker id in replica list: {_scala('ArrayBuffer', target)}"
    elif not set(added) <= set(live_brokers):
        problem = (
            "Replica assignment has brokers that are not alive. "
            f"Replica list: {_scala('ArrayBuffer', added)}, live broker list: {_scala('Set', live_brokers)}"
        )
    return None if problem is None else Outcome(ControllerError.INVALID_REPLICA_ASSIGNMENT, problem)


def _refused_factor(current: Assignment, target: tuple[int, ...]) -> Outcome | None:
    """Return Kafka's error if `target` changes the number of replicas of an existing partition (KIP-860)."""
    before, after = len(current.target), len(target)
    if before in (0, after):
        return None
    changed = f"The replication factor is changed from {before} to {after}"
    return Outcome(ControllerError.INVALID_REPLICATION_FACTOR, changed)


def _scala(kind: str, numbers: Collection[int]) -> str:
    return f"{kind}({', '.join(map(str, numbers))})"
