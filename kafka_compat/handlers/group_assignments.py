"""Assignments of consumer groups and share groups in responses (KIP-848, KIP-932)."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_compat.api.handler import RequestContext
from kafka_compat.protocol.messages import consumer_group_describe, consumer_group_heartbeat

if TYPE_CHECKING:
    from uuid import UUID


def assignment_for_member(
    partitions: "Mapping[UUID, Iterable[int]] | None",
) -> consumer_group_heartbeat.Assignment | None:
    """Return an assignment in the response to a heartbeat, or None if it has not changed."""
    if partitions is None:
        return None
    return consumer_group_heartbeat.Assignment(
        topic_partitions=[
            consumer_group_heartbeat.TopicPartitions(topic_id=topic_id, partitions=list(numbers))
            for topic_id, numbers in partitions.items()
        ]
    )


def described_assignment(
    ctx: RequestContext, partitions: "Mapping[UUID, Iterable[int]]"
) -> consumer_group_describe.Assignment:
    """Return an assignment in the description of a group, without deleted topics."""
    topics = []
    for topic_id, numbers in partitions.items():
        name = ctx.services.metadata.topic_name(topic_id)
        if name is not None:
            topics.append(
                consumer_group_describe.TopicPartitions(
                    topic_id=topic_id, topic_name=name, partitions=list(numbers)
                )
            )
    return consumer_group_describe.Assignment(topic_partitions=topics)
