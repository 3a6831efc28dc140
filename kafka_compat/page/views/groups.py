"""Web console pages for groups: the list, and one group with its members, partitions and lag."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kafka_compat.client.partitions import TopicPartition, by_topic, each_partition
from kafka_compat.http.routes import NOT_FOUND, BadCall
from kafka_compat.lag import longest, records_behind, total_records
from kafka_compat.long_work import Steps, batched
from kafka_compat.metrics.group_lag import GroupLags, remote_lags
from kafka_compat.page.described_groups import (
    CLASSIC,
    MemberSeen,
    describe_groups,
    may_have_consumer_groups,
)
from kafka_compat.page.listing import Row, listed
from kafka_compat.page.remote_leaders import RemoteReport
from kafka_compat.page.views.hour import group_chart
from kafka_compat.page.views.topics import extent
from kafka_compat.page.visit import Data, Visit
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.security.authorizer import Operation, ResourceType

log = logging.getLogger(__name__)

_LIST_VERSION: Final = 4
_LIST_VERSION_WITH_TYPES: Final = 5
_FETCH_VERSION: Final = 8
_PATIENCE_S: Final = 3.0


class GroupSeen(NamedTuple):
    """A group as reported by its coordinator. `committed` contains offsets."""

    name: str
    type: str
    state: str
    protocol_type: str
    coordinator: int
    members: int
    committed: Mapping[TopicPartition, int]


class Groups(NamedTuple):
    """All groups visible to the console's principal. `missing` lists brokers that did not respond."""

    found: list[GroupSeen]
    missing: list[str]


async def all_groups(visit: Visit) -> Groups:
    """Return the groups of all coordinators."""
    found = await visit.finish(_groups_here(visit))
    missing: list[str] = []
    others = [one for one in visit.cluster.metadata.brokers if not visit.is_here(one)]
    for more in await asyncio.gather(*(_groups_there(visit, one, missing) for one in others)):
        found += more
    return Groups(found, missing)


def _groups_here(visit: Visit) -> Steps[list[GroupSeen]]:
    found = []
    for services in visit.cluster.services:
        coordinator = services.coordinators.groups.made
        if coordinator is None:
            continue
        _, overviews = yield from coordinator.list_groups_in_steps(set(), set())
        yield None
        for group in overviews:
            progress = coordinator.progress(group.group_id)
            if progress is None or not visit.rights.may_see_group(group.group_id):
                continue
            committed = {place: position.value.offset for place, position in progress.committed.items()}
            found.append(
                GroupSeen(
                    group.group_id,
                    str(group.type),
                    str(group.state),
                    group.protocol_type,
                    services.broker_id,
                    len(progress.members),
                    committed,
                )
            )
            yield None
    return found


async def _groups_there(visit: Visit, broker_id: int, missing: list[str]) -> list[GroupSeen]:
    """Return the groups that another broker coordinates and that are visible to the console's principal."""
    from kafka_compat.protocol.messages.offset_fetch import OffsetFetchRequestGroup

    try:
        async with asyncio.timeout(_PATIENCE_S):
            version = _LIST_VERSION_WITH_TYPES if may_have_consumer_groups(visit) else _LIST_VERSION
            answer = await visit.ask(ApiKey.LIST_GROUPS, version, broker_id)
            listed = {one.group_id: one for one in answer.groups if visit.rights.may_see_group(one.group_id)}
            if not listed:
                return []
            types = {name: one.group_type or CLASSIC for name, one in listed.items()}
            described = await describe_groups(visit, broker_id, types)
            asked = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in listed]
            fetched = await visit.ask(ApiKey.OFFSET_FETCH, _FETCH_VERSION, broker_id, groups=asked)
    except (BadCall, TimeoutError, MalformedRequest) as problem:
        log.info("Broker %d did not report its groups: %r", broker_id, problem)
        missing.append(f"broker {broker_id} did not report the groups that it coordinates")
        return []
    committed = {
        one.group_id: {
            place: each.committed_offset
            for place, each in each_partition(one.topics)
            if each.committed_offset >= 0 and not each.error_code
        }
        for one in fetched.groups
    }
    return [
        GroupSeen(
            name,
            types[name],
            one.group_state,
            one.protocol_type,
            broker_id,
            len(described[name].members),
            committed.get(name, {}),
        )
        for name, one in listed.items()
    ]


