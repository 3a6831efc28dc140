"""What goes into the controller (events) and what comes out of it (effects), as values.

Ids and epochs are Kafka's own numbers. Error codes are Kafka's (org.apache.kafka.common.protocol.Errors).
Events that carry a `request_id` are answered by exactly one `Reply` with the same id; the id may be anything
hashable that the caller chooses.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple
from uuid import UUID

from coordination.model import BrokerInfo, PartitionState, TopicState

NO_LEADER = -1
LEADER_DURING_DELETE = -2
EPOCH_DURING_DELETE = -2
NO_EPOCH = -1
UNKNOWN_BROKER_EPOCH = -1
CREATE = -1


class ControllerError(IntEnum):
    """The error codes that the controller answers, and those of brokers that it understands."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    BROKER_NOT_AVAILABLE = 8
    INVALID_TOPIC_EXCEPTION = 17
    INVALID_REPLICA_ASSIGNMENT = 39
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    KAFKA_STORAGE_ERROR = 56
    FENCED_LEADER_EPOCH = 74
    STALE_BROKER_EPOCH = 77
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    INVALID_UPDATE_VERSION = 95
    INELIGIBLE_REPLICA = 107


class ElectionType(IntEnum):
    """ElectLeaders' kinds, with their numbers on the wire (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


class TopicPartition(NamedTuple):
    """The name of a partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Assignment:
    """The brokers that hold a partition, the preferred leader first. During a reassignment (KIP-455)
    `replicas` also holds those of `adding` that are not in the target yet and those of `removing`.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def being_reassigned(self) -> bool:
        """Whether a reassignment is under way."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas once the reassignment is done."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the reassignment began."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    def reassign_to(self, target: tuple[int, ...]) -> "Assignment":
        """The assignment that leads from the original replicas to `target`: the target first, in its order,
        then what is to be removed. What a reassignment under way was adding and `target` lacks is dropped.
        """
        full = target + tuple(broker for broker in self.origin if broker not in target)
        return Assignment(
            full,
            adding=tuple(broker for broker in full if broker not in self.origin),
            removing=tuple(broker for broker in full if broker not in target),
        )


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Kafka's settings of the same names that the controller obeys.

    `leader_imbalance_per_broker_percentage`: a broker of which more than this share of its preferred
    partitions is led elsewhere gets them back at a RebalanceTick.
    """

    delete_topic_enable: bool = True
    leader_imbalance_per_broker_percentage: int = 10


# Events


@dataclass(frozen=True, slots=True)
class Elected:
    """This broker won the election and has read everything; first event of a reign.

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
    `Controller.topics` did not have (others in `loaded` are ignored).
    """

    names: frozenset[str]
    loaded: tuple[TopicState, ...]


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
    | RebalanceTick
)


# Effects


class StateWrite(NamedTuple):
    """A partition state to write if its node has the version `expected_partition_epoch`; with CREATE (-1) the
    node is made, and its parents where they are missing. `state.partition_epoch` is not part of the data.
    """

    partition: TopicPartition
    state: PartitionState
    expected_partition_epoch: int


@dataclass(frozen=True, slots=True)
class WriteStates:
    """Write partition states, each by itself, each guarded by the version of /controller_epoch. Answer with
    StatesWritten; until then the controller keeps other events waiting. When the guard fails, this broker is
    the controller no more: Resigned. A write whose outcome is unknown (connection lost) must be found out by
    reading: data and version as expected + 1 mean written.
    """

    write_id: int
    writes: tuple[StateWrite, ...]
    epoch_znode_version: int


@dataclass(frozen=True, slots=True)
class WriteTopic:
    """Write a topic's node, guarded by the version of /controller_epoch."""

    topic: TopicState
    epoch_znode_version: int


@dataclass(frozen=True, slots=True)
class DeleteTopicNodes:
    """A topic is gone from all brokers: remove /brokers/topics/T with all below it, /config/topics/T, and
    last /admin/delete_topics/T, guarded by the version of /controller_epoch."""

    topic: str
    epoch_znode_version: int


