"""Describe share groups, and change their offsets, as Kafka's admin client does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.client.partitions import TopicPartition, by_topic, check
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster, Node

SHARE: Final = "Share"
"""The type of share groups in `kafka_compat.client.groups.Listed`."""


class ShareMember(NamedTuple):
    """A member and its assigned partitions."""

    member_id: str
    client_id: str
    host: str
    epoch: int
    partitions: tuple[TopicPartition, ...]


class ShareDescription(NamedTuple):
    """A described share group."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    members: tuple[ShareMember, ...]
    coordinator: Node


class SharePartitionOffset(NamedTuple):
    """The progress of a group in one partition. `lag` is None if it is unknown, and `leader_epoch` is None if
    it was never stored.
    """

    start_offset: int
    leader_epoch: int | None
    lag: int | None


Failed = tuple[int, str | None]
"""An error code and the broker's message."""


def describe_share_group(cluster: Cluster, group_id: str) -> ShareDescription:
    """Describe a share group. Raises KafkaError if it does not exist or is not a share group, and the same
    errors as `Cluster.ask`.
    """
    call = "describeShareGroups"
    answer = cluster.ask_coordinator(group_id, ApiKey.SHARE_GROUP_DESCRIBE, call, group_ids=[group_id])
    group = answer.groups[0]
    check(group.error_code, group.error_message)
    members = tuple(
        ShareMember(
            one.member_id,
            one.client_id,
            one.client_host,
            one.member_epoch,
            tuple(
                (topic.topic_name, number)
                for topic in one.assignment.topic_partitions
                for number in topic.partitions
            ),
        )
        for one in group.members
    )
    return ShareDescription(
        group_id,
        group.group_state,
        group.group_epoch,
        group.assignment_epoch,
        members,
        cluster.nodes[cluster.coordinator(group_id, call)],
    )


def share_offsets(cluster: Cluster, group_id: str) -> dict[TopicPartition, SharePartitionOffset | None]:
    """Return the progress of a share group in each partition that has a state, or None for a partition that
    was never fetched. Partitions with errors are omitted. Raises KafkaError if the group does not exist, and
    the same errors as `Cluster.ask`.
    """
    from kafka_compat.protocol.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequestGroup,
    )

    answer = cluster.ask_coordinator(
        group_id,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        "describeShareGroupOffsets",
        groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)],
    )
    found: dict[TopicPartition, SharePartitionOffset | None] = {}
    for group in answer.groups:
        check(group.error_code, group.error_message)
        for topic in group.topics:
            for one in topic.partitions:
                if one.error_code:
                    continue
                found[topic.topic_name, one.partition_index] = (
                    SharePartitionOffset(
                        one.start_offset,
                        one.leader_epoch if one.leader_epoch >= 0 else None,
                        one.lag if one.lag >= 0 else None,
                    )
                    if one.start_offset >= 0
                    else None
                )
    return found


def alter_share_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Failed]:
    """Set the start offsets of a share group without members, and return the error of each partition that
    failed. Raises the same errors as `Cluster.ask`.
    """
    from kafka_compat.protocol.messages.alter_share_group_offsets import (
        AlterShareGroupOffsetsRequestPartition,
        AlterShareGroupOffsetsRequestTopic,
    )

    topics = [
        AlterShareGroupOffsetsRequestTopic(
            topic_name=topic,
            partitions=[
                AlterShareGroupOffsetsRequestPartition(
                    partition_index=number, start_offset=offsets[topic, number]
                )
                for number in numbers
            ],
        )
        for topic, numbers in by_topic(sorted(offsets)).items()
    ]
    answer = cluster.ask_coordinator(
        group_id, ApiKey.ALTER_SHARE_GROUP_OFFSETS, "alterShareGroupOffsets", group_id=group_id, topics=topics
    )
    if answer.error_code:
        return dict.fromkeys(offsets, (answer.error_code, answer.error_message))
    return {
        (topic.topic_name, one.partition_index): (one.error_code, one.error_message)
        for topic in answer.responses
        for one in topic.partitions
        if one.error_code
    }


def delete_share_offsets(
    cluster: Cluster, group_id: str, topics: Collection[str]
) -> dict[str, Failed | None]:
    """Delete the offsets of a share group without members for these topics, and return the error of each
    topic, or None. Raises KafkaError if the whole request fails, and the same errors as `Cluster.ask`.
    """
    from kafka_compat.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequestTopic

    answer = cluster.ask_coordinator(
        group_id,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        "deleteShareGroupOffsets",
        group_id=group_id,
        topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics],
    )
    check(answer.error_code, answer.error_message)
    return {
        topic.topic_name: (topic.error_code, topic.error_message) if topic.error_code else None
        for topic in answer.responses
    }
