"""Output types of the controller: writes to the store, requests to brokers, replies and log notes."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from kafka_compat.coordination.controller.outcomes import Assignment, ControllerError, Outcome, TopicPartition
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, PartitionState, TopicState


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
    """Write a topic's node, guarded by the version of /controller_epoch. `keeps_added`: partitions that
    somebody has added meanwhile stay.
    """

    topic: TopicState
    epoch_znode_version: int
    keeps_added: bool = True


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
