"""What the controller answers to requests; they come out of it in a `Reply` (effects.py)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_compat.coordination.controller.outcomes import Assignment, ControllerError, Outcome, TopicPartition
from kafka_compat.coordination.nodes.cluster_state import PartitionState


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
