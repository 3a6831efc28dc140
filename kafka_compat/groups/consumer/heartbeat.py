"""The heartbeat of a consumer group's member (KIP-848): request and result."""

from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_TEMPORARILY_EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_compat.groups.consumer.member import PartitionEpochs
    from kafka_compat.groups.consumer.reconciliation import Owned


class Heartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat request. Fields that have not changed since the last one are None, and
    `rebalance_timeout_ms` is -1.
    """

    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topic_names: tuple[str, ...] | None = None
    topic_regex: str | None = None
    server_assignor: str | None = None
    owned: "Owned | None" = None
    may_describe: "Callable[[str], bool]" = lambda topic: True
    """Whether the client may describe a topic."""

    @property
    def is_full(self) -> bool:
        """Whether the request contains everything that the broker knows of a member. Clients send such a
        request when they join, and after an error.
        """
        return self.member_epoch == JOIN_EPOCH or (
            self.rebalance_timeout_ms != -1
            and (self.topic_names is not None or self.topic_regex is not None)
            and self.owned is not None
        )


class HeartbeatResult(NamedTuple):
    """`assignment` is None if it has not changed. `message` explains an error to the user of the client."""

    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: "PartitionEpochs | None" = None


def rejected(error: KafkaError) -> HeartbeatResult:
    """Return the result of a heartbeat that is rejected with this error."""
    return HeartbeatResult(error.code, error.message)


def check(group_id: str, request: Heartbeat, assignors: "tuple[str, ...]") -> None:
    """Raise KafkaError (INVALID_REQUEST or UNSUPPORTED_ASSIGNOR) if the request is invalid. `assignors`
    are the names in group.consumer.assignors.
    """
    required = {"group ID": group_id, "instance ID": request.instance_id, "rack ID": request.rack_id}
    for name, value in required.items():
        if value is not None and is_blank(value):
            raise _invalid(f"The {name} is empty")
    epoch = request.member_epoch
    if epoch < LEAVE_TEMPORARILY_EPOCH:
        raise _invalid(f"The member epoch {epoch} is not valid")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("A member that joins must give its rebalance timeout")
        if request.owned is None or request.owned:
            raise _invalid("A member that joins must not own partitions")
        if request.topic_names is None and request.topic_regex is None:
            raise _invalid("A member that joins must subscribe to topics or to a regular expression")
    if is_blank(request.member_id):
        raise _invalid("The member ID is empty")
    if epoch == LEAVE_TEMPORARILY_EPOCH and request.instance_id is None:
        raise _invalid("Only a static member can leave temporarily, but the instance ID is null")
    if epoch == LEAVE_EPOCH:
        return
    if request.server_assignor is not None and request.server_assignor not in assignors:
        known = ", ".join(assignors)
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"The assignor {request.server_assignor} is not known. Known assignors: {known}",
        )


def is_blank(text: str) -> bool:
    """Return whether a text has only spaces and control characters, which Kafka removes."""
    return all(character <= " " for character in text)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
