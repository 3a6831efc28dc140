"""List, describe and delete groups, and change their offsets, as Kafka's admin client does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.client.partitions import TopicPartition, by_topic, check, each_partition, error_codes
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster, Node


CONSUMERS: Final = "consumer"
"""Protocol type of consumer groups. Groups that only store offsets have the protocol type ""."""
DEAD: Final = "Dead"
EMPTY: Final = "Empty"


class Listed(NamedTuple):
    """A listed group. `state` and `type` are "" if the broker is too old to report them."""

    group_id: str
    protocol_type: str
    state: str
    type: str


class Member(NamedTuple):
    """A member and its assigned partitions. `instance_id` is "" for a dynamic member. Only KIP-848 groups
    report `epoch`, the target assignment `target`, and whether the member itself uses the KIP-848 protocol
    (`is_upgraded`).
    """

    member_id: str
    instance_id: str
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]
    epoch: int | None = None
    target: tuple[TopicPartition, ...] = ()
    is_upgraded: bool | None = None


class Description(NamedTuple):
    """A described group. Some brokers report an unknown group as DEAD instead of returning an error. Only
    KIP-848 groups have epochs.
    """

    group_id: str
    state: str
    assignor: str
    members: tuple[Member, ...]
    coordinator: Node
    epoch: int | None = None
    target_epoch: int | None = None


class Committed(NamedTuple):
    """A committed offset, with its leader epoch and metadata."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def list_groups(cluster: Cluster) -> list[Listed]:
    """Return all consumer groups. Raises KafkaError on failure, and the same errors as `Cluster.ask`."""
    return [one for one in all_groups(cluster) if one.protocol_type in ("", CONSUMERS)]


def all_groups(cluster: Cluster) -> list[Listed]:
    """Return the groups of any protocol. Raises the same errors as `list_groups`."""
    call = "listGroups"
    found: dict[str, Listed] = {}
    for node in cluster.brokers(call):
        answer = cluster.ask_broker(node.node_id, ApiKey.LIST_GROUPS, call)
        check(answer.error_code)
        for one in answer.groups:
            listed = Listed(one.group_id, one.protocol_type, one.group_state, one.group_type.capitalize())
            found.setdefault(one.group_id, listed)
    return list(found.values())


def describe_group(cluster: Cluster, group_id: str) -> Description:
    """Describe a consumer group (classic or KIP-848). Raises KafkaError if it does not exist or is not a
    consumer group, and the same errors as `Cluster.ask`.
    """
    call = "describeConsumerGroups"
    node_id = cluster.coordinator(group_id, call)
    unknown = f"Group {group_id} not found."
    if ApiKey.CONSUMER_GROUP_DESCRIBE in cluster.api_versions(node_id, call):
        newer = _describe_newer(cluster, group_id, call)
        if isinstance(newer, Description):
            return newer
        unknown = newer or unknown
    answer = cluster.ask_coordinator(group_id, ApiKey.DESCRIBE_GROUPS, call, groups=[group_id])
    group = answer.groups[0]
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, unknown)
    check(group.error_code, group.error_message)
    if group.protocol_type not in ("", CONSUMERS):
        text = f"GroupId {group_id} is not a consumer group ({group.protocol_type})."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    return Description(
        group_id,
        group.group_state or DEAD,
        group.protocol_data,
        tuple(
            Member(
                one.member_id,
                one.group_instance_id or "",
                one.client_id,
                one.client_host,
                assigned(one.member_assignment),
            )
            for one in group.members
        ),
        cluster.nodes[cluster.coordinator(group_id, call)],
    )


