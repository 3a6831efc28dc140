"""Input types of the controller: node changes, requests, and the results of its own effects.

Each event with a `request_id`, which may be any hashable value, gets exactly one `Reply` with the same ID.
"""

from collections.abc import Hashable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kafka_compat.coordination.controller.outcomes import ElectionType, TopicPartition
from kafka_compat.coordination.nodes.cluster_state import BrokerInfo, PartitionState, TopicState


class Elected(NamedTuple):
    """The first event of a term: this broker won the election and has read all nodes.

    `states` contains the states of all partitions, with the versions of their nodes as `partition_epoch`.
    `deletions` are the names under /admin/delete_topics. `unclean_default` and `unclean_topics` contain
    unclean.leader.election.enable for the broker, and for the topics that override it. `preferred_elections`
    and `reassignments` come from the legacy nodes /admin/preferred_replica_election and
    /admin/reassign_partitions. They are empty if the nodes are missing.
    """

    controller_epoch: int
    epoch_znode_version: int
    brokers: tuple[BrokerInfo, ...]
    topics: tuple[TopicState, ...] = ()
    states: Mapping[TopicPartition, PartitionState] = MappingProxyType({})
    deletions: tuple[str, ...] = ()
    unclean_default: bool = False
    unclean_topics: Mapping[str, bool] = MappingProxyType({})
    preferred_elections: tuple[TopicPartition, ...] = ()
    reassignments: Mapping[TopicPartition, tuple[int, ...]] = MappingProxyType({})


class Resigned:
    """This broker is no longer the controller. Pending requests get NOT_CONTROLLER."""


class BrokersChanged(NamedTuple):
    """The registered brokers changed. `brokers` contains all registered brokers. If a known broker has a
    higher epoch than before, it restarted before its failure was detected. If the epoch of a known broker is
    unchanged, its endpoints or features may have changed.
    """

    brokers: tuple[BrokerInfo, ...]


class TopicsChanged(NamedTuple):
    """The children of /brokers/topics changed. `names` contains all topic names. `loaded` contains the topics
    that are missing from `Controller.topics`; other topics are ignored. `states` contains the partition
    states of topics that could not be read before.
    """

    names: frozenset[str]
    loaded: tuple[TopicState, ...]
    states: Mapping[TopicPartition, PartitionState] = MappingProxyType({})


class PartitionsChanged(NamedTuple):
    """The data of a known topic's node changed. Only added partitions are processed."""

    topic: TopicState


class DeletionsRequested(NamedTuple):
    """The children of /admin/delete_topics changed. `topics` contains the names of all children."""

    topics: tuple[str, ...]


class StatesWritten(NamedTuple):
    """The result of the WriteStates effect with this `write_id`. `written` maps each partition whose state
    was written to its new partition epoch. `conflicts` maps each partition whose node differed from the
    expected state to the node's content, or to None if the node is missing.
    """

    write_id: int
    written: Mapping[TopicPartition, int]
    conflicts: Mapping[TopicPartition, PartitionState | None] = MappingProxyType({})


class IsrChange(NamedTuple):
    """An ISR that a leader proposes in AlterPartition, with the epochs that the leader knows."""

    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    recovering: bool = False


class AlterPartitionRequested(NamedTuple):
    """A leader's request to change in-sync replicas (KIP-497). The reply is an AlterPartitionReply.

    `knows_ineligible` is false for brokers before Kafka 3.3, which do not know INELIGIBLE_REPLICA (KIP-841).
    """

    request_id: Hashable
    broker_id: int
    broker_epoch: int
    partitions: Mapping[TopicPartition, IsrChange]
    knows_ineligible: bool = True


class ControlledShutdownRequested(NamedTuple):
    """A broker's request to move its leadership before shutdown. The reply is a ControlledShutdownReply."""

    request_id: Hashable
    broker_id: int
    broker_epoch: int


class ElectionRequested(NamedTuple):
    """An ElectLeaders request (KIP-460) for partitions (None for all). The reply is an ElectionReply."""

    request_id: Hashable
    election: ElectionType
    partitions: tuple[TopicPartition, ...] | None


class PreferredElectionFound(NamedTuple):
    """The legacy tool created /admin/preferred_replica_election with these partitions."""

    partitions: tuple[TopicPartition, ...]


class ReassignmentRequested(NamedTuple):
    """An AlterPartitionReassignments request (KIP-455), with the target replicas of each partition, or None
    to cancel a reassignment. The reply is a ReassignmentReply.
    """

    request_id: Hashable
    targets: Mapping[TopicPartition, tuple[int, ...] | None]
    may_change_replication_factor: bool = True


class ReassignmentFound(NamedTuple):
    """The legacy tool created or changed /admin/reassign_partitions, which contains `targets`."""

    targets: Mapping[TopicPartition, tuple[int, ...]]


class ReassignmentsListed(NamedTuple):
    """A ListPartitionReassignments request (None for all partitions). The reply is a ReassignmentsReply."""

    request_id: Hashable
    partitions: tuple[TopicPartition, ...] | None


class UncleanConfigChanged(NamedTuple):
    """unclean.leader.election.enable was changed for the broker, or for the topics that override it."""

    default: bool
    topics: Mapping[str, bool]


class LeaderAndIsrAnswered(NamedTuple):
    """A broker's response to SendLeaderAndIsr, with the errors of the request and of each partition."""

    broker_id: int
    error: int
    partitions: Mapping[TopicPartition, int]


class StopReplicaAnswered(NamedTuple):
    """A broker's response to SendStopReplica, with at least the partitions to delete. A request without a
    response causes no event, because it is sent again until the broker is unregistered.
    """

    broker_id: int
    error: int
    partitions: Mapping[TopicPartition, int]


class LogDirsFailed(NamedTuple):
    """Brokers reported failed log directories in /log_dir_event_notification and must be queried."""

    broker_ids: tuple[int, ...]


class IsrChangesFound(NamedTuple):
    """Leaders with an inter.broker.protocol.version before 2.7 wrote these states and reported them in
    /isr_change_notification.
    """

    states: Mapping[TopicPartition, PartitionState]


class StatesMended(NamedTuple):
    """Partition states that were unreadable at the election were repaired. `states` is their new content."""

    states: Mapping[TopicPartition, PartitionState]


class RebalanceTick:
    """The leader imbalance check is due. With auto.leader.rebalance.enable, this occurs 5 s after the
    election and then every leader.imbalance.check.interval.seconds.
    """


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
