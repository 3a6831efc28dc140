"""Check a heartbeat against the state of the member that sent it. The functions raise KafkaError."""

from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.groups.consumer.heartbeat import Heartbeat
from kafka_compat.groups.consumer.member import LEAVE_TEMPORARILY_EPOCH, Member, PartitionEpochs
from kafka_compat.groups.consumer.reconciliation import Owned
from kafka_compat.groups.consumer.state import GroupState


def leaving_member(state: GroupState, request: Heartbeat) -> Member:
    """Return the member that leaves."""
    if request.instance_id is None:
        member = state.members.current.get(request.member_id)
        if member is None:
            raise unknown(request.member_id)
        return member
    member = state.static_member(request.instance_id)
    if member is None:
        raise unknown_instance(request)
    check_instance(member, request)
    return member


def check_released(member: Member, instance_id: str) -> None:
    """Check that a static member has left, so that another one may replace it."""
    if member.classic is None and member.epoch != LEAVE_TEMPORARILY_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"The instance ID {instance_id} belongs to member {member.member_id}, which has not left the "
            "group",
        )


def check_instance(member: Member, request: Heartbeat) -> None:
    """Check that no other member has taken over the instance ID."""
    if member.member_id != request.member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"The instance ID {request.instance_id} now belongs to member {member.member_id}",
        )


def check_epoch(member: Member, request: Heartbeat) -> None:
    """Check that the epoch is the member's, or the previous one after a response was lost."""
    epoch = request.member_epoch
    if epoch == member.epoch:
        return
    if epoch == member.previous_epoch < member.epoch and _is_part_of(request.owned, member.assigned):
        return
    relation = "greater" if epoch > member.epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The member's epoch {epoch} is {relation} than {member.epoch}. It must give up its partitions and "
        "join again",
    )


def _is_part_of(owned: Owned | None, assigned: PartitionEpochs) -> bool:
    return owned is not None and all(
        assigned.get(topic_id, {}).keys() >= set(partitions) for topic_id, partitions in owned.items()
    )


def unknown(member_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"The group has no member {member_id}")


def unknown_instance(request: Heartbeat) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"No member of the group has the instance ID {request.instance_id}"
    )
