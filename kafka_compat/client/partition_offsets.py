"""Where partitions begin and end, and which there are, as a client of a cluster finds out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.client.leaders import ask_leaders, without_errors
from kafka_compat.client.partitions import TopicPartition, by_topic, check
from kafka_compat.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster

LATEST: Final = -1
EARLIEST: Final = -2


class Found(NamedTuple):
    """An offset and what is known of the record at it; -1 where nothing is."""

    offset: int
    timestamp_ms: int = -1
    leader_epoch: int = -1


def partitions_of(cluster: Cluster, topics: Iterable[str], call: str) -> dict[str, list[int]]:
    """The partitions of these topics. Raises KafkaError for a topic that is not there, and as
    `Cluster.ask`.
    """
    names = list(topics)
    if not names:
        return {}
    found: dict[str, list[int]] = {}
    for topic in cluster.metadata(names, call).topics:
        check(topic.error_code)
        found[topic.name] = sorted(one.partition_index for one in topic.partitions)
    return found


def leaders_of(cluster: Cluster, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """The leader of each partition of these topics, -1 where there is none. Raises as `partitions_of`."""
    names = sorted(topics)
    found: dict[TopicPartition, int] = {}
    for topic in cluster.metadata(names, "describeTopics").topics if names else ():
        check(topic.error_code)
        found |= {(topic.name, one.partition_index): one.leader_id for one in topic.partitions}
    return found


def by_leader(
    leaders: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]
) -> dict[int, dict[str, list[int]]]:
    """Leader -> topic -> partitions."""
    found: dict[int, list[TopicPartition]] = {}
    for place in sorted(partitions):
        found.setdefault(leaders[place], []).append(place)
    return {leader: by_topic(places) for leader, places in found.items()}


def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> dict[TopicPartition, Found]:
    """The first record at or behind a time in ms, or LATEST or EARLIEST, of each partition; asks again while
    a partition has no leader. Raises KafkaError for what does not go by, and as `Cluster.ask`.
    """
    return without_errors(try_offsets(cluster, wanted, read_committed=read_committed))


def try_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> dict[TopicPartition, Any]:
    """The same, with the KafkaError or TimedOut of a partition in its place. Raises as `Cluster.ask`."""
    from kafka_compat.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

    def request(topics: dict[str, list[int]]) -> dict[str, Any]:
        asked = [
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=number, timestamp=wanted[topic, number])
                    for number in partitions
                ],
            )
            for topic, partitions in topics.items()
        ]
        return {"replica_id": -1, "isolation_level": int(read_committed), "topics": asked}

    return ask_leaders(cluster, ApiKey.LIST_OFFSETS, "listOffsets", wanted, request, _listed)


def _listed(answer: Any) -> Iterator[tuple[TopicPartition, int, Found]]:
    for topic in answer.topics:
        for one in topic.partitions:
            offset = one.old_style_offsets[0] if one.old_style_offsets else one.offset
            place = (topic.name, one.partition_index)
            yield place, one.error_code, Found(offset, one.timestamp, one.leader_epoch)
