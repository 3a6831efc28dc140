"""Factory of group members: the setting group.protocol selects their protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_compat.client.group_consumer import GroupConsumer, group_settings, uses_consumer_protocol

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster
    from kafka_compat.client.consumer_protocol import ConsumerProtocolConsumer
    from kafka_compat.client.fetcher import Fetcher

    GroupMember = GroupConsumer | ConsumerProtocolConsumer


def group_member(
    cluster: Cluster,
    fetcher: Fetcher,
    given: Mapping[str, str],
    topics: Callable[[], Iterable[str]],
    metadata_max_age_s: float,
) -> GroupMember:
    """Return a member with a Java consumer's settings `given`. Raises ValueError if they are invalid."""
    settings = group_settings(given)
    if not uses_consumer_protocol(given):
        return GroupConsumer(cluster, fetcher, settings, topics)
    from kafka_compat.client.consumer_protocol import ConsumerProtocolConsumer

    return ConsumerProtocolConsumer(cluster, fetcher, settings, topics, metadata_max_age_s)
