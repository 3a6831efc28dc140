"""Output types of the controller: writes to the store, requests to brokers, replies and log messages."""

from collections.abc import Hashable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from kafka_compat.coordination.controller.outcomes import Assignment, ControllerError, Outcome, TopicPartition
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, PartitionState, TopicState


class AlterPartitionReply(NamedTuple):
    """Reply to AlterPartition: each partition's state or error. `error` applies to the whole request."""

    error: ControllerError
    partitions: Mapping[TopicPartition, PartitionState | ControllerError] = MappingProxyType({})


class ControlledShutdownReply(NamedTuple):
    """Reply to ControlledShutdown: the partitions that the broker still leads. If none, it may shut down."""

    error: ControllerError
    remaining: tuple[TopicPartition, ...] = ()


class ElectionReply(NamedTuple):
    """Outcomes of the requested elections, except unneeded elections if all partitions were requested."""

    error: ControllerError
    partitions: Mapping[TopicPartition, Outcome] = MappingProxyType({})


class ReassignmentReply(NamedTuple):
    """The outcome of starting or canceling a reassignment, for each partition."""

    error: ControllerError
    partitions: Mapping[TopicPartition, Outcome] = MappingProxyType({})


class ReassignmentsReply(NamedTuple):
    """The assignments of the partitions that are being reassigned."""

    error: ControllerError
    partitions: Mapping[TopicPartition, Assignment] = MappingProxyType({})


ReplyValue = (
    AlterPartitionReply | ControlledShutdownReply | ElectionReply | ReassignmentReply | ReassignmentsReply
)


class StateWrite(NamedTuple):
    """A write of a partition state, on condition that the node's version is `expected_partition_epoch`. With
    CREATE (-1), the node and its missing parents are created. `state.partition_epoch` is not written.
    """

    partition: TopicPartition
    state: PartitionState
    expected_partition_epoch: int


class WriteStates(NamedTuple):
    """Write partition states if /controller_epoch has the known version. Each write succeeds or fails
    individually.

    The caller must respond with StatesWritten; until then, the controller queues other events. If
    /controller_epoch has changed, the caller must respond with Resigned. If the connection is lost during a
    write, the caller reads the node: it was written if it contains the same data and its version is one
    higher.
    """

    write_id: int
    writes: tuple[StateWrite, ...]
    epoch_znode_version: int


class WriteTopic(NamedTuple):
    """Write a topic's node if /controller_epoch has the known version. With `keeps_added`, partitions that
    other clients have since added are kept.
    """

    topic: TopicState
    epoch_znode_version: int
    keeps_added: bool = True


class DeleteTopicNodes(NamedTuple):
    """Delete the nodes of topics that all brokers have deleted, if /controller_epoch has the known version:
    /brokers/topics/T with all nodes below it, /config/topics/T, and finally /admin/delete_topics/T.
    """

    topics: tuple[str, ...]
    epoch_znode_version: int


class ClearDeletions(NamedTuple):
    """Delete the nodes /admin/delete_topics/T of topics that do not exist or must not be deleted."""

    topics: tuple[str, ...]
    epoch_znode_version: int


class ClearPreferredElection(NamedTuple):
    """Delete /admin/preferred_replica_election after the election."""

    epoch_znode_version: int


class WriteReassignments(NamedTuple):
    """Write the remaining targets to /admin/reassign_partitions, or delete the node if none remain."""

    targets: Mapping[TopicPartition, tuple[int, ...]]
    epoch_znode_version: int


class BrokerEpoch(NamedTuple):
    """The destination of a request: a broker and the epoch of its registration."""

    broker_id: int
    epoch: int


class LeaderAndIsrPartition(NamedTuple):
    """A partition in LeaderAndIsr, including the controller epoch and the partition epoch. If `is_new` is
    true, the receiver creates the log even if a log directory is offline.
    """

    partition: TopicPartition
    topic_id: UUID | None
    state: PartitionState
    assignment: Assignment
    is_new: bool


class UpdateMetadataPartition(NamedTuple):
    """A partition in UpdateMetadata. During the topic's deletion, the leader is LEADER_DURING_DELETE (-2)."""

    partition: TopicPartition
    topic_id: UUID | None
    state: PartitionState
    replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class StopReplicaPartition(NamedTuple):
    """A partition in StopReplica. The leader epoch is -2 if the topic is being deleted."""

    partition: TopicPartition
    leader_epoch: int
    delete: bool


class SendLeaderAndIsr(NamedTuple):
    """Send LeaderAndIsr to one broker. The response is passed to the controller as LeaderAndIsrAnswered.
    `live_leaders` are the live brokers that lead any of the partitions.
    """

    broker: BrokerEpoch
    controller_epoch: int
    partitions: tuple[LeaderAndIsrPartition, ...]
    live_leaders: tuple[BrokerInfo, ...]


class SendUpdateMetadata(NamedTuple):
    """Send the same UpdateMetadata to each broker. Responses are not passed to the controller."""

    brokers: tuple[BrokerEpoch, ...]
    controller_epoch: int
    partitions: tuple[UpdateMetadataPartition, ...]
    live_brokers: tuple[BrokerInfo, ...]


class SendStopReplica(NamedTuple):
    """Send StopReplica to one broker. The response to a deletion is passed on as StopReplicaAnswered."""

    broker: BrokerEpoch
    controller_epoch: int
    partitions: tuple[StopReplicaPartition, ...]


class Reply(NamedTuple):
    """Reply to the request with this ID."""

    request_id: Hashable
    value: ReplyValue


class Level(Enum):
    """Severity of a log message."""

    INFO = "info"
    WARNING = "warning"


class Note(NamedTuple):
    """A log message from the controller."""

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
