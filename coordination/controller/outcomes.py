"""Value types shared by the controller's events, effects and replies.

Error codes are Kafka's (org.apache.kafka.common.protocol.Errors).
"""

from enum import IntEnum
from typing import NamedTuple

NO_LEADER = -1
LEADER_DURING_DELETE = -2
EPOCH_DURING_DELETE = -2
NO_EPOCH = -1
UNKNOWN_BROKER_EPOCH = -1
CREATE = -1


class ControllerError(IntEnum):
    """Error codes that the controller returns, and error codes from brokers that it handles."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    BROKER_NOT_AVAILABLE = 8
    INVALID_TOPIC_EXCEPTION = 17
    INVALID_REPLICATION_FACTOR = 38
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
    """Election types of ElectLeaders, with their wire numbers (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


class TopicPartition(NamedTuple):
    """A topic name and partition number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Assignment(NamedTuple):
    """The replicas of a partition, the preferred leader first. During a reassignment (KIP-455), `replicas`
    contains the target replicas, including `adding`, followed by `removing`.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def being_reassigned(self) -> bool:
        """Whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    def reassign_to(self, target: tuple[int, ...]) -> "Assignment":
        """Return the assignment for moving from the original replicas to `target`: the target replicas in
        their order, then the replicas to remove. If an earlier reassignment was adding replicas that are not
        in `target`, they are dropped.
        """
        full = target + tuple(broker for broker in self.origin if broker not in target)
        return Assignment(
            full,
            adding=tuple(broker for broker in full if broker not in self.origin),
            removing=tuple(broker for broker in full if broker not in target),
        )


class ControllerSettings(NamedTuple):
    """Controller settings, with Kafka's names.

    If other brokers lead more than `leader_imbalance_per_broker_percentage` percent of a broker's preferred
    partitions, RebalanceTick returns the leadership of these partitions to the broker. `recovers_leaders` is
    false if brokers before Kafka 3.2 may read the states: they then do not contain that a leader was elected
    uncleanly (KIP-704).
    """

    delete_topic_enable: bool = True
    leader_imbalance_per_broker_percentage: int = 10
    recovers_leaders: bool = True


class Outcome(NamedTuple):
    """An error code with an optional error message, worded as in Kafka."""

    error: ControllerError
    message: str | None = None
