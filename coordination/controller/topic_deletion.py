"""Topic deletion by the controller: its steps, and the conditions that delay it.

Rules:
- After the request, the topic's partitions have no leader, and clients receive metadata without a leader.
- The brokers of all replicas are asked to delete their logs. After that, the topic's nodes are deleted.
- A topic is ineligible while any of its brokers is offline or a replica could not be deleted. The deletion
  resumes when the broker returns.
- A topic whose partitions are being reassigned is deleted with all of its current replicas. As in Kafka, a
  controller waits for a reassignment only if it finds both the reassignment and the deletion at the start of
  its term.
"""

from collections.abc import Collection, Iterable

from kafka_compat.coordination.controller.context import (
    ControllerContext,
    PartitionPhase,
    Procedure,
    Replica,
    ReplicaPhase,
)
from kafka_compat.coordination.controller.effects import ClearDeletions, DeleteTopicNodes
from kafka_compat.coordination.controller.events import StopReplicaAnswered
from kafka_compat.coordination.controller.outcomes import ControllerError
from kafka_compat.coordination.controller.partition_state_machine import Partitions
from kafka_compat.coordination.controller.replica_state_machine import Replicas
from kafka_compat.coordination.controller.request_batch import send_metadata


class Deletions:
    """The pending topic deletions, and the procedures that advance them."""

    def __init__(self, context: ControllerContext, replicas: Replicas, partitions: Partitions) -> None:
        self._context = context
        self._replicas = replicas
        self._partitions = partitions

    def load(self, topics: Iterable[str]) -> None:
        """Set the pending deletions, at the beginning of a term."""
        context = self._context
        context.deletions.update(self._deletable(topics))
        for topic in context.deletions:
            for partition, broker in context.replicas_of(context.partitions_of(topic)):
                if not context.is_online(partition, broker) or partition in context.reassigning:
                    self.halt({topic})

    def request(self, topics: Iterable[str]) -> Procedure[None]:
        """Add topics to the pending deletions, and advance the deletions."""
        context = self._context
        deletable = self._deletable(topics)
        context.deletions.update(deletable)
        if deletable:
            yield from self.go_on()

    def halt(self, topics: Collection[str]) -> None:
        """Mark topics as ineligible for deletion, if their deletion is pending."""
        self._context.deletions_ineligible |= self._context.deletions & set(topics)

    def resume(self, topics: Collection[str]) -> Procedure[None]:
        """Mark topics as eligible for deletion, if their deletion is pending, and advance the deletion."""
        resumed = self._context.deletions & set(topics)
        if resumed:
            self._context.deletions_ineligible -= resumed
            yield from self.go_on()

    def fail(self, replicas: Iterable[Replica]) -> Procedure[None]:
        """Mark failed or offline replicas as ineligible for deletion, and advance the deletions."""
        failed = [replica for replica in replicas if self._context.is_deleted(replica[0].topic)]
        if failed:
            yield from self._replicas.move(failed, ReplicaPhase.DELETION_INELIGIBLE)
            self.halt({partition.topic for partition, _ in failed})
            yield from self.go_on()

    def answered(self, answer: StopReplicaAnswered) -> Procedure[None]:
        """Handle a broker's StopReplica response for replicas to delete."""
        context = self._context
        deleted: list[Replica] = []
        failed: list[Replica] = []
        for partition, error in answer.partitions.items():
            if partition.topic not in context.deletions_begun:
                continue
            ok = answer.error == ControllerError.NONE and error == ControllerError.NONE
            replica = (partition, answer.broker_id)
            if context.replica_phases.get(replica) is ReplicaPhase.DELETION_STARTED:
                (deleted if ok else failed).append(replica)
        yield from self.fail(failed)
        if deleted:
            yield from self._replicas.move(deleted, ReplicaPhase.DELETION_SUCCESSFUL)
            yield from self.go_on()

    def go_on(self) -> Procedure[None]:
        """Advance all pending deletions as far as possible."""
        context = self._context
        retried: list[Replica] = []
        eligible = []
        complete = []
        for topic in sorted(context.deletions):
            replicas = context.replicas_of(context.partitions_of(topic))
            phases = {context.replica_phases.get(replica) for replica in replicas}
            if phases <= {ReplicaPhase.DELETION_SUCCESSFUL}:
                yield from self._complete(topic, replicas)
                complete.append(topic)
            elif ReplicaPhase.DELETION_STARTED not in phases:
                retried += [
                    replica
                    for replica in replicas
                    if context.replica_phases.get(replica) is ReplicaPhase.DELETION_INELIGIBLE
                ]
                if topic not in context.deletions_ineligible:
                    eligible.append(topic)
        if complete:
            context.effects.append(DeleteTopicNodes(tuple(complete), context.epoch_znode_version))
        if retried:
            yield from self._replicas.move(retried, ReplicaPhase.OFFLINE)
        if eligible:
            yield from self._begin(eligible)

    def _deletable(self, topics: Iterable[str]) -> set[str]:
        context = self._context
        wanted = set(topics)
        deletable = wanted & context.assignments.keys() if context.settings.delete_topic_enable else set()
        if wanted - deletable:
            context.effects.append(
                ClearDeletions(tuple(sorted(wanted - deletable)), context.epoch_znode_version)
            )
        return deletable

    def _complete(self, topic: str, replicas: list[Replica]) -> Procedure[None]:
        context = self._context
        yield from self._replicas.move(replicas, ReplicaPhase.NON_EXISTENT)
        topic_id = context.topic_ids[topic]
        if topic_id is not None:
            context.note_deleted(topic_id)
        context.remove_topic(topic)

    def _begin(self, topics: list[str]) -> Procedure[None]:
        context = self._context
        partitions = [partition for topic in topics for partition in context.partitions_of(topic)]
        unseen = [partition for partition in partitions if partition.topic not in context.deletions_begun]
        yield from self._partitions.move(unseen, PartitionPhase.OFFLINE)
        yield from self._partitions.move(unseen, PartitionPhase.NON_EXISTENT)
        context.deletions_begun.update(topics)
        yield from send_metadata(context, context.brokers, partitions)
        dead, to_delete = [], []
        for replica in context.replicas_of(partitions):
            if not context.is_online(*replica):
                dead.append(replica)
            elif context.replica_phases.get(replica) is not ReplicaPhase.DELETION_SUCCESSFUL:
                to_delete.append(replica)
        offline = [replica for replica in dead if context.replica_phases.get(replica) is ReplicaPhase.OFFLINE]
        yield from self._replicas.move(offline, ReplicaPhase.DELETION_INELIGIBLE)
        yield from self._replicas.move(to_delete, ReplicaPhase.OFFLINE)
        yield from self._replicas.move(to_delete, ReplicaPhase.DELETION_STARTED)
        self.halt({partition.topic for partition, _ in dead})