@dataclass(frozen=True, slots=True)
class ClearDeletions:
    """Remove /admin/delete_topics/T of topics that do not exist or may not be deleted."""

    topics: tuple[str, ...]
    epoch_znode_version: int


@dataclass(frozen=True, slots=True)
class ClearPreferredElection:
    """Remove /admin/preferred_replica_election: it was dealt with."""

    epoch_znode_version: int


@dataclass(frozen=True, slots=True)
class WriteReassignments:
    """What is left of /admin/reassign_partitions; empty: remove the node."""

    targets: Mapping[TopicPartition, tuple[int, ...]]
    epoch_znode_version: int


class BrokerEpoch(NamedTuple):
    """To whom a request goes: the broker in the life that the epoch names."""

    broker_id: int
    epoch: int


class LeaderAndIsrPartition(NamedTuple):
    """A partition in LeaderAndIsr. `state.controller_epoch` and `state.partition_epoch` are sent too;
    `is_new` lets the receiver make the log without looking in failed folders."""

    partition: TopicPartition
    topic_id: UUID | None
    state: PartitionState
    assignment: Assignment
    is_new: bool


class UpdateMetadataPartition(NamedTuple):
    """A partition in UpdateMetadata. A leader of -2 (LEADER_DURING_DELETE) tells that the topic goes."""

    partition: TopicPartition
    topic_id: UUID | None
    state: PartitionState
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class StopReplicaPartition(NamedTuple):
    """A partition in StopReplica. The epoch is -2 for a topic that is being deleted."""

    partition: TopicPartition
    leader_epoch: int
    delete: bool


@dataclass(frozen=True, slots=True)
class SendLeaderAndIsr:
    """LeaderAndIsr to one broker; its answer comes back as LeaderAndIsrAnswered. `live_leaders` are the
    living brokers that lead one of the partitions."""

    broker: BrokerEpoch
    controller_epoch: int
    partitions: tuple[LeaderAndIsrPartition, ...]
    live_leaders: tuple[BrokerInfo, ...]


@dataclass(frozen=True, slots=True)
class SendUpdateMetadata:
    """UpdateMetadata, the same to each broker; nothing comes back."""

    brokers: tuple[BrokerEpoch, ...]
    controller_epoch: int
    partitions: tuple[UpdateMetadataPartition, ...]
    live_brokers: tuple[BrokerInfo, ...]


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """StopReplica to one broker; its answer comes back as StopReplicaAnswered if any partition is deleted."""

    broker: BrokerEpoch
    controller_epoch: int
    partitions: tuple[StopReplicaPartition, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionReply:
    """Each partition's state as it is now, or why it was not changed; `error` is of the whole request."""

    error: ControllerError
    partitions: Mapping[TopicPartition, PartitionState | ControllerError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ControlledShutdownReply:
    """The partitions that the broker still leads; it may go when there are none."""

    error: ControllerError
    remaining: tuple[TopicPartition, ...] = ()


class Outcome(NamedTuple):
    """An error code with Kafka's kind of explanation, None when there is nothing to explain."""

    error: ControllerError
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ElectionReply:
    """How the election went in each partition. When all partitions were asked for, those that needed no
    election are left out."""

    error: ControllerError
    partitions: Mapping[TopicPartition, Outcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReassignmentReply:
    """Whether each partition's reassignment was begun (or cancelled)."""

    error: ControllerError
    partitions: Mapping[TopicPartition, Outcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReassignmentsReply:
    """The assignments of the partitions that are being reassigned."""

    error: ControllerError
    partitions: Mapping[TopicPartition, Assignment] = field(default_factory=dict)


ReplyValue = (
    AlterPartitionReply | ControlledShutdownReply | ElectionReply | ReassignmentReply | ReassignmentsReply
)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to the event with this request id."""

    request_id: Hashable
    value: ReplyValue


class Level(Enum):
    """How much a note matters."""

    INFO = "info"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the controller's log."""

    level: Level
    text: str


Effect = (
    WriteStates
    | WriteTopic
    | DeleteTopicNodes
    | ClearDeletions
    | ClearPreferredElection
    | WriteReassignments
    | SendLeaderAndIsr
    | SendUpdateMetadata
    | SendStopReplica
    | Reply
    | Note
)
