"""State of the controller: its view of the cluster, and the procedures that write partition states.

A procedure is a generator that yields the partition states to write and receives the result. Its code
therefore reads as if the store responded at once, although the controller does no I/O. All other effects are
appended to `effects` in the order in which they must be carried out. If there are many partitions, a
procedure repeatedly yields `PAUSE`, so that other work can use the event loop.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from enum import Enum
from typing import TypeVar
from uuid import UUID

from kafka_compat.coordination.controller import outcomes
from kafka_compat.coordination.controller.effects import Effect, Level, Note, StateWrite, WriteTopic
from kafka_compat.coordination.controller.events import Elected, StatesWritten
from kafka_compat.coordination.controller.outcomes import TopicPartition
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, PartitionState, TopicState

T = TypeVar("T")
Procedure = Generator[Sequence[StateWrite], StatesWritten, T]
Replica = tuple[TopicPartition, int]

PAUSE: Sequence[StateWrite] = ()
"""An empty list of writes. A procedure yields it so that the event loop can run, and ignores the result."""
SHARED_MAX = 1_000
DELETED_IDS_MAX = 1_000
AT_ONCE = 500
"""Maximum number of partitions or replicas to process before a `PAUSE`."""
_UNASSIGNED = outcomes.Assignment(())


def in_steps(items: Sequence[T]) -> Iterator[tuple[Sequence[T], bool]]:
    """Yield (batch of at most `AT_ONCE` items, whether a `PAUSE` must follow the batch)."""
    for first in range(0, len(items), AT_ONCE):
        some = items[first : first + AT_ONCE]
        yield some, len(some) == AT_ONCE


def each(items: Sequence[T], act: Callable[[T], object]) -> Procedure[None]:
    """Call `act` for each item, with pauses."""
    for some, long in in_steps(items):
        for item in some:
            act(item)
        if long:
            yield PAUSE


def selected(items: Sequence[T], is_wanted: Callable[[T], bool]) -> Procedure[list[T]]:
    """Return the items for which `is_wanted` is true, with pauses."""
    found: list[T] = []
    for some, long in in_steps(items):
        found += filter(is_wanted, some)
        if long:
            yield PAUSE
    return found


class PartitionPhase(Enum):
    """State of a partition. partition_state_machine.py describes the transitions."""

    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"
    NON_EXISTENT = "non-existent"


class ReplicaPhase(Enum):
    """State of a replica. replica_state_machine.py describes the transitions."""

    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"
    DELETION_STARTED = "deletion started"
    DELETION_SUCCESSFUL = "deletion successful"
    DELETION_INELIGIBLE = "deletion ineligible"
    NON_EXISTENT = "non-existent"


class ControllerContext:
    """The controller's state in one term. `brokers` includes brokers that are shutting down."""

    def __init__(self, settings: outcomes.ControllerSettings, elected: Elected) -> None:
        self.settings = settings
        self.controller_epoch = elected.controller_epoch
        self.epoch_znode_version = elected.epoch_znode_version
        self.brokers: dict[int, BrokerInfo] = {broker.broker_id: broker for broker in elected.brokers}
        self.shutting_down: set[int] = set()
        self.topic_ids: dict[str, UUID | None] = {}
        self.topic_names: dict[UUID, str] = {}
        self.assignments: dict[str, dict[int, outcomes.Assignment]] = {}
        self.states: dict[TopicPartition, PartitionState] = {}
        self.partition_phases: dict[TopicPartition, PartitionPhase] = {}
        self.replica_phases: dict[Replica, ReplicaPhase] = {}
        self.offline_dirs: dict[int, set[TopicPartition]] = {}
        self.reassigning: set[TopicPartition] = set()
        self.requested_reassignments: dict[TopicPartition, tuple[int, ...]] = {}
        self.deletions: set[str] = set()
        self.deletions_begun: set[str] = set()
        self.deletions_ineligible: set[str] = set()
        self.deleted_ids: dict[UUID, None] = {}
        """IDs of the most recently deleted topics, used to ignore data that was read before a deletion."""
        self.unclean_default = elected.unclean_default
        self.unclean_topics = dict(elected.unclean_topics)
        self.unclean_elections = 0
        self.effects: list[Effect] = []
        self._shared: dict[object, object] = {}
        """Shared assignments and states (see `shared`), because most partitions have the same few values."""
        self._sorted: list[TopicPartition] | None = None

    def load(self, elected: Elected) -> Procedure[None]:
        """Set the topics and states at the beginning of a term."""
        yield from each(elected.topics, self.add_topic)

        def add_state(partition: TopicPartition) -> None:
            state = elected.states.get(partition)
            if state is not None:
                self.states[partition] = self.shared(state)
            if self.assignment(partition).being_reassigned:
                self.reassigning.add(partition)

        yield from each((yield from self.partitions()), add_state)

    def shared(self, value: T) -> T:
        """Return a shared object that equals `value`, to save memory."""
        if len(self._shared) >= SHARED_MAX:
            self._shared.clear()
        found: T = self._shared.setdefault(value, value)  # type: ignore[assignment]
        return found

    # Brokers

    def live_brokers(self) -> set[int]:
        """Return the IDs of the live brokers that are not shutting down."""
        return self.brokers.keys() - self.shutting_down

    def is_online(self, partition: TopicPartition, broker: int, *, or_shutting_down: bool = False) -> bool:
        """Whether the replica's log directory is online, and its broker is alive and not shutting down."""
        if broker not in self.brokers or (broker in self.shutting_down and not or_shutting_down):
            return False
        return partition not in self.offline_dirs.get(broker, ())

    def online(
        self, partition: TopicPartition, brokers: Iterable[int], *, or_shutting_down: bool = False
    ) -> tuple[int, ...]:
        """Return the given brokers whose replica of the partition is online."""
        return tuple(
            broker
            for broker in brokers
            if self.is_online(partition, broker, or_shutting_down=or_shutting_down)
        )

    # Topics and assignments

    def add_topic(self, topic: TopicState) -> list[TopicPartition]:
        """Add a topic, or new partitions of a known topic, and return the added partitions."""
        self.topic_ids[topic.name] = topic.topic_id
        if topic.topic_id is not None:
            self.topic_names[topic.topic_id] = topic.name
        known = self.assignments.setdefault(topic.name, {})
        added = []
        for index in sorted(topic.replicas.keys() - known.keys()):
            known[index] = self.shared(
                outcomes.Assignment(
                    topic.replicas[index],
                    topic.adding_replicas.get(index, ()),
                    topic.removing_replicas.get(index, ()),
                )
            )
            added.append(TopicPartition(topic.name, index))
        if added:
            self._sorted = None
        return added

    def remove_topic(self, topic: str) -> None:
        """Remove a topic and the state of its partitions and replicas."""
        for partition in self.partitions_of(topic):
            for broker in self.assignment(partition).replicas:
                self.replica_phases.pop((partition, broker), None)
            self.partition_phases.pop(partition, None)
            self.states.pop(partition, None)
            self.reassigning.discard(partition)
        self.assignments.pop(topic, None)
        self._sorted = None
        topic_id = self.topic_ids.pop(topic, None)
        if topic_id is not None:
            self.topic_names.pop(topic_id, None)
        for names in (self.deletions, self.deletions_begun, self.deletions_ineligible):
            names.discard(topic)

    def note_deleted(self, topic_id: UUID) -> None:
        """Record that the topic with this ID has been deleted."""
        self.deleted_ids[topic_id] = None
        if len(self.deleted_ids) > DELETED_IDS_MAX:
            del self.deleted_ids[next(iter(self.deleted_ids))]

    def partitions(self) -> Procedure[Sequence[TopicPartition]]:
        """Return all partitions, in order."""
        if self._sorted is None:
            found: list[TopicPartition] = []
            yield from each(sorted(self.assignments), lambda topic: found.extend(self.partitions_of(topic)))
            self._sorted = found
        return self._sorted

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic, in order. An unknown topic has no partitions."""
        return [TopicPartition(topic, index) for index in sorted(self.assignments.get(topic, ()))]

    def exists(self, partition: TopicPartition) -> bool:
        """Whether the partition is known."""
        return partition.partition in self.assignments.get(partition.topic, ())

    def assignment(self, partition: TopicPartition) -> outcomes.Assignment:
        """Return the partition's assignment. An unknown partition has no replicas."""
        return self.assignments.get(partition.topic, {}).get(partition.partition, _UNASSIGNED)

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        return [(item, broker) for item in partitions for broker in self.assignment(item).replicas]

    def replicas_on(self, brokers: Iterable[int]) -> Procedure[list[Replica]]:
        """Return all replicas on the brokers."""
        wanted = set(brokers)
        found: list[Replica] = []

        def add(partition: TopicPartition) -> None:
            found.extend((partition, it) for it in self.assignment(partition).replicas if it in wanted)

        yield from each((yield from self.partitions()), add)
        return found

    def write_assignment(self, partition: TopicPartition, assignment: outcomes.Assignment) -> None:
        """Change the assignment of a partition, and write the topic's node."""
        self.assignments[partition.topic][partition.partition] = assignment
        self.write_topic(partition.topic)

    def write_topic(self, topic: str, *, keeps_added: bool = True) -> None:
        """Write a topic's node with the controller's state (see `WriteTopic`)."""
        assignments = sorted(self.assignments[topic].items())
        state = TopicState(
            topic,
            self.topic_ids[topic],
            {index: assignment.replicas for index, assignment in assignments},
            {index: assignment.adding for index, assignment in assignments if assignment.adding},
            {index: assignment.removing for index, assignment in assignments if assignment.removing},
        )
        self.effects.append(WriteTopic(state, self.epoch_znode_version, keeps_added))

    def unclean_allowed(self, topic: str) -> bool:
        """Whether the topic allows unclean leader elections, which may lose records."""
        return self.unclean_topics.get(topic, self.unclean_default)

    # Leaders

    def is_deleted(self, topic: str) -> bool:
        """Whether the topic is being deleted."""
        return topic in self.deletions

    def leader_epoch(self, partition: TopicPartition) -> int:
        """Return the leader epoch for StopReplica: -2 if the topic is being deleted, -1 if it is unknown."""
        if self.is_deleted(partition.topic):
            return outcomes.EPOCH_DURING_DELETE
        state = self.states.get(partition)
        return outcomes.NO_EPOCH if state is None else state.leader_epoch

    def note(self, text: str) -> None:
        """Add a warning message to the effects."""
        self.effects.append(Note(Level.WARNING, text))


