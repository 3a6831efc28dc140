"""Groups: all of them, and one with its members, their partitions and its lag."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.client.groups import assigned
from kafka_compat.http.routes import NOT_FOUND, BadCall
from kafka_compat.lag import longest, records_behind, total_records
from kafka_compat.long_work import Steps, batched
from kafka_compat.page.group_rows import Ages, GroupSeen, add_seconds, all_groups, end_of, group_rows
from kafka_compat.page.listing import Row, listed
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.security.authorizer import Operation, ResourceType

if TYPE_CHECKING:
    from kafka_compat.page.remote_leaders import RemoteReport
    from kafka_compat.page.view import Data
    from kafka_compat.page.visit import Visit

_COLUMNS: Final = {"name": "name", "state": "state", "members": "members", "lag": "lag"}
_AT_ONCE: Final = 50


async def see(visit: Visit) -> Data:
    """The groups that may be seen, a part at a time; with `topic` those that have committed in it."""
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


_DESCRIBE_VERSION: Final = 5
_CONSUMER: Final = "consumer"
_PARTITION_COLUMNS: Final = {"partition": "name", "lag": "lag", "seconds": "lag_seconds"}

Owners = dict[tuple[str, int], str]
"""Partition -> member id."""


async def known_group(visit: Visit) -> GroupSeen:
    """The group of the parameter `name`. BadCall where there is none, or it may not be seen."""
    name = visit.given("name")
    visit.rights.require(Operation.DESCRIBE, ResourceType.GROUP, name)
    groups = await all_groups(visit)
    found = next((group for group in groups.found if group.name == name), None)
    if found is None:
        raise BadCall(f"there is no group {name}{''.join(f'; {text}' for text in groups.missing)}", NOT_FOUND)
    return found


async def see_one(visit: Visit) -> Data:
    """As its coordinator and the leaders of its partitions know it."""
    group, remote, ages = await asyncio.gather(
        known_group(visit), visit.observed.remote.look(visit.cluster), Ages.of(visit)
    )
    members, owners = await _members(visit, group)
    rows = await visit.finish(_positions(visit, remote, group, owners, ages))
    committed = [row for row in rows if row["committed_offset"] is not None]
    return {
        "name": group.name,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "coordinator": group.coordinator,
        "members": members,
        "lag": total_records(row["lag"] for row in committed),
        "lag_seconds": longest(row["lag_seconds"] for row in committed),
        "list": listed(rows, visit.query, _PARTITION_COLUMNS, "partition"),
        "missing": remote.missing,
    }


async def _members(visit: Visit, group: GroupSeen) -> tuple[list[dict[str, Any]], Owners]:
    from kafka_compat.protocol.messages.describe_groups import DescribeGroupsRequest

    answer = await visit.ask(
        ApiKey.DESCRIBE_GROUPS,
        DescribeGroupsRequest(groups=[group.name]),
        version=_DESCRIBE_VERSION,
        broker_id=group.coordinator,
    )
    (described,) = answer.groups
    members, owners = [], {}
    for member in described.members:
        places: tuple[tuple[str, int], ...] = ()
        if group.protocol_type == _CONSUMER:
            try:
                places = assigned(bytes(member.member_assignment))
            except MalformedRequest:
                # Members may put there what they like.
                places = ()
        owners.update(dict.fromkeys(places, member.member_id))
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(places):
            by_topic.setdefault(topic, []).append(partition)
        members.append(
            {
                "member_id": member.member_id,
                "instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.client_host,
                "partitions": [
                    {"topic": topic, "partitions": numbers}
                    for topic, numbers in by_topic.items()
                    if visit.rights.may_see_topic(topic)
                ],
            }
        )
    return members, owners


def _positions(
    visit: Visit, remote: RemoteReport, group: GroupSeen, owners: Owners, ages: Ages
) -> Steps[list[Row]]:
    """Of each partition that it has committed, or reads."""
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
