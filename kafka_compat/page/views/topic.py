"""One topic: its partitions, and the groups that read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_compat.http.routes import BadCall
from kafka_compat.long_work import Steps, batched
from kafka_compat.page.listing import Row, listed
from kafka_compat.page.topic_rows import extent, topic_row
from kafka_compat.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kafka_compat.metadata.cache import TopicMetadata
    from kafka_compat.page.remote_leaders import RemoteReport
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit

_COLUMNS: Final = {
    "partition": "partition",
    "leader": "leader",
    "records": "records",
    "size": "size_bytes",
}
_AT_ONCE: Final = 50
_GROUPS_SHOWN: Final = 20
"""The list of groups shows all of them."""


def known_topic(visit: Visit) -> TopicMetadata:
    """The topic of the parameter `name`. BadCall where there is none, or it may not be seen."""
    return named_topic(visit, visit.given("name"))


def named_topic(visit: Visit, name: str) -> TopicMetadata:
    """The same of another name."""
    topic = visit.cluster.metadata.topics.get(name)
    if topic is None or not visit.rights.may_see_topic(name):
        # As brokers do: who may not see a topic does not hear whether there is one.
        visit.rights.require(Operation.DESCRIBE, ResourceType.TOPIC, name)
        raise BadCall(f"there is no topic {name}", 404)
    return topic


async def see(visit: Visit) -> Data:
    """What its leaders know."""
    topic = known_topic(visit)
    remote = await visit.observed.remote.look(visit.cluster)
    rows = await visit.finish(_partitions(visit, remote, topic))
    groups = await visit.finish(_groups(visit, topic.name))
    return {
        **await visit.finish(topic_row(visit, remote, topic)),
        "topic_id": str(topic.topic_id),
        "list": listed(rows, visit.query, _COLUMNS, "partition", "partition"),
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
    """Those that brokers of this process coordinate, and that have committed something there."""
    found = []
    for coordinator in visit.cluster.coordinators():
        for group_id in coordinator.group_ids():
            progress = coordinator.progress(group_id)
            yield None
            if progress is None or not visit.rights.may_see_group(group_id):
                continue
            partitions = sum(place[0] == topic for place in progress.committed)
            if partitions:
                found.append({"name": group_id, "members": progress.members, "partitions": partitions})
    return sorted(found, key=lambda row: str(row["name"]))