def write_states(
    context: ControllerContext, writes: Sequence[StateWrite]
) -> Procedure[tuple[dict[TopicPartition, PartitionState], list[TopicPartition]]]:
    """Write partition states, and update the context. Return the written states with their new partition
    epochs, and the partitions whose nodes had unexpected content.
    """
    written: dict[TopicPartition, PartitionState] = {}
    conflicts: list[TopicPartition] = []
    if not writes:
        return written, conflicts
    answer = yield writes
    for some, long in in_steps(writes):
        for write in some:
            partition = write.partition
            if partition in answer.written:
                state = context.shared(write.state._replace(partition_epoch=answer.written[partition]))
                written[partition] = context.states[partition] = state
                continue
            conflicts.append(partition)
            fresh = answer.conflicts.get(partition)
            if fresh is None:
                context.states.pop(partition, None)
            else:
                context.states[partition] = fresh
        if long:
            yield PAUSE
    return written, conflicts


def change_states(
    context: ControllerContext,
    partitions: Iterable[TopicPartition],
    decide: Callable[[TopicPartition, PartitionState], PartitionState | None],
) -> Procedure[dict[TopicPartition, PartitionState]]:
    """Write the state that `decide` returns for each partition, unless it is None. If a node does not have
    the expected content, call `decide` again with its content. Return the written states.
    """
    changed: dict[TopicPartition, PartitionState] = {}
    remaining = list(partitions)
    while remaining:
        writes = yield from _decided_writes(context, remaining, decide)
        written, remaining = yield from write_states(context, writes)
        changed.update(written)
    return changed


def _decided_writes(
    context: ControllerContext,
    partitions: Sequence[TopicPartition],
    decide: Callable[[TopicPartition, PartitionState], PartitionState | None],
) -> Procedure[list[StateWrite]]:
    writes: list[StateWrite] = []

    def add(partition: TopicPartition) -> None:
        state = context.states.get(partition)
        if state is None:
            return
        if state.controller_epoch > context.controller_epoch:
            context.note(
                f"Skipped {partition}: a later controller changed it (epoch {state.controller_epoch})"
            )
            return
        decided = decide(partition, state)
        if decided is not None:
            wanted = decided._replace(controller_epoch=context.controller_epoch)
            writes.append(StateWrite(partition, wanted, state.partition_epoch))

    yield from each(partitions, add)
    return writes
