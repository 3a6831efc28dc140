"""Input types of the controller: node changes, requests, and the outcomes of its own effects.

Each event with a `request_id` gets exactly one `Reply` with the same ID, which may be any hashable value.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from kafka_compat.coordination.controller.outcomes import ElectionType, TopicPartition
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, PartitionState, TopicState


@dataclass(frozen=True, slots=True)
class Elected:
    """This broker won the election and has read everything; first event of a term.

    `states` has every partition's state node, with its version as `partition_epoch`. `topics` have their ids.
    `deletions` are the names under /admin/delete_topics. `unclean_default` and `unclean_topics` are
    unclean.leader.election.enable of the broker and of the topics that override it.
    `preferred_elections` and `reassignments` are the contents of the legacy nodes
    /admin/preferred_replica_election and /admin/reassign_partitions, empty when there are none.
    """

    controller_epoch: int
    epoch_znode_version: int
    brokers: tuple[BrokerInfo, ...]
    topics: tuple[TopicState, ...] = ()
    states: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    deletions: tuple[str, ...] = ()
    unclean_default: bool = False
    unclean_topics: Mapping[str, bool] = field(default_factory=dict)
    preferred_elections: tuple[TopicPartition, ...] = ()
    reassignments: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resigned:
    """This broker is the controller no more: everything is forgotten, waiting requests get NOT_CONTROLLER."""


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """All brokers registered now. A known id with a higher epoch is a broker that came back before its death
    was seen; with the same epoch, changed endpoints or features are taken over.
    """

    brokers: tuple[BrokerInfo, ...]


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """The children of /brokers/topics changed: all their `names`, and what those hold that
    `Controller.topics` did not have (others in `loaded` are ignored). `states` are those that partitions of
    them have already: of a topic that could not be read until now.
    """

    names: frozenset[str]
    loaded: tuple[TopicState, ...]
    states: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """The data of a known topic's node changed; only new partitions are taken from it."""

    topic: TopicState


@dataclass(frozen=True, slots=True)
class DeletionsRequested:
    """The children of /admin/delete_topics changed: all names there now."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StatesWritten:
    """The outcome of the WriteStates with this `write_id`: the new partition epoch of each state that was
    written, and what a partition's node holds instead of what was expected (None: there is no such node).
    """

    write_id: int
    written: Mapping[TopicPartition, int]
    conflicts: Mapping[TopicPartition, PartitionState | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IsrChange:
    """A leader's wish in AlterPartition: the new ISR, for the epochs that the leader knows."""

    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class AlterPartitionRequested:
    """A leader asks to change in-sync replicas (KIP-497). Answered by AlterPartitionReply."""

    request_id: Hashable
    broker_id: int
    broker_epoch: int
    partitions: Mapping[TopicPartition, IsrChange]


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequested:
    """A broker wants to leave and to lead nothing by then. Answered by ControlledShutdownReply."""

    request_id: Hashable
    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class ElectionRequested:
    """ElectLeaders (KIP-460) for these partitions, or all (None). Answered by ElectionReply."""

    request_id: Hashable
    election: ElectionType
    partitions: tuple[TopicPartition, ...] | None


@dataclass(frozen=True, slots=True)
class PreferredElectionFound:
    """/admin/preferred_replica_election appeared with these partitions (legacy tool)."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ReassignmentRequested:
    """AlterPartitionReassignments (KIP-455): the target replicas, or None to cancel. Answered by
    ReassignmentReply."""

    request_id: Hashable
    targets: Mapping[TopicPartition, tuple[int, ...] | None]


@dataclass(frozen=True, slots=True)
class ReassignmentFound:
    """/admin/reassign_partitions appeared (legacy tool) or changed: all that it holds."""

    targets: Mapping[TopicPartition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ReassignmentsListed:
    """ListPartitionReassignments for these partitions, or all (None). Answered by ReassignmentsReply."""

    request_id: Hashable
    partitions: tuple[TopicPartition, ...] | None


@dataclass(frozen=True, slots=True)
class UncleanConfigChanged:
    """unclean.leader.election.enable as it is now: the broker's, and of the topics that override it."""

    default: bool
    topics: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class LeaderAndIsrAnswered:
    """A broker's answer to SendLeaderAndIsr: the request's error, and each partition's."""

    broker_id: int
    error: int
    partitions: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class StopReplicaAnswered:
    """A broker's answer to SendStopReplica, of its partitions with `delete` at least. Not called for a
    request that got no answer: that one is sent again until the broker is gone.
    """

    broker_id: int
    error: int
    partitions: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class LogDirsFailed:
    """Brokers told of failed log folders (/log_dir_event_notification): they are asked what they have."""

    broker_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IsrChangesFound:
    """Leaders with an inter.broker.protocol.version before 2.7 wrote these states themselves, and said so by
    /isr_change_notification."""

    states: Mapping[TopicPartition, PartitionState]


@dataclass(frozen=True, slots=True)
class StatesMended:
    """State nodes that could not be read at the election, and what they hold now."""

    states: Mapping[TopicPartition, PartitionState]


@dataclass(frozen=True, slots=True)
class RebalanceTick:
    """Time to look at leader imbalance (auto.leader.rebalance.enable; every
    leader.imbalance.check.interval.seconds, first 5 s after the election)."""


Event = (
    Elected
    | Resigned
    | BrokersChanged
    | TopicsChanged
    | PartitionsChanged
    | DeletionsRequested
    | StatesWritten
    | AlterPartitionRequested
    | ControlledShutdownRequested
    | ElectionRequested
    | PreferredElectionFound
    | ReassignmentRequested
    | ReassignmentFound
    | ReassignmentsListed
    | UncleanConfigChanged
    | LeaderAndIsrAnswered
    | StopReplicaAnswered
    | LogDirsFailed
    | IsrChangesFound
    | StatesMended
    | RebalanceTick
)
