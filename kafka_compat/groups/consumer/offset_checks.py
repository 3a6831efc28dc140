"""Which members of a consumer group may commit and fetch offsets (KIP-848, KIP-1251).

A member may commit with its current epoch, or with the epoch since which it has had all partitions or any
later one. It may fetch offsets with its current epoch.
"""

from collections.abc import Collection

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.consumer.groups_of_broker import Topics
from kafka_compat.groups.consumer.member import Member
from kafka_compat.groups.consumer.state import GroupState, View
from kafka_compat.groups.requests import NO_GENERATION, Commit, TopicPartition


def check_commit(
    state: GroupState, topics: Topics, request: Commit, partitions: Collection[TopicPartition]
) -> ErrorCode:
    """Return NONE if offsets for these partitions may be committed, or an error code."""
    epoch, members = request.generation_id, state.members.current
    is_transactional = request.producer is not None
    if epoch < 0 and not members:
        return ErrorCode.NONE
    is_anonymous = not request.member_id and request.group_instance_id is None
    if is_transactional and epoch == NO_GENERATION and is_anonymous:
        # Transactional producers that predate KIP-447 do not send a member ID.
        return ErrorCode.NONE
    member = members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.classic is None and not request.has_member_epochs and not is_transactional:
        return ErrorCode.UNSUPPORTED_VERSION
    if epoch == member.epoch or (
        epoch < member.epoch
        and all(_has_since(member, topics, topic, partition, epoch) for topic, partition in partitions)
    ):
        return ErrorCode.NONE
    return _wrong_epoch(member, request.has_member_epochs)


def check_fetch(view: View | None, member_id: str | None, epoch: int) -> ErrorCode:
    """Return NONE if a member of the committed group may fetch offsets, or an error code. A client that sends
    neither a member ID nor an epoch may always fetch them.
    """
    if view is None or (member_id is None and epoch < 0):
        return ErrorCode.NONE
    member = None if member_id is None else view.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.epoch else _wrong_epoch(member, True)


def _has_since(member: Member, topics: Topics, topic: str, partition: int, epoch: int) -> bool:
    """Return whether the member has had a partition since this epoch or an earlier one."""
    topic_id = topics.topic_id(topic)
    if topic_id is None:
        return False
    for partitions in (member.assigned, member.pending_revocation):
        assigned = partitions.get(topic_id, {}).get(partition)
        if assigned is not None:
            return assigned <= epoch
    return False


def _wrong_epoch(member: Member, has_member_epochs: bool) -> ErrorCode:
    if member.classic is not None or not has_member_epochs:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH
