"""Groups as lists show them: those that brokers of this process coordinate, and those of others."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.http.routes import BadCall
from kafka_compat.long_work import Steps
from kafka_compat.metrics.elsewhere import FarLag, GroupPartition, look_elsewhere
from kafka_compat.metrics.record_times import age_ms
from kafka_compat.page.topic_rows import extent
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_compat.page.far import Far
    from kafka_compat.page.listing import Row
    from kafka_compat.page.visit import Visit

log = logging.getLogger(__name__)

TopicPartition = tuple[str, int]

_LIST_VERSION: Final = 4
_DESCRIBE_VERSION: Final = 4
_FETCH_VERSION: Final = 8
_PATIENCE_S: Final = 3.0


class GroupSeen(NamedTuple):
    """A group at its coordinator. `committed` are offsets."""

    name: str
    state: str
    protocol_type: str
    coordinator: int
    members: int
    committed: Mapping[TopicPartition, int]


class Groups(NamedTuple):
    """All that may be seen. `untold` says who told nothing, and why."""

    found: list[GroupSeen]
    untold: list[str]


async def all_groups(visit: Visit) -> Groups:
    """Of all coordinators."""
    found = await visit.finish(_groups_here(visit))
    untold: list[str] = []
    others = [one for one in visit.sight.metadata.brokers if not visit.is_here(one)]
    for more in await asyncio.gather(*(_groups_there(visit, one, untold) for one in others)):
        found += more
    return Groups(found, untold)


def _groups_here(visit: Visit) -> Steps[list[GroupSeen]]:
    found = []
    for services in visit.sight.services:
        coordinator = services.coordinators.groups.made
        if coordinator is None:
            continue
        _, overviews = coordinator.list_groups(set(), set())
        yield None
        for group in overviews:
            progress = coordinator.progress(group.group_id)
            if progress is None or not visit.rights.may_see_group(group.group_id):
                continue
            committed = {place: position.value.offset for place, position in progress.committed.items()}
            found.append(
                GroupSeen(
                    group.group_id,
                    str(group.state),
                    group.protocol_type,
                    services.broker_id,
                    progress.members,
                    committed,
                )
            )
            yield None
    return found


async def _groups_there(visit: Visit, broker_id: int, untold: list[str]) -> list[GroupSeen]:
    """They are asked with this broker's rights: what the page may not see is left out here."""
    from kafka_compat.protocol.messages.describe_groups import DescribeGroupsRequest
    from kafka_compat.protocol.messages.list_groups import ListGroupsRequest
    from kafka_compat.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

    try:
        async with asyncio.timeout(_PATIENCE_S):
            answer = await visit.ask(
                ApiKey.LIST_GROUPS, ListGroupsRequest(), version=_LIST_VERSION, broker_id=broker_id
            )
            listed = {one.group_id: one for one in answer.groups if visit.rights.may_see_group(one.group_id)}
            if not listed:
                return []
            described = await visit.ask(
                ApiKey.DESCRIBE_GROUPS,
                DescribeGroupsRequest(groups=list(listed)),
                version=_DESCRIBE_VERSION,
                broker_id=broker_id,
            )
            asked = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in listed]
            fetched = await visit.ask(
                ApiKey.OFFSET_FETCH,
                OffsetFetchRequest(groups=asked),
                version=_FETCH_VERSION,
                broker_id=broker_id,
            )
    except (BadCall, TimeoutError, MalformedRequest) as problem:
        log.info("broker %d does not tell of its groups: %r", broker_id, problem)
        untold.append(f"broker {broker_id} does not tell of the groups that it coordinates")
        return []
    members = {one.group_id: len(one.members) for one in described.groups}
    committed = {
        one.group_id: {
            (topic.name, each.partition_index): each.committed_offset
            for topic in one.topics
            for each in topic.partitions
            if each.committed_offset >= 0 and not each.error_code
        }
        for one in fetched.groups
    }
    return [
        GroupSeen(
            name,
            one.group_state,
            one.protocol_type,
            broker_id,
            members.get(name, 0),
            committed.get(name, {}),
        )
        for name, one in listed.items()
    ]


def group_rows(visit: Visit, far: Far, groups: list[GroupSeen]) -> Steps[list[Row]]:
    """Without the lag in seconds, which costs more: see `add_seconds`. `lag` is in records, as
    kafka-consumer-groups counts; `beyond_end` are partitions whose committed offset lies behind their end.
    """
    found = []
    for group in groups:
        lag: int | None = 0 if group.committed else None
        beyond_end = []
        for place, committed in group.committed.items():
            end = end_of(visit, far, place)
            lag = None if lag is None or end is None else lag + end - committed
            if end is not None and committed > end:
                beyond_end.append(f"{place[0]}-{place[1]}")
        found.append(
            {
                "name": group.name,
                "state": group.state,
                "protocol_type": group.protocol_type,
                "coordinator": group.coordinator,
                "members": group.members,
                "topics": len({topic for topic, _ in group.committed}),
                "lag": lag,
                "beyond_end": beyond_end,
            }
        )
        yield None
    return found


def end_of(visit: Visit, far: Far, place: TopicPartition) -> int | None:
    """Up to where consumers may read a partition; None where nobody knows."""
    known = visit.sight.metadata.partition(*place)
    return None if known is None else extent(visit.sight, far, place[0], known)[1]


class Ages:
    """How long the first record waits that a group has not committed."""

    def __init__(self, visit: Visit, elsewhere: Mapping[GroupPartition, FarLag]) -> None:
        """`elsewhere` is what leaders in other processes were asked."""
        self._visit = visit
        self._elsewhere = elsewhere

    @staticmethod
    async def of(visit: Visit) -> Ages:
        """As it is now."""
        return Ages(visit, await look_elsewhere(visit.sight))

    def age_s(self, group: str, place: TopicPartition, committed: int) -> Steps[float | None]:
        """In seconds; None where it is not known."""
        sight = self._visit.sight
        known = sight.metadata.partition(*place)
        led = None if known is None else sight.led(place[0], known)
        if led is not None:
            try:
                found_ms = yield from self._visit.observed.times.lag_ms(led, committed, sight.now_ms())
            except StorageError:
                return None
        else:
            told = self._elsewhere.get((group, *place))
            if told is None:
                return None
            found_ms = age_ms(told.since_ms, sight.now_ms())
        return None if found_ms is None else found_ms / 1000

    def oldest_s(self, group: GroupSeen) -> Steps[float | None]:
        """The greatest of all partitions of a group; None where one is not known."""
        oldest: float | None = 0.0 if group.committed else None
        for place, committed in group.committed.items():
            found = yield from self.age_s(group.name, place, committed)
            oldest = None if oldest is None or found is None else max(oldest, found)
            yield None
        return oldest


def add_seconds(ages: Ages, rows: list[Row], groups: list[GroupSeen]) -> Steps[None]:
    """Put the lag in seconds into the rows that are shown."""
    by_name = {group.name: group for group in groups}
    for row in rows:
        row["lag_seconds"] = yield from ages.oldest_s(by_name[row["name"]])
