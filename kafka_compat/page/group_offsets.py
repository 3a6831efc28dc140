"""The offsets of a group at its coordinator, wherever that is: read and committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.client.groups import Committed, commit_topics
from kafka_compat.errors import STANDARD_MESSAGES, ErrorCode, known_code
from kafka_compat.http.routes import BadCall
from kafka_compat.long_work import gathered
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kafka_compat.page.visit import Visit

TopicPartition = tuple[str, int]

_FIND_VERSION: Final = 3
_DESCRIBE_VERSION: Final = 5
_FETCH_VERSION: Final = 7
_COMMIT_VERSION: Final = 8
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_UNAVAILABLE: Final = 503


class Positions(NamedTuple):
    """Of one group."""

    state: str
    members: int
    committed: dict[TopicPartition, int]
    """Of topics that may be seen."""


async def positions_of(visit: Visit, group_id: str) -> Positions:
    """BadCall where there is no such group, or it may not be seen."""
    from kafka_compat.protocol.messages.describe_groups import DescribeGroupsRequest
    from kafka_compat.protocol.messages.offset_fetch import OffsetFetchRequest

    visit.rights.require(Operation.DESCRIBE, ResourceType.GROUP, group_id)
    coordinator = await coordinator_of(visit, group_id)
    described = await visit.ask(
        ApiKey.DESCRIBE_GROUPS,
        DescribeGroupsRequest(groups=[group_id]),
        version=_DESCRIBE_VERSION,
        broker_id=coordinator,
    )
    group = described.groups[0]
    _check(group.error_code, f"group {group_id}")
    fetched = await visit.ask(
        ApiKey.OFFSET_FETCH,
        OffsetFetchRequest(group_id=group_id, topics=None),
        version=_FETCH_VERSION,
        broker_id=coordinator,
    )
    _check(fetched.error_code, f"the offsets of group {group_id}")
    found = (
        ((topic.name, each.partition_index), each.committed_offset)
        for topic in fetched.topics
        if visit.rights.may_see_topic(topic.name)
        for each in topic.partitions
        if each.committed_offset >= 0
    )
    committed = dict(await visit.finish(gathered(found)))
    if group.group_state == "Dead" and not committed:
        raise BadCall(f"there is no group {group_id}", _NOT_FOUND)
    return Positions(group.group_state, len(group.members), committed)


async def commit(visit: Visit, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Give a group without members these positions. BadCall with the first that is refused."""
    from kafka_compat.protocol.messages.offset_commit import OffsetCommitRequest

    visit.rights.require(Operation.READ, ResourceType.GROUP, group_id)
    for topic in {topic for topic, _ in offsets}:
        visit.rights.require(Operation.READ, ResourceType.TOPIC, topic)
    topics = commit_topics({place: Committed(offset) for place, offset in offsets.items()})
    answer = await visit.ask(
        ApiKey.OFFSET_COMMIT,
        OffsetCommitRequest(group_id=group_id, topics=topics),
        version=_COMMIT_VERSION,
        broker_id=await coordinator_of(visit, group_id),
    )
    for topic in answer.topics:
        for each in topic.partitions:
            _check(each.error_code, f"the offset of {topic.name}-{each.partition_index}")


async def coordinator_of(visit: Visit, group_id: str) -> int:
    """BadCall where there is none now."""
    from kafka_compat.protocol.messages.find_coordinator import FindCoordinatorRequest

    found = await visit.ask(
        ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key=group_id), version=_FIND_VERSION
    )
    _check(found.error_code, f"the coordinator of group {group_id}")
    node_id: int = found.node_id
    return node_id


def _check(number: int, what: str) -> None:
    code = known_code(number)
    if code == ErrorCode.NONE:
        return
    if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
        raise BadCall(
            "the group has members, which commit themselves: stop all of them, then change its offsets",
            _CONFLICT,
        )
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise BadCall(f"{what}: there is none", _NOT_FOUND)
    status = _UNAVAILABLE if code.name.startswith("COORDINATOR") else _CONFLICT
    raise BadCall(f"{what}: {code.name} {STANDARD_MESSAGES.get(code, '')}".strip(), status)
