"""Descriptions of groups for the web console: classic, consumer (KIP-848) and share groups (KIP-932)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafka_compat.client.groups import DEAD, assigned
from kafka_compat.client.partitions import TopicPartition
from kafka_compat.metadata.features import GROUP_VERSION
from kafka_compat.page.visit import Visit
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
_CLASSIC_VERSION: Final = 5
_CONSUMER_VERSION: Final = 1
_SHARE_VERSION: Final = 1


class MemberSeen(NamedTuple):
    """A member and its assigned partitions. Only members of consumer and share groups have an epoch and a
    target assignment.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]
    epoch: int | None = None
    target: tuple[TopicPartition, ...] = ()


class Described(NamedTuple):
    """A group, with the error code of its description. Only consumer and share groups have epochs:
    `target_epoch` is the epoch of the target assignment. An unknown group has the state "Dead".
    """

    error_code: int
    type: str
    state: str
    assignor: str
    members: tuple[MemberSeen, ...]
    epoch: int | None = None
    target_epoch: int | None = None


def may_have_consumer_groups(visit: Visit) -> bool:
    """Return whether all brokers support consumer groups (group.version)."""
    return visit.cluster.metadata.feature_level(GROUP_VERSION) > 0


async def describe_groups(visit: Visit, broker_id: int, types: Mapping[str, str]) -> dict[str, Described]:
    """Describe groups that a broker coordinates. `types` maps their names to their types. Raises BadCall if
    the broker does not respond.
    """
    found: dict[str, Described] = {}
    consumer = [name for name, group_type in types.items() if group_type == CONSUMER]
    share = [name for name, group_type in types.items() if group_type == SHARE]
    classic = [name for name, group_type in types.items() if group_type not in (CONSUMER, SHARE)]
    if classic:
        answer = await visit.ask(ApiKey.DESCRIBE_GROUPS, _CLASSIC_VERSION, broker_id, groups=classic)
        found |= {one.group_id: _classic(one) for one in answer.groups}
    if consumer:
        key = ApiKey.CONSUMER_GROUP_DESCRIBE
        answer = await visit.ask(key, _CONSUMER_VERSION, broker_id, group_ids=consumer)
        found |= {one.group_id: _consumer(one) for one in answer.groups}
    if share:
        key = ApiKey.SHARE_GROUP_DESCRIBE
        answer = await visit.ask(key, _SHARE_VERSION, broker_id, group_ids=share)
        found |= {one.group_id: _share(one) for one in answer.groups}
    return found


async def describe_group(visit: Visit, broker_id: int, name: str) -> Described:
    """Describe a group of unknown type. Raises BadCall if the broker does not respond."""
    found = (await describe_groups(visit, broker_id, {name: CLASSIC}))[name]
    if found.state != DEAD or not may_have_consumer_groups(visit):
        return found
    for group_type in (CONSUMER, SHARE):
        newer = (await describe_groups(visit, broker_id, {name: group_type}))[name]
        if not newer.error_code:
            return newer
    return found


def _classic(group: Any) -> Described:
    members = tuple(
        MemberSeen(
            one.member_id,
            one.group_instance_id,
            one.client_id,
            one.client_host,
            _assigned(one.member_assignment) if group.protocol_type == CONSUMER else (),
        )
        for one in group.members
    )
    return Described(group.error_code, CLASSIC, group.group_state, group.protocol_data, members)


def _assigned(assignment: Any) -> tuple[TopicPartition, ...]:
    try:
        return assigned(bytes(assignment))
    except MalformedRequest:
        # Ignore invalid assignments, because members may send arbitrary bytes.
        return ()


def _consumer(group: Any) -> Described:
    members = tuple(
        MemberSeen(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            _partitions(one.assignment.topic_partitions),
            one.member_epoch,
            _partitions(one.target_assignment.topic_partitions),
        )
        for one in group.members
    )
    return Described(
        group.error_code,
        CONSUMER,
        group.group_state or DEAD,
        group.assignor_name,
        members,
        group.group_epoch,
        group.assignment_epoch,
    )


def _share(group: Any) -> Described:
    """Members of share groups take their target assignments at once."""
    members = tuple(
        MemberSeen(
            one.member_id,
            None,
            one.client_id,
            one.client_host,
            _partitions(one.assignment.topic_partitions),
            one.member_epoch,
            _partitions(one.assignment.topic_partitions),
        )
        for one in group.members
    )
    return Described(
        group.error_code,
        SHARE,
        group.group_state or DEAD,
        group.assignor_name,
        members,
        group.group_epoch,
        group.assignment_epoch,
    )


def _partitions(topics: Sequence[Any]) -> tuple[TopicPartition, ...]:
    return tuple((topic.topic_name, number) for topic in topics for number in topic.partitions)