def group_rows(visit: Visit, remote: RemoteReport, groups: list[GroupSeen]) -> Steps[list[Row]]:
    """Return table rows without the lag in seconds (see `add_seconds`), which takes longer to compute. `lag`
    is in records. `beyond_end` lists partitions with a committed offset past the end.
    """
    found = []
    for group in groups:
        lags = {
            place: records_behind(committed, end_of(visit, remote, place))
            for place, committed in group.committed.items()
        }
        found.append(
            {
                "name": group.name,
                "type": group.type,
                "state": group.state,
                "protocol_type": group.protocol_type,
                "coordinator": group.coordinator,
                "members": group.members,
                "topics": len({topic for topic, _ in group.committed}),
                "lag": total_records(lags.values()),
                "beyond_end": [
                    f"{topic}-{number}" for (topic, number), lag in lags.items() if (lag or 0) < 0
                ],
            }
        )
        yield None
    return found


def end_of(visit: Visit, remote: RemoteReport, place: TopicPartition) -> int | None:
    """Return a partition's end offset for consumers, or None if unknown."""
    known = visit.cluster.metadata.partition(*place)
    return None if known is None else extent(visit.cluster, remote, place[0], known)[1]


class Ages:
    """The lag of groups in seconds, for one request."""

    def __init__(self, visit: Visit, lags: GroupLags) -> None:
        self._visit = visit
        self._lags = lags

    @staticmethod
    async def of(visit: Visit) -> "Ages":
        """Query the leaders in other processes, and return the current lag of groups."""
        cluster = visit.cluster
        return Ages(visit, GroupLags(cluster, visit.observed.times, await remote_lags(cluster)))

    def age_s(self, group: str, place: TopicPartition, committed: int) -> Steps[float | None]:
        """Return a group's lag in seconds for one partition, or None if unknown."""
        known = self._visit.cluster.metadata.partition(*place)
        if known is None:
            return None
        found = yield from self._lags.at(group, place[0], known, committed)
        return None if found.ms is None else found.ms / 1000

    def oldest_s(self, group: GroupSeen) -> Steps[float | None]:
        """Return a group's largest lag in seconds, or None if unknown."""
        found: list[float | None] = []
        for place, committed in group.committed.items():
            found.append((yield from self.age_s(group.name, place, committed)))
            yield None
        return longest(found)


def add_seconds(ages: Ages, rows: list[Row], groups: list[GroupSeen]) -> Steps[None]:
    """Add the lag in seconds to the rows that are displayed."""
    by_name = {group.name: group for group in groups}
    for row in rows:
        row["lag_seconds"] = yield from ages.oldest_s(by_name[row["name"]])


_COLUMNS: Final = {"name": "name", "state": "state", "members": "members", "lag": "lag"}
_AT_ONCE: Final = 50


async def see(visit: Visit) -> Data:
    """Return a page of the list of groups. With `topic`, list only groups with offsets for this topic."""
    remote, groups, ages = await asyncio.gather(
        visit.observed.remote.look(visit.cluster), all_groups(visit), Ages.of(visit)
    )
    topic = visit.query.get("topic", "")
    if topic:
        groups = groups._replace(found=await visit.finish(_readers(groups.found, topic)))
    rows = await visit.finish(group_rows(visit, remote, groups.found))
    found = listed(rows, visit.query, _COLUMNS, "name")
    await visit.finish(add_seconds(ages, found["rows"], groups.found))
    return {"topic": topic, "groups": found, "missing": sorted({*remote.missing, *groups.missing})}