def _describe_newer(cluster: Cluster, group_id: str, call: str) -> Description | str:
    """Return the description of a KIP-848 group, or the broker's message if it has no such group."""
    answer = cluster.ask_coordinator(group_id, ApiKey.CONSUMER_GROUP_DESCRIBE, call, group_ids=[group_id])
    group = answer.groups[0]
    if group.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return group.error_message or ""
    check(group.error_code, group.error_message)
    members = tuple(
        Member(
            one.member_id,
            one.instance_id or "",
            one.client_id,
            one.client_host,
            _partitions(one.assignment),
            one.member_epoch,
            _partitions(one.target_assignment),
            None if one.member_type < 0 else bool(one.member_type),
        )
        for one in group.members
    )
    return Description(
        group_id,
        group.group_state,
        group.assignor_name,
        members,
        cluster.nodes[cluster.coordinator(group_id, call)],
        group.group_epoch,
        group.assignment_epoch,
    )


def _partitions(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        (topic.topic_name, number) for topic in assignment.topic_partitions for number in topic.partitions
    )


def assigned(content: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions in a member's SyncGroup assignment."""
    from kafka_compat.protocol.codec import decode_versioned
    from kafka_compat.protocol.messages.consumer_protocol import ConsumerProtocolAssignment

    if not content:
        return ()
    assignment, _ = decode_versioned(ConsumerProtocolAssignment, content)
    return tuple(
        (topic.topic, number) for topic in assignment.assigned_partitions for number in topic.partitions
    )


def committed_offsets(
    cluster: Cluster, group_id: str, *, require_stable: bool = False
) -> dict[TopicPartition, Committed]:
    """Return a group's committed offsets. Raises KafkaError on failure, and the errors of `Cluster.ask`."""
    from kafka_compat.protocol.messages.offset_fetch import OffsetFetchRequestGroup

    answer = cluster.ask_coordinator(
        group_id,
        ApiKey.OFFSET_FETCH,
        "listConsumerGroupOffsets",
        group_id=group_id,
        topics=None,
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)],
        require_stable=require_stable,
    )
    found = answer.groups[0] if answer.groups else answer
    check(found.error_code)
    offsets: dict[TopicPartition, Committed] = {}
    for place, one in each_partition(found.topics):
        check(one.error_code)
        if one.committed_offset >= 0:
            offsets[place] = Committed(one.committed_offset, one.committed_leader_epoch, one.metadata or "")
    return offsets


def commit_offsets(cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, Committed]) -> None:
    """Commit offsets for a group without members. Raises KafkaError for the first rejected offset, and the
    same errors as `Cluster.ask`.
    """
    if not offsets:
        return
    answer = cluster.ask_coordinator(
        group_id,
        ApiKey.OFFSET_COMMIT,
        "alterConsumerGroupOffsets",
        group_id=group_id,
        topics=commit_topics(offsets),
    )
    for code in error_codes(answer):
        check(code)


def commit_topics(offsets: Mapping[TopicPartition, Committed]) -> list[Any]:
    """Build the `topics` field of an OffsetCommit request."""
    from kafka_compat.protocol.messages.offset_commit import (
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), committed in sorted(offsets.items()):
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    return [OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in topics.items()]


def delete_group(cluster: Cluster, group_id: str) -> None:
    """Delete a group. Raises KafkaError if this fails, and the same errors as `Cluster.ask`."""
    answer = cluster.ask_coordinator(
        group_id, ApiKey.DELETE_GROUPS, "deleteConsumerGroups", groups_names=[group_id]
    )
    for one in answer.results:
        check(one.error_code)


def delete_offsets(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Delete a group's offsets for these partitions, and return an error code for each partition. Raises
    KafkaError if the whole request fails, and the same errors as `Cluster.ask`.
    """
    from kafka_compat.protocol.messages.offset_delete import (
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
    )

    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers]
        )
        for name, numbers in by_topic(sorted(partitions)).items()
    ]
    answer = cluster.ask_coordinator(
        group_id, ApiKey.OFFSET_DELETE, "deleteConsumerGroupOffsets", group_id=group_id, topics=topics
    )
    check(answer.error_code)
    return {place: one.error_code for place, one in each_partition(answer.topics)}
