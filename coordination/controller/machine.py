"""The controller as a state machine without I/O: it takes events, elects leaders and returns effects.

It behaves like the controller of Kafka 3.9 in ZooKeeper mode. Rules:
- Effects must be carried out in order, including those of several calls of `handle`.
- A state is sent to brokers only after it was written. Until the StatesWritten of a WriteStates arrives,
  other events are queued in order. Events are not delayed for any other reason.
- If the version of a partition's node differs from the known version, the node is authoritative: the
  controller adopts the state in the node and decides again.
- A term begins with Elected, which contains the whole state. Metadata is sent before any LeaderAndIsr.
- Resigned discards all state. Pending requests get NOT_CONTROLLER.

The imported modules document their own rules.
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence, Set
from typing import NamedTuple
from uuid import UUID

from kafka_compat.coordination.controller import effects, events, outcomes
from kafka_compat.coordination.controller.brokers import Brokers
from kafka_compat.coordination.controller.context import (
    ControllerContext,
    PartitionPhase,
    Procedure,
    ReplicaPhase,
)
from kafka_compat.coordination.controller.effects import Effect, Reply
from kafka_compat.coordination.controller.events import Elected, Event
from kafka_compat.coordination.controller.isr_changes import alter_partitions, altered
from kafka_compat.coordination.controller.outcomes import ControllerError, TopicPartition
from kafka_compat.coordination.controller.partition_state_machine import Partitions, Strategy
from kafka_compat.coordination.controller.reassignment import Reassignments
from kafka_compat.coordination.controller.replica_state_machine import Replicas
from kafka_compat.coordination.controller.request_batch import send_metadata
from kafka_compat.coordination.controller.requested_elections import Elections
from kafka_compat.coordination.controller.topic_deletion import Deletions
from kafka_compat.coordination.nodes.cluster_state import PartitionState


class DeletionCounts(NamedTuple):
    """Numbers of topics and replicas to delete: all, and those currently ineligible for deletion."""

    topics: int = 0
    topics_ineligible: int = 0
    replicas: int = 0
    replicas_ineligible: int = 0


class Controller:
    """The controller of one broker. It is active from Elected to Resigned, and may be elected again."""

    def __init__(self, broker_id: int, settings: outcomes.ControllerSettings | None = None) -> None:
        self.broker_id = broker_id
        self._settings = settings or outcomes.ControllerSettings()
        self._term: _Term | None = None
        self._waiting: deque[Event] = deque()
        self._current: Event | None = None
        self._procedure: Procedure[None] | None = None
        self._write_id = 0

    @property
    def topics(self) -> Set[str]:
        """A live view of the topics that the controller knows."""
        return frozenset() if self._term is None else self._term.context.assignments.keys()

    @property
    def unclean_elections(self) -> int:
        """The number of unclean leader elections in this term."""
        return 0 if self._term is None else self._term.context.unclean_elections

    @property
    def deletions(self) -> DeletionCounts:
        if self._term is None or not self._term.context.deletions:
            return DeletionCounts()
        context = self._term.context
        phases = [
            context.replica_phases.get((partition, broker))
            for topic in context.deletions
            for partition in context.partitions_of(topic)
            for broker in context.assignment(partition).replicas
        ]
        return DeletionCounts(
            len(context.deletions),
            len(context.deletions_ineligible),
            sum(phase is not ReplicaPhase.DELETION_SUCCESSFUL for phase in phases),
            sum(phase is ReplicaPhase.DELETION_INELIGIBLE for phase in phases),
        )

    def topic_named(self, topic_id: UUID) -> str | None:
        """Return the name of the topic with this ID, or None if it is unknown."""
        return None if self._term is None else self._term.context.topic_names.get(topic_id)

    def handle(self, event: Event) -> list[Effect]:
        """Handle an event, and return the effects in order."""
        if isinstance(event, events.Resigned):
            return self._resign()
        due = self._resign() if isinstance(event, Elected) else []
        if isinstance(event, events.StatesWritten):
            if self._procedure is not None and event.write_id == self._write_id:
                self._advance(event, due)
        else:
            self._waiting.append(event)
        while self._procedure is None and self._waiting:
            self._begin(self._waiting.popleft(), due)
        return due

    def _begin(self, event: Event, due: list[Effect]) -> None:
        if isinstance(event, Elected):
            self._term = _Term(self._settings, event)
        if self._term is None:
            due.extend(_refusal(event))
            return
        self._current = event
        self._procedure = self._term.procedure(event)
        self._advance(None, due)

    def _advance(self, outcome: events.StatesWritten | None, due: list[Effect]) -> None:
        assert self._procedure is not None
        assert self._term is not None
        context = self._term.context
        writes: Sequence[effects.StateWrite] = ()
        try:
            writes = next(self._procedure) if outcome is None else self._procedure.send(outcome)
        except StopIteration:
            self._procedure = self._current = None
        due.extend(context.effects)
        context.effects.clear()
        if self._procedure is not None:
            self._write_id += 1
            due.append(effects.WriteStates(self._write_id, tuple(writes), context.epoch_znode_version))

    def _resign(self) -> list[Effect]:
        abandoned = ([] if self._current is None else [self._current]) + list(self._waiting)
        self._term = self._procedure = self._current = None
        self._waiting.clear()
        return [effect for event in abandoned for effect in _refusal(event)]


class _Term:
    def __init__(self, settings: outcomes.ControllerSettings, elected: Elected) -> None:
        self.context = ControllerContext(settings, elected)
        self._replicas = Replicas(self.context)
        self._partitions = Partitions(self.context)
        self._deletions = Deletions(self.context, self._replicas, self._partitions)
        self._reassignments = Reassignments(self.context, self._replicas, self._partitions, self._deletions)
        self._elections = Elections(self.context, self._partitions)
        self._brokers = Brokers(
            self.context, self._replicas, self._partitions, self._deletions, self._reassignments
        )

    def procedure(self, event: Event) -> Procedure[None]:
        match event:
            case Elected():
                yield from self._take_over(event)
            case events.BrokersChanged():
                yield from self._brokers.changed(event.brokers)
            case events.TopicsChanged():
                yield from self._topics_changed(event)
            case events.PartitionsChanged():
                yield from self._partitions_changed(event)
            case events.DeletionsRequested():
                yield from self._deletions.request(event.topics)
            case events.AlterPartitionRequested():
                reply = yield from alter_partitions(self.context, event)
                self._reply(event.request_id, reply)
                yield from self._reassignments.complete(altered(reply))
            case events.ControlledShutdownRequested():
                left = yield from self._brokers.shutdown(event.broker_id, event.broker_epoch)
                self._reply(event.request_id, left)
            case events.ElectionRequested():
                elected = yield from self._elections.request(event.election, event.partitions)
                self._reply(event.request_id, effects.ElectionReply(ControllerError.NONE, elected))
            case events.PreferredElectionFound():
                yield from self._elect_preferred(event.partitions)
            case events.ReassignmentRequested():
                begun = yield from self._reassignments.request(
                    event.targets, event.may_change_replication_factor
                )
                self._reply(event.request_id, effects.ReassignmentReply(ControllerError.NONE, begun))
            case events.ReassignmentFound():
                yield from self._reassignments.begin_legacy(event.targets)
            case events.ReassignmentsListed():
                under_way = self._reassignments.under_way(event.partitions)
                self._reply(event.request_id, effects.ReassignmentsReply(ControllerError.NONE, under_way))
            case events.UncleanConfigChanged():
                self.context.unclean_default = event.default
                self.context.unclean_topics = dict(event.topics)
                yield from self._partitions.bring_online()
            case events.LeaderAndIsrAnswered():
                yield from self._brokers.answered(event)
            case events.StopReplicaAnswered():
                yield from self._deletions.answered(event)
            case events.LogDirsFailed():
                yield from self._brokers.log_dirs_failed(event.broker_ids)
            case events.IsrChangesFound():
                yield from self._isrs_changed(event)
            case events.StatesMended():
                yield from self._adopt(
                    {key: state for key, state in event.states.items() if key not in self.context.states}
                )
            case events.RebalanceTick():
                yield from self._elections.rebalance()
            case events.Resigned() | events.StatesWritten():
                pass

    def _isrs_changed(self, event: events.IsrChangesFound) -> Procedure[None]:
        context = self.context
        known = {key: state for key, state in event.states.items() if context.exists(key)}
        context.states.update(known)
        yield from send_metadata(context, context.brokers, known)
        yield from self._reassignments.complete(known)

    def _reply(self, request_id: Hashable, value: effects.ReplyValue) -> None:
        self.context.effects.append(Reply(request_id, value))

    def _take_over(self, elected: Elected) -> Procedure[None]:
        context = self.context
        yield from context.load(elected)
        self._deletions.load(elected.deletions)
        yield from send_metadata(context, context.brokers, [])
        yield from self._load_replicas((yield from context.partitions()))
        yield from self._partitions.bring_online()
        yield from self._reassignments.resume(context.reassigning)
        if elected.reassignments:
            yield from self._reassignments.begin_legacy(elected.reassignments)
        yield from self._deletions.go_on()
        if elected.preferred_elections:
            yield from self._elect_preferred(elected.preferred_elections)

    def _elect_preferred(self, partitions: Sequence[TopicPartition]) -> Procedure[None]:
        yield from self._elections.request(outcomes.ElectionType.PREFERRED, partitions)
        self.context.effects.append(effects.ClearPreferredElection(self.context.epoch_znode_version))

    def _topics_changed(self, event: events.TopicsChanged) -> Procedure[None]:
        context = self.context
        for topic in context.assignments.keys() - event.names:
            context.remove_topic(topic)
        added = []
        for loaded in event.loaded:
            known = loaded.name in context.assignments or loaded.topic_id in context.deleted_ids
            if loaded.name in event.names and not known:
                added += context.add_topic(loaded)
        yield from self._create([partition for partition in added if partition not in event.states])
        yield from self._adopt({key: event.states[key] for key in added if key in event.states})

    def _partitions_changed(self, event: events.PartitionsChanged) -> Procedure[None]:
        context = self.context
        topic = event.topic.name
        if topic not in context.assignments:
            return
        if not context.is_deleted(topic):
            yield from self._create(context.add_topic(event.topic))
        elif event.topic.replicas.keys() - context.assignments[topic].keys():
            context.note(f"Ignored new partitions of topic {topic}: it is being deleted")
            context.write_topic(topic, keeps_added=False)

    def _adopt(self, states: Mapping[TopicPartition, PartitionState]) -> Procedure[None]:
        """Add these partitions with their existing states, as at the beginning of a term."""
        context = self.context
        found = {
            partition: state
            for partition, state in states.items()
            if context.exists(partition) and not context.is_deleted(partition.topic)
        }
        if not found:
            return
        context.states.update(found)
        context.reassigning.update(key for key in found if context.assignment(key).being_reassigned)
        yield from self._load_replicas(list(found))
        yield from self._partitions.bring_online()
        yield from self._reassignments.resume(context.reassigning & found.keys())

    def _load_replicas(self, partitions: Sequence[TopicPartition]) -> Procedure[None]:
        online, offline = yield from self._replicas.load(partitions)
        yield from self._replicas.move(online, ReplicaPhase.ONLINE)
        yield from self._replicas.move(offline, ReplicaPhase.OFFLINE)
        yield from self._partitions.load(partitions)

    def _create(self, partitions: list[TopicPartition]) -> Procedure[None]:
        replicas = self.context.replicas_of(partitions)
        yield from self._partitions.move(partitions, PartitionPhase.NEW)
        yield from self._replicas.move(replicas, ReplicaPhase.NEW)
        yield from self._partitions.elect(partitions, Strategy.OFFLINE)
        yield from self._replicas.move(replicas, ReplicaPhase.ONLINE)


def _refusal(event: Event) -> list[Effect]:
    error = ControllerError.NOT_CONTROLLER
    match event:
        case events.AlterPartitionRequested(request_id):
            return [Reply(request_id, effects.AlterPartitionReply(error))]
        case events.ControlledShutdownRequested(request_id):
            return [Reply(request_id, effects.ControlledShutdownReply(error))]
        case events.ElectionRequested(request_id):
            return [Reply(request_id, effects.ElectionReply(error))]
        case events.ReassignmentRequested(request_id):
            return [Reply(request_id, effects.ReassignmentReply(error))]
        case events.ReassignmentsListed(request_id):
            return [Reply(request_id, effects.ReassignmentsReply(error))]
        case _:
            return []