def _readers(groups: list[GroupSeen], topic: str) -> Steps[list[GroupSeen]]:
    found = []
    for some in batched(groups, _AT_ONCE):
        found += [group for group in some if any(place[0] == topic for place in group.committed)]
        yield None
    return found


_PARTITION_COLUMNS: Final = {"partition": "name", "lag": "lag", "seconds": "lag_seconds"}

Owners = dict[tuple[str, int], str]
"""Maps each assigned partition to a member ID."""


async def known_group(visit: Visit) -> GroupSeen:
    """Return the group in the parameter `name`. Raises BadCall if it does not exist or is not visible."""
    name = visit.given("name")
    visit.rights.require(Operation.DESCRIBE, ResourceType.GROUP, name)
    groups = await all_groups(visit)
    found = next((group for group in groups.found if group.name == name), None)
    if found is None:
        raise BadCall(f"unknown group {name}{''.join(f'; {text}' for text in groups.missing)}", NOT_FOUND)
    return found


async def see_one(visit: Visit) -> Data:
    """Return one group, with data from its coordinator and from the leaders of its partitions."""
    group, remote, ages = await asyncio.gather(
        known_group(visit), visit.observed.remote.look(visit.cluster), Ages.of(visit)
    )
    types = {group.name: group.type}
    described = (await describe_groups(visit, group.coordinator, types))[group.name]
    owners = {place: member.member_id for member in described.members for place in member.partitions}
    rows = await visit.finish(_positions(visit, remote, group, owners, ages))
    committed = [row for row in rows if row["committed_offset"] is not None]
    return {
        "name": group.name,
        "type": group.type,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": described.assignor,
        "epoch": described.epoch,
        "target_epoch": described.target_epoch,
        "coordinator": group.coordinator,
        "members": [_member(visit, member) for member in described.members],
        "lag": total_records(row["lag"] for row in committed),
        "lag_seconds": longest(row["lag_seconds"] for row in committed),
        "topics": _by_topic(committed),
        "chart": group_chart(visit, group.name),
        "list": listed(rows, visit.query, _PARTITION_COLUMNS, "partition"),
        "missing": remote.missing,
    }


def _by_topic(committed: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the lag for each topic. Topics with the most lag come first, those with unknown lag last."""
    by_topic: dict[str, list[Row]] = {}
    for row in committed:
        by_topic.setdefault(row["topic"], []).append(row)
    found = [
        {
            "topic": topic,
            "partitions": len(rows),
            "lag": total_records(row["lag"] for row in rows),
            "lag_seconds": longest(row["lag_seconds"] for row in rows),
        }
        for topic, rows in by_topic.items()
    ]
    return sorted(found, key=lambda one: (one["lag"] is None, -(one["lag"] or 0), one["topic"]))


def _member(visit: Visit, member: MemberSeen) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "epoch": member.epoch,
        "partitions": _visible(visit, member.partitions),
        "target": _visible(visit, member.target),
    }


def _visible(visit: Visit, places: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    return [
        {"topic": topic, "partitions": numbers}
        for topic, numbers in by_topic(sorted(places)).items()
        if visit.rights.may_see_topic(topic)
    ]


def _positions(
    visit: Visit, remote: RemoteReport, group: GroupSeen, owners: Owners, ages: Ages
) -> Steps[list[Row]]:
    found = []
    for place in sorted({*group.committed, *owners}):
        if not visit.rights.may_see_topic(place[0]):
            continue
        committed, end = group.committed.get(place), end_of(visit, remote, place)
        seconds = None
        if committed is not None:
            seconds = yield from ages.age_s(group.name, place, committed)
        found.append(
            {
                "name": f"{place[0]}-{place[1]:06}",
                "topic": place[0],
                "partition": place[1],
                "committed_offset": committed,
                "end_offset": end,
                "lag": records_behind(committed, end),
                "lag_seconds": seconds,
                "member_id": owners.get(place),
            }
        )
        yield None
    return found
