"""Web console pages for topics: the list, one topic with its partitions, and its settings."""

from typing import Any, Final

from kafka_compat.http.routes import FORBIDDEN, NOT_FOUND, BadCall
from kafka_compat.long_work import Steps, batched
from kafka_compat.metadata.cache import PartitionMetadata, TopicMetadata
from kafka_compat.metrics.cluster_view import ClusterView
from kafka_compat.page.listing import Row, listed
from kafka_compat.page.remote_leaders import RemoteReport
from kafka_compat.page.visit import Data, Visit
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import Operation, ResourceType


def topic_rows(visit: Visit, remote: RemoteReport) -> Steps[list[Row]]:
    """Return the rows of all topics that are visible to the console's principal. Unknown values are None."""
    found = []
    looked_at = 0
    for topic in list(visit.cluster.metadata.topics.values()):
        looked_at += 1 + len(topic.partitions)
        if visit.rights.may_see_topic(topic.name):
            found.append((yield from topic_row(visit, remote, topic)))
        if looked_at >= _AT_ONCE:
            looked_at = 0
            yield None
    return found


def topic_row(visit: Visit, remote: RemoteReport, topic: TopicMetadata) -> Steps[Row]:
    """Return a topic's row. `records` is the number of offsets; `size_bytes` is the size of leaders' logs."""
    cluster = visit.cluster
    records: int | None = 0
    size_bytes: int | None = 0
    leaderless = under_replicated = 0
    for number, known in enumerate(topic.partitions, 1):
        leaderless += cluster.metadata.reachable_leader(known) is None
        under_replicated += len(known.isr) < len(known.replicas)
        oldest, newest, log_bytes = extent(cluster, remote, topic.name, known)
        records = None if records is None or oldest is None or newest is None else records + newest - oldest
        size_bytes = None if size_bytes is None or log_bytes is None else size_bytes + log_bytes
        if number % _AT_ONCE == 0:
            yield None
    return {
        "name": topic.name,
        "is_internal": topic.is_internal,
        "partitions": len(topic.partitions),
        "replication_factor": len(topic.partitions[0].replicas) if topic.partitions else 0,
        "leaderless_partitions": leaderless,
        "under_replicated_partitions": under_replicated,
        "records": records,
        "records_per_second": visit.observed.rates.of(topic.name),
        "size_bytes": size_bytes,
    }


def extent(
    cluster: ClusterView, remote: RemoteReport, topic: str, known: PartitionMetadata
) -> tuple[int | None, int | None, int | None]:
    """Return a partition's first offset, end offset for consumers, and size in bytes of the leader's log."""
    led = cluster.led(topic, known)
    if led is not None:
        return led.log.log_start_offset, led.known_high_watermark, led.log.size_bytes
    place = (topic, known.partition)
    bounds = remote.bounds.get(place)
    if bounds is None:
        return None, None, remote.sizes.get(place)
    return bounds.oldest, bounds.newest, remote.sizes.get(place)


_COLUMNS: Final = {
    "name": "name",
    "partitions": "partitions",
    "records": "records",
    "rate": "records_per_second",
    "size": "size_bytes",
}


async def see(visit: Visit) -> Data:
    """Return one page of the list of topics that are visible to the console's principal."""
    remote = await visit.observed.remote.look(visit.cluster)
    rows = await visit.finish(topic_rows(visit, remote))
    return {"topics": listed(rows, visit.query, _COLUMNS, "name"), "missing": remote.missing}


_PARTITION_COLUMNS: Final = {
    "partition": "partition",
    "leader": "leader",
    "records": "records",
    "size": "size_bytes",
}
_AT_ONCE: Final = 50
_GROUPS_SHOWN: Final = 20
"""Maximum number of groups on a topic's page. The list of groups shows all groups."""


def known_topic(visit: Visit) -> TopicMetadata:
    """Return the topic in the parameter `name`. Raises BadCall if it does not exist or is not visible."""
    return named_topic(visit, visit.given("name"))


