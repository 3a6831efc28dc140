"""A simulated cluster for controller tests: a store of topics and versioned states, and brokers that apply
the requests that they receive. No I/O and no clock; all events are recorded as text lines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from uuid import UUID

from kafka_compat.coordination.controller import effects, events, outcomes
from kafka_compat.coordination.controller.effects import (
    AlterPartitionReply,
    ClearDeletions,
    ClearPreferredElection,
    DeleteTopicNodes,
    Effect,
    LeaderAndIsrPartition,
    Note,
    Reply,
    ReplyValue,
    SendLeaderAndIsr,
    SendStopReplica,
    SendUpdateMetadata,
    WriteReassignments,
    WriteStates,
    WriteTopic,
)
from kafka_compat.coordination.controller.events import Event
from kafka_compat.coordination.controller.machine import Controller
from kafka_compat.coordination.controller.outcomes import TopicPartition
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, Endpoint, PartitionState, TopicState


class World:
    """The store, the brokers, and the current controller.

    `beliefs` contains each live broker's partitions from LeaderAndIsr requests, `metadata` those from
    UpdateMetadata requests. `unanswered` contains the StopReplica requests that brokers have not responded to
    yet.
    """

    def __init__(self, settings: outcomes.ControllerSettings | None = None) -> None:
        self.settings = settings or outcomes.ControllerSettings()
        self.controller = Controller(0, self.settings)
        self.controller_epoch = 0
        self.next_epoch = 0
        self.next_topic_id = 1
        self.brokers: dict[int, BrokerInfo] = {}
        self.topics: dict[str, TopicState] = {}
        self.states: dict[TopicPartition, PartitionState] = {}
        self.deletions: set[str] = set()
        self.unclean: dict[str, bool] = {}
        self.unclean_requested = False
        self.beliefs: dict[int, dict[TopicPartition, LeaderAndIsrPartition]] = {}
        self.metadata: dict[int, dict[TopicPartition, PartitionState]] = {}
        self.unanswered: deque[events.StopReplicaAnswered] = deque()
        self.replies: dict[object, ReplyValue] = {}
        self.leaders: dict[tuple[TopicPartition, UUID | None, int], int] = {}
        self.hold_writes = False
        self.held: WriteStates | None = None
        self.lines: list[str] = []
        self._watched: deque[Event] = deque()

    # Events

    def send(self, event: Event) -> None:
        """Deliver an event to the controller, apply its effects, and deliver the watch events of its own
        writes.
        """
        self._watched.append(event)
        while self._watched:
            self._apply(self.controller.handle(self._watched.popleft()))

    def elect(self) -> None:
        """Elect a new controller, which starts from the contents of the store."""
        self.held = None
        self.hold_writes = False
        self.unanswered.clear()
        self._apply(self.controller.handle(events.Resigned()))
        self.controller = Controller(0, self.settings)
        self.controller_epoch += 1
        self.send(
            events.Elected(
                self.controller_epoch,
                self.controller_epoch,
                tuple(self.brokers.values()),
                tuple(self.topics.values()),
                dict(self.states),
                tuple(self.deletions),
                unclean_topics=dict(self.unclean),
            )
        )

    def start_broker(self, broker: int) -> None:
        """Register a broker with a new epoch, whether or not the controller has seen the end of its earlier
        session.
        """
        self.next_epoch += 1
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 9000 + broker)
        self.brokers[broker] = BrokerInfo(broker, (endpoint,), epoch=self.next_epoch)
        self.beliefs[broker] = {}
        self.metadata[broker] = {}
        self.send_brokers()

    def stop_broker(self, broker: int) -> None:
        """End a broker's session."""
        for known in (self.brokers, self.beliefs, self.metadata):
            known.pop(broker)
        self.send_brokers()

    def send_brokers(self) -> None:
        """Fire the watch on /brokers/ids."""
        self.unanswered = deque(answer for answer in self.unanswered if answer.broker_id in self.brokers)
        self.send(events.BrokersChanged(tuple(self.brokers.values())))

    def create_topic(self, name: str, replicas: Mapping[int, tuple[int, ...]]) -> None:
        """Create a topic's node."""
        self.topics[name] = TopicState(name, UUID(int=self.next_topic_id), dict(replicas))
        self.next_topic_id += 1
        self.send_topics()

    def send_topics(self) -> None:
        """Fire the watch on /brokers/topics."""
        self.send(events.TopicsChanged(frozenset(self.topics), tuple(self.topics.values())))

    def add_partitions(self, name: str, replicas: Mapping[int, tuple[int, ...]]) -> None:
        """Add partitions to a topic's node."""
        topic = self.topics[name]
        self.topics[name] = topic._replace(replicas={**topic.replicas, **replicas})
        self.send(events.PartitionsChanged(self.topics[name]))

    def delete_topic(self, name: str) -> None:
        """Mark a topic for deletion."""
        self.deletions.add(name)
        self.send(events.DeletionsRequested(tuple(sorted(self.deletions))))

    def propose_isr(self, partition: TopicPartition, isr: tuple[int, ...], **wrong: int) -> None:
        """Propose an ISR with AlterPartition, as the leader that the brokers know. `wrong` overrides fields
        of the request.
        """
        state = self.states[partition]
        told = self.beliefs.get(state.leader, {}).get(partition)
        believed = state if told is None else told.state
        leader = wrong.get("by", state.leader)
        epoch = self.brokers[leader].epoch if leader in self.brokers else -1
        change = events.IsrChange(
            wrong.get("leader_epoch", believed.leader_epoch),
            isr,
            wrong.get("partition_epoch", believed.partition_epoch),
            bool(wrong.get("recovering", 0)),
        )
        self.replies.pop("isr", None)
        self.send(
            events.AlterPartitionRequested(
                "isr",
                leader,
                wrong.get("broker_epoch", epoch),
                {partition: change},
                knows_ineligible=not wrong.get("old", 0),
            )
        )
        reply = self.replies.get("isr")
        if told is not None and isinstance(reply, AlterPartitionReply):
            answer = reply.partitions.get(partition)
            known = self.beliefs[state.leader].get(partition)
            # A later change, such as the end of a reassignment, may arrive before the reply.
            if (
                isinstance(answer, PartitionState)
                and known is not None
                and answer.partition_epoch > known.state.partition_epoch
            ):
                self.beliefs[state.leader][partition] = known._replace(state=answer)

    def answer_stops(self, broker: int | None = None, *, error: int = 0) -> None:
        """Respond to the pending StopReplica requests of one broker, or of all."""
        waiting, self.unanswered = self.unanswered, deque()
        for answer in waiting:
            if broker is not None and answer.broker_id != broker:
                self.unanswered.append(answer)
                continue
            results = dict.fromkeys(answer.partitions, error)
            self.send(answer._replace(partitions=results))

    def meddle(self, partition: TopicPartition, isr: tuple[int, ...]) -> None:
        """Write the partition's state node as a client other than the controller."""
        state = self.states[partition]
        self.states[partition] = state._replace(isr=isr, partition_epoch=state.partition_epoch + 1)

    def release(self, *, others_too: bool = True) -> None:
        """Complete the held write. Complete later writes too, or hold the next one."""
        held, self.held = self.held, None
        self.hold_writes = not others_too
        if held is not None:
            self.send(self._write(held))

    # Effects

    def _apply(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case WriteStates():
                    if self.hold_writes:
                        self.held = effect
                        self.lines.append("(the store does not answer)")
                    else:
                        self._watched.appendleft(self._write(effect))
                case WriteTopic(topic, _, keeps_added):
                    written = topic
                    if keeps_added and topic.name in self.topics:
                        written = topic.with_partitions_of(self.topics[topic.name])
                    self.topics[topic.name] = written
                    self.lines.append(f"topic {topic.name}: {_topic(written)}")
                    self._watched.append(events.PartitionsChanged(written))
                case DeleteTopicNodes(names):
                    for topic_name in names:
                        self._delete(topic_name)
                case ClearDeletions(names):
                    self.deletions -= set(names)
                    self.lines.append(f"clear deletions {', '.join(names)}")
                case ClearPreferredElection():
                    self.lines.append("clear preferred election")
                case WriteReassignments(targets):
                    left = " ".join(f"{partition}={_ids(target)}" for partition, target in targets.items())
                    self.lines.append(f"reassignment node: {left or 'removed'}")
                case SendLeaderAndIsr():
                    self._leader_and_isr(effect)
                case SendUpdateMetadata():
                    self._update_metadata(effect)
                case SendStopReplica():
                    self._stop_replica(effect)
                case Reply(request_id, value):
                    self.replies[request_id] = value
                    self.lines.append(f"reply {request_id}: {_reply(value)}")
                case Note(_, text):
                    self.lines.append(f"note: {text}")

    def _write(self, effect: WriteStates) -> events.StatesWritten:
        assert effect.epoch_znode_version == self.controller_epoch
        written: dict[TopicPartition, int] = {}
        conflicts: dict[TopicPartition, PartitionState | None] = {}
        for partition, state, expected in effect.writes:
            known = self.states.get(partition)
            version = outcomes.CREATE if known is None else known.partition_epoch
            if version != expected:
                conflicts[partition] = known
                self.lines.append(f"conflict {partition}")
                continue
            written[partition] = expected + 1
            self._check(partition, known, state)
            self.states[partition] = state._replace(partition_epoch=expected + 1)
            self.lines.append(f"state {partition}: {_state(self.states[partition])}")
        return events.StatesWritten(effect.write_id, written, conflicts)

    def _check(self, partition: TopicPartition, before: PartitionState | None, after: PartitionState) -> None:
        """Check the invariants of every state write."""
        identity = (partition, self.topics[partition.topic].topic_id, after.leader_epoch)
        assert self.leaders.setdefault(identity, after.leader) == after.leader, "two leaders in one epoch"
        assert after.isr
        assert after.leader == -1 or after.leader in after.isr
        if before is not None:
            assert after.leader_epoch >= before.leader_epoch
            assert after.controller_epoch >= before.controller_epoch
            unclean = self.unclean.get(partition.topic, self.unclean_requested)
            assert after.leader in (-1, *before.isr) or unclean, "the leader was elected uncleanly"

    def _delete(self, topic: str) -> None:
        self.lines.append(f"delete nodes of {topic}")
        del self.topics[topic]
        self.deletions.discard(topic)
        for partition in [partition for partition in self.states if partition.topic == topic]:
            del self.states[partition]
        self._watched.append(events.TopicsChanged(frozenset(self.topics), tuple(self.topics.values())))

    def _leader_and_isr(self, effect: SendLeaderAndIsr) -> None:
        broker = effect.broker.broker_id
        for each in effect.partitions:
            new = " new" if each.is_new else ""
            told = f"{_state(each.state)}, {_assignment(each.assignment)}{new}"
            self.lines.append(f"-> {broker} leader {each.partition}: {told}")
        if self._hears(broker, effect.broker.epoch):
            for each in effect.partitions:
                known = self.beliefs[broker].get(each.partition)
                if known is None or known.state.leader_epoch <= each.state.leader_epoch:
                    self.beliefs[broker][each.partition] = each

    def _update_metadata(self, effect: SendUpdateMetadata) -> None:
        brokers = _ids(address.broker_id for address in effect.brokers)
        live = _ids(broker.broker_id for broker in effect.live_brokers)
        told = "; ".join(
            f"{each.partition} {each.state.leader}/{each.state.leader_epoch}"
            + (f" offline {_ids(each.offline_replicas)}" if each.offline_replicas else "")
            for each in effect.partitions
        )
        self.lines.append(f"-> {brokers} metadata: brokers {live}" + (f"; {told}" if told else ""))
        for address in effect.brokers:
            if self._hears(*address):
                self.metadata[address.broker_id].update(
                    {each.partition: each.state for each in effect.partitions}
                )

    def _stop_replica(self, effect: SendStopReplica) -> None:
        broker = effect.broker.broker_id
        for each in effect.partitions:
            how = "delete" if each.delete else "stop"
            self.lines.append(f"-> {broker} {how} {each.partition}: epoch {each.leader_epoch}")
        if not self._hears(broker, effect.broker.epoch):
            return
        for each in effect.partitions:
            known = self.beliefs[broker].get(each.partition)
            if each.delete:
                self.beliefs[broker].pop(each.partition, None)
            elif known is not None and each.leader_epoch in (-2, known.state.leader_epoch):
                del self.beliefs[broker][each.partition]
        deleted = {each.partition: 0 for each in effect.partitions if each.delete}
        if deleted:
            self.unanswered.append(events.StopReplicaAnswered(broker, 0, deleted))

    def _hears(self, broker: int, epoch: int) -> bool:
        return broker in self.brokers and self.brokers[broker].epoch == epoch


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(str(broker) for broker in brokers)


def _state(state: PartitionState) -> str:
    recovering = ", recovering" if state.recovering else ""
    return f"leader {state.leader}/{state.leader_epoch}, isr {_ids(state.isr)}{recovering}"


def _assignment(assignment: outcomes.Assignment) -> str:
    adding = f" adding {_ids(assignment.adding)}" if assignment.adding else ""
    removing = f" removing {_ids(assignment.removing)}" if assignment.removing else ""
    return f"replicas {_ids(assignment.replicas)}{adding}{removing}"


def _topic(topic: TopicState) -> str:
    return "; ".join(
        f"{index} "
        + _assignment(
            outcomes.Assignment(
                replicas, topic.adding_replicas.get(index, ()), topic.removing_replicas.get(index, ())
            )
        )
        for index, replicas in topic.replicas.items()
    )


def _reply(value: ReplyValue) -> str:
    if value.error:
        return value.error.name
    match value:
        case AlterPartitionReply(_, states):
            parts = [
                f"{partition} {_state(each) if isinstance(each, PartitionState) else each.name}"
                for partition, each in states.items()
            ]
        case effects.ControlledShutdownReply(_, remaining):
            parts = [f"remaining {' '.join(map(str, remaining)) or 'none'}"]
        case effects.ElectionReply(_, outcomes) | effects.ReassignmentReply(_, outcomes):
            parts = [f"{partition} {outcome.error.name}" for partition, outcome in outcomes.items()]
        case effects.ReassignmentsReply(_, assignments):
            parts = [f"{partition} {_assignment(each)}" for partition, each in assignments.items()]
    return "; ".join(parts) or "nothing"
