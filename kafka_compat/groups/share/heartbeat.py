"""The heartbeat of a share group's member (KIP-932): request and result."""

from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.consumer.heartbeat import is_blank
from kafka_compat.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH

if TYPE_CHECKING:
    from kafka_compat.groups.consumer.assignors.assignor import Assignment


class ShareHeartbeat(NamedTuple):
    """A ShareGroupHeartbeat request. Fields that have not changed since the last one are None."""

    member_id: str
    member_epoch: int
    client_id: str
    client_host: str
    rack_id: str | None = None
    topic_names: tuple[str, ...] | None = None


class ShareHeartbeatResult(NamedTuple):
    """`assignment` is None if it has not changed. `message` explains an error to the user of the client."""

    error: ErrorCode
    message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: "Assignment | None" = None


def rejected(error: KafkaError) -> ShareHeartbeatResult:
    """Return the result of a heartbeat that is rejected with this error."""
    return ShareHeartbeatResult(error.code, error.message)


def check(group_id: str, request: ShareHeartbeat) -> None:
    """Raise KafkaError (INVALID_REQUEST) if the request is invalid."""
    required = {"MemberId": request.member_id, "GroupId": group_id, "RackId": request.rack_id}
    for name, value in required.items():
        if value is not None and is_blank(value):
            raise _invalid(f"{name} can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        if not request.topic_names:
            raise _invalid("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