def named_topic(visit: Visit, name: str) -> TopicMetadata:
    """Return the topic `name`. Raises BadCall if it does not exist or is not visible."""
    topic = visit.cluster.metadata.topics.get(name)
    if topic is None or not visit.rights.may_see_topic(name):
        # As in Kafka, do not reveal whether the topic exists to users without DESCRIBE permission.
        visit.rights.require(Operation.DESCRIBE, ResourceType.TOPIC, name)
        raise BadCall(f"unknown topic {name}", NOT_FOUND)
    return topic


async def see_one(visit: Visit) -> Data:
    """Return one topic, with data from the leaders of its partitions."""
    topic = known_topic(visit)
    remote = await visit.observed.remote.look(visit.cluster)
    rows = await visit.finish(_partitions(visit, remote, topic))
    groups = await visit.finish(_groups(visit, topic.name))
    return {
        **await visit.finish(topic_row(visit, remote, topic)),
        "topic_id": str(topic.topic_id),
        "list": listed(rows, visit.query, _PARTITION_COLUMNS, "partition", "partition"),
        "groups": groups[:_GROUPS_SHOWN],
        "groups_count": len(groups),
        "missing": remote.missing,
    }


def _partitions(visit: Visit, remote: RemoteReport, topic: TopicMetadata) -> Steps[list[Row]]:
    found = []
    metadata = visit.cluster.metadata
    for some in batched(topic.partitions, _AT_ONCE):
        for known in some:
            oldest, newest, size_bytes = extent(visit.cluster, remote, topic.name, known)
            found.append(
                {
                    "partition": known.partition,
                    "leader": metadata.reachable_leader(known),
                    "leader_epoch": known.leader_epoch,
                    "replicas": list(known.replicas),
                    "in_sync_replicas": list(known.isr),
                    "offline_replicas": metadata.offline_replicas(known),
                    "start_offset": oldest,
                    "end_offset": newest,
                    "records": None if oldest is None or newest is None else newest - oldest,
                    "size_bytes": size_bytes,
                }
            )
        yield None
    return found


def _groups(visit: Visit, topic: str) -> Steps[list[Row]]:
    """Return the groups coordinated by this process that have committed offsets for the topic."""
    found = []
    for coordinator in visit.cluster.coordinators():
        for group_id in coordinator.group_ids():
            progress = coordinator.progress(group_id)
            yield None
            if progress is None or not visit.rights.may_see_group(group_id):
                continue
            partitions = sum(place[0] == topic for place in progress.committed)
            if partitions:
                found.append({"name": group_id, "members": len(progress.members), "partitions": partitions})
    return sorted(found, key=lambda row: str(row["name"]))


_SOURCES: Final = {
    1: "the topic",
    2: "the broker, changed at run time",
    3: "all brokers, changed at run time",
    4: "the broker's settings",
    5: "default",
    6: "the broker's logger",
}
"""Descriptions of Kafka's ConfigSource values."""
OWN: Final = _SOURCES[1]
"""The source of settings that are set on the topic."""


async def see_settings(visit: Visit) -> Data:
    """Return the topic's settings, as reported by DescribeConfigs."""
    topic = known_topic(visit)
    return {"name": topic.name, "settings": await described(visit, ResourceType.TOPIC, topic.name)}


async def described(visit: Visit, kind: int, name: str, broker_id: int | None = None) -> list[dict[str, Any]]:
    """Return the settings of a topic or broker, explicitly set ones first. Raises BadCall on errors."""
    from kafka_compat.protocol.messages.describe_configs import DescribeConfigsResource

    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    asked = {"resources": [resource], "include_synonyms": True, "include_documentation": True}
    answer = await visit.ask(ApiKey.DESCRIBE_CONFIGS, None, broker_id, **asked)
    (result,) = answer.results
    if result.error_code:
        raise BadCall(result.error_message or f"error {result.error_code}", FORBIDDEN)
    found = [
        {
            "name": each.name,
            "value": None if each.is_sensitive else each.value,
            "is_sensitive": each.is_sensitive,
            "source": _SOURCES.get(each.config_source, "unknown"),
            "is_set": each.config_source < 5,
            "documentation": each.documentation or "",
            "synonyms": [
                {"name": item.name, "value": item.value, "source": _SOURCES.get(item.source, "unknown")}
                for item in each.synonyms
            ],
        }
        for each in result.configs
    ]
    return sorted(found, key=lambda one: (not one["is_set"], one["name"]))
