"""The overview page: health of the cluster, problems, and activity."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from kafka_compat.long_work import Steps
from kafka_compat.metadata.cache import TopicMetadata
from kafka_compat.metrics.health import reasons_against
from kafka_compat.page.listing import Row
from kafka_compat.page.views import hour
from kafka_compat.page.views.brokers import disk_row, log_dirs
from kafka_compat.page.views.groups import Ages, add_seconds, all_groups, group_rows
from kafka_compat.page.views.topics import topic_rows
from kafka_compat.page.visit import Data, Visit
from kafka_compat.status import snapshot
from kafka_compat.status.rules import problems

_SHOWN: Final = 5
_CHARTS: Final = 3
"""Number of groups whose charts are shown."""


async def see(visit: Visit) -> Data:
    """Return the overview of all data that is visible to the console's principal."""
    cluster = visit.cluster
    # Run the queries concurrently, so that an unresponsive broker delays the request only once.
    remote, groups, ages, (dirs, missing) = await asyncio.gather(
        visit.observed.remote.look(cluster), all_groups(visit), Ages.of(visit), _log_dirs(visit)
    )
    topics = await visit.finish(topic_rows(visit, remote))
    of_groups = await visit.finish(group_rows(visit, remote, groups.found))
    behind = [row for row in of_groups if (row["lag"] or 0) > 0]
    behind.sort(key=lambda row: (-row["lag"], row["name"]))
    worst = behind[:_SHOWN]
    await visit.finish(add_seconds(ages, worst, groups.found))
    not_ready = []
    for services in cluster.services:
        reasons = await visit.finish(reasons_against(services))
        not_ready += [f"broker {services.broker_id}: {reason}" for reason in reasons]
    troubled = await visit.finish(_snapshot(visit, topics, dirs, of_groups))
    found = [{"kind": one.kind, "text": one.text, "subjects": one.subjects} for one in problems(troubled)]
    rates = [row["records_per_second"] for row in topics]
    return {
        "is_well": not (found or not_ready),
        "problems": found,
        "not_ready": not_ready,
        "missing": sorted({*remote.missing, *groups.missing, *missing}),
        "cluster_id": cluster.metadata.cluster_id,
        "controller": cluster.metadata.controller_id if cluster.metadata.controller_id >= 0 else None,
        "brokers": len(cluster.metadata.brokers),
        "topics": len(topics),
        "partitions": sum(row["partitions"] for row in topics),
        "groups": len(groups.found),
        "groups_behind": len(behind),
        "records_per_second": _sum(rates),
        "size_bytes": _sum([row["size_bytes"] for row in topics]),
        "connections": sum(len(server.connections) for _, server in visit.observed.servers()),
        "quorum": _quorum(visit),
        "disks": [disk_row(one) for one in dirs],
        "busiest_topics": _busiest(topics),
        "groups_most_behind": worst,
        "time_ms": cluster.now_ms(),
        "charts": [*await visit.finish(hour.charts(visit)), *await hour.most_behind(visit, _CHARTS)],
    }


async def _log_dirs(visit: Visit) -> tuple[list[snapshot.LogDir], list[str]]:
    """Return the log directories, or an empty list if they are not visible to the console's principal."""
    if not visit.rights.may_see_cluster:
        return [], []
    return await log_dirs(visit, with_replicas=False)


def _quorum(visit: Visit) -> Data | None:
    """Return the metadata quorum as this process's node sees it, or None if there is none or it is not
    visible to the console's principal. Only the leader knows the lag of the voters.
    """
    node = next((each.quorum for each in visit.cluster.services if each.quorum is not None), None)
    if node is None or not visit.rights.may_see_cluster:
        return None
    state, found = node.state(), node.describe()
    lags = {}
    if found is not None:
        lags = {each.key.node_id: state.log_end_offset - each.log_end_offset for each in found.voters}
    return {
        "node_id": state.node_id,
        "state": state.state,
        "leader": state.leader_id if state.leader_id >= 0 else None,
        "epoch": state.epoch,
        "high_watermark": state.high_watermark,
        "voters": [
            {
                "id": voter_id,
                "address": None if address is None else f"{address[0]}:{address[1]}",
                "role": "leader" if voter_id == state.leader_id else "voter",
                "lag": lags.get(voter_id),
            }
            for voter_id, address in state.voters.items()
        ],
    }


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum of the known values, or None if all are unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if known or not values else None


def _busiest(topics: list[Row]) -> list[Row]:
    busy = [row for row in topics if row["records_per_second"]]
    return sorted(busy, key=lambda row: (-row["records_per_second"], row["name"]))[:_SHOWN]


def _snapshot(
    visit: Visit, topics: list[Row], dirs: list[snapshot.LogDir], groups: list[Row]
) -> Steps[snapshot.Snapshot]:
    """Return the snapshot that the status rules check. It contains only topics and groups that may have
    problems, because the rules do not yield to the event loop.
    """
    metadata = visit.cluster.metadata
    brokers = {
        each.broker_id: snapshot.Broker(each.broker_id, *(visit.cluster.address(each) or (None, None)))
        for each in metadata.brokers.values()
    }
    troubled = []
    for row in topics:
        yield None
        topic = metadata.topics.get(row["name"])
        if topic is None or not (row["leaderless_partitions"] or row["under_replicated_partitions"]):
            continue
        for each in topic.partitions:
            for replica in each.replicas:
                if replica not in brokers:
                    brokers[replica] = snapshot.Broker(replica, fault="it is not in the cluster")
        troubled.append(
            snapshot.Topic(
                topic.name,
                topic.is_internal,
                _min_isr(visit, topic),
                tuple(
                    snapshot.Partition(
                        each.partition, metadata.reachable_leader(each), each.replicas, each.isr
                    )
                    for each in topic.partitions
                ),
            )
        )
    return snapshot.Snapshot(
        time_ms=visit.cluster.now_ms(),
        taken_at_s=time.monotonic(),
        cluster_id=metadata.cluster_id,
        is_kraft=False,
        controller_id=metadata.controller_id if metadata.controller_id >= 0 else None,
        brokers=tuple(brokers[key] for key in sorted(brokers)),
        topics=tuple(troubled),
        groups=tuple(_group(row) for row in groups if row["beyond_end"]),
        log_dirs=tuple(dirs),
    )


def _min_isr(visit: Visit, topic: TopicMetadata) -> int | None:
    """Return min.insync.replicas as applied by a leader in this process, or None if unknown."""
    for known in topic.partitions:
        led = visit.cluster.led(topic.name, known)
        if led is not None:
            return led.min_insync_replicas
    return None


def _group(row: Row) -> snapshot.Group:
    """Return a group with the committed offsets that are beyond the ends of their partitions."""
    places = (place.rpartition("-") for place in row["beyond_end"])
    positions = (snapshot.Position(topic, int(number), 1, 0) for topic, _, number in places)
    return snapshot.Group(
        row["name"],
        row["state"],
        row["type"],
        row["protocol_type"],
        row["coordinator"],
        positions=tuple(positions),
    )
