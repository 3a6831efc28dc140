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
    """The current state of each partition, or its error. `error` applies to the whole request."""

    error: ControllerError
    partitions: Mapping[TopicPartition, PartitionState | ControllerError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ControlledShutdownReply:
    """The partitions that the broker still leads. The broker may shut down when there are none."""

    error: ControllerError
    remaining: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class ElectionReply:
    """The result for each partition. If all were requested, partitions that need no election are omitted."""

    error: ControllerError
    partitions: Mapping[TopicPartition, Outcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReassignmentReply:
    """Whether each partition's reassignment was started (or canceled)."""

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
    """A partition state, to be written if its node has the version `expected_partition_epoch`. CREATE (-1)
    creates the node and its missing parents. `state.partition_epoch` is not part of the data.
    """

    partition: TopicPartition
    state: PartitionState
    expected_partition_epoch: int


@dataclass(frozen=True, slots=True)
class WriteStates:
    """Write partition states individually, each guarded by the version of /controller_epoch. The caller must
    respond with StatesWritten; until then the controller queues other events. If the guard fails, this broker
    is no longer the controller, and the caller must respond with Resigned. If the outcome of a write is
    unknown (connection lost), read the node: it was written if it has the same data and version + 1.
    """

    write_id: int
    writes: tuple[StateWrite, ...]
    epoch_znode_version: int


@dataclass(frozen=True, slots=True)
class WriteTopic:
    """Write a topic's node, guarded by the version of /controller_epoch. `keeps_added`: keep partitions that
    other clients added meanwhile.
    """

    topic: TopicState
    epoch_znode_version: int
    keeps_added: bool = True


@dataclass(frozen=True, slots=True)
class DeleteTopicNodes:
    """Delete the nodes of a topic that all brokers have deleted: /brokers/topics/T with all nodes below it,
    /config/topics/T, and finally /admin/delete_topics/T, guarded by the version of /controller_epoch.
    """

    topic: str
    epoch_znode_version: int


@dataclass(frozen=True, slots=True)
class ClearDeletions:
    """Delete /admin/delete_topics/T for topics that do not exist or may not be deleted."""

    topics: tuple[str, ...]
    epoch_znode_version: int


@dataclass(frozen=True, slots=True)
class ClearPreferredElection:
    """Delete /admin/preferred_replica_election after the election."""

    epoch_znode_version: int


@dataclass(frozen=True, slots=True)
class WriteReassignments:
    """Write the remaining content of /admin/reassign_partitions, or delete the node if nothing is left."""

    targets: Mapping[TopicPartition, tuple[int, ...]]
    epoch_znode_version: int


class BrokerEpoch(NamedTuple):
    """The destination of a request: one registration of a broker, identified by its epoch."""

    broker_id: int
    epoch: int


class LeaderAndIsrPartition(NamedTuple):
    """A partition in LeaderAndIsr. `state.controller_epoch` and `state.partition_epoch` are also sent.
    `is_new` lets the receiver create the log without checking failed log directories.
    """

    partition: TopicPartition
    topic_id: UUID | None
    state: PartitionState
    assignment: Assignment
    is_new: bool


class UpdateMetadataPartition(NamedTuple):
    """A partition in UpdateMetadata. Leader -2 (LEADER_DURING_DELETE): the topic is being deleted."""

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
    """Send LeaderAndIsr to one broker. Its response is returned as LeaderAndIsrAnswered. `live_leaders` are
    the live brokers that lead any of the partitions.
    """

    broker: BrokerEpoch
    controller_epoch: int
    partitions: tuple[LeaderAndIsrPartition, ...]
    live_leaders: tuple[BrokerInfo, ...]


@dataclass(frozen=True, slots=True)
class SendUpdateMetadata:
    """Send the same UpdateMetadata to each broker. Responses are not returned."""

    brokers: tuple[BrokerEpoch, ...]
    controller_epoch: int
    partitions: tuple[UpdateMetadataPartition, ...]
    live_brokers: tuple[BrokerInfo, ...]


@dataclass(frozen=True, slots=True)
class SendStopReplica:
    """Send StopReplica to one broker. If it deletes a partition, its response is a StopReplicaAnswered."""

    broker: BrokerEpoch
    controller_epoch: int
    partitions: tuple[StopReplicaPartition, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply to the event with this request ID."""

    request_id: Hashable
    value: ReplyValue


class Level(Enum):
    """Severity of a note."""

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
