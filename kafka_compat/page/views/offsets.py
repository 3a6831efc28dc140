"""Change the offsets of a group: first show a plan, then commit it."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kafka_compat.client.groups import DEAD, EMPTY, Committed, commit_topics
from kafka_compat.client.partitions import TopicPartition, by_topic, each_partition
from kafka_compat.errors import STANDARD_MESSAGES, ErrorCode, known_code
from kafka_compat.http.routes import CONFLICT, NOT_FOUND, UNAVAILABLE, BadCall
from kafka_compat.long_work import batched, gathered
from kafka_compat.page import fields
from kafka_compat.page.described_groups import describe_group
from kafka_compat.page.offset_plan import EARLIEST, OFFSET, SCENARIOS, SHIFT, TIME, Extent, Step, plan
from kafka_compat.page.records import source_of
from kafka_compat.page.views.topics import named_topic
from kafka_compat.page.visit import Data, Done, Shown, Visit, path_of
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.search.query import BadQuery, partitions_in, time_ms_of
from kafka_compat.search.source import Unreadable
from kafka_compat.security.authorizer import Operation, ResourceType

_AT_ONCE: Final = 100
"""Number of partitions for which a time is looked up concurrently."""

PLAN_BODY: Final = {
    "name": "string: group",
    "topic": "string: topic; empty: all topics with committed offsets",
    "partitions": "string: partitions of the topic, such as 0,3-5; empty: all",
    "to": f"string: target: {', '.join(SCENARIOS)}",
    "value": "string: offset; time, as 2026-01-31T12:00:00Z or in milliseconds; or difference",
}
COMMIT_BODY: Final = {
    "name": "string: group",
    "offsets": "an array of objects, each with topic, partition and offset",
}


async def see(visit: Visit) -> Data:
    """Return the group's current offsets."""
    group_id = visit.given("name")
    positions = await positions_of(visit, group_id)
    extents = await _extents(visit, positions.committed)
    steps = (
        Step(topic, partition, old, None, *_ends(extents[topic, partition]))
        for (topic, partition), old in sorted(positions.committed.items())
    )
    data = await _data(visit, group_id, positions, steps)
    return {**data, "moved": visit.query.get("moved")}


async def propose(visit: Visit) -> Shown:
    """Return a plan for changing a group's offsets, without committing it."""
    group_id = fields.needed(visit.body, "name")
    positions = await positions_of(visit, group_id)
    scenario = fields.text(visit.body, "to") or EARLIEST
    if scenario not in SCENARIOS:
        raise BadCall(f"to={scenario[:40]}: expected one of {', '.join(SCENARIOS)}")
    number, time_ms = 0, 0
    if scenario in (OFFSET, SHIFT):
        given = fields.whole_number(visit.body, "value", least=0 if scenario == OFFSET else -(10**18))
        if given is None:
            raise BadCall(
                "value is missing: the offset, or the number of offsets to move by (-10: back by ten)"
            )
        number = given
    partitions = _meant(visit, positions)
    if scenario == TIME:
        try:
            time_ms = time_ms_of(fields.needed(visit.body, "value"), "value")
        except BadQuery as error:
            raise BadCall(str(error)) from None
    extents = await _extents(visit, partitions)
    at_time = await _at_time(visit, partitions, time_ms) if scenario == TIME else {}
    extents.update({place: found for place, found in at_time.items() if isinstance(found, str)})
    offsets = {place: found for place, found in at_time.items() if not isinstance(found, str)}
    steps = plan(partitions, scenario, number, positions.committed, extents, offsets)
    data = await _data(visit, group_id, positions, steps)
    data["offsets"] = [
        {"topic": each["topic"], "partition": each["partition"], "offset": each["new_offset"]}
        for each in data["partitions"]
        if each["new_offset"] is not None
    ]
    return Shown(data, "offsets_plan.html", "Change offsets", "/groups")


async def act(visit: Visit) -> Done:
    """Commit the offsets of a displayed plan."""
    group_id = fields.needed(visit.body, "name")
    offsets: dict[TopicPartition, int] = {}
    for each in fields.array(visit.body, "offsets"):
        if not isinstance(each, dict):
            raise BadCall(f"offsets: {str(each)[:60]} is not an object with topic, partition and offset")
        topic = named_topic(visit, fields.needed(each, "topic"))
        partition, offset = fields.whole_number(each, "partition"), fields.whole_number(each, "offset")
        if partition is None or offset is None:
            raise BadCall(f"offsets: {str(each)[:60]} has no partition, or no offset")
        offsets[topic.name, partition] = offset
    if not offsets:
        raise BadCall("offsets: the list is empty")
    await commit(visit, group_id, offsets)
    return Done(
        {"name": group_id, "changed": len(offsets)}, path_of("/offsets", name=group_id, moved=len(offsets))
    )


def _meant(visit: Visit, positions: "Positions") -> list[TopicPartition]:
    name, given = fields.text(visit.body, "topic"), fields.text(visit.body, "partitions")
    if not name:
        if given:
            raise BadCall("partitions are given without a topic")
        if not positions.committed:
            raise BadCall("the group has no committed offsets yet: give a topic")
        return sorted(positions.committed)
    topic = named_topic(visit, name)
    there = {each.partition for each in topic.partitions}
    if not given:
        return [(name, partition) for partition in sorted(there)]
    try:
        numbers = partitions_in(given)
    except BadQuery as error:
        raise BadCall(str(error)) from None
    missing = sorted(set(numbers) - there)
    if missing:
        raise BadCall(f"partitions: {name} has no partition {missing[0]}")
    return [(name, partition) for partition in numbers]


async def _extents(visit: Visit, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Extent | str]:
    found: dict[TopicPartition, Extent | str] = {}
    for name, numbers in by_topic(partitions).items():
        topic = visit.cluster.metadata.topics.get(name)
        there = set() if topic is None else {each.partition for each in topic.partitions}
        found.update(((name, number), "it no longer exists") for number in numbers if number not in there)
        if topic is not None:
            source = source_of(visit, topic, committed=False)
            bounds = await source.bounds([number for number in numbers if number in there])
            for number, each in bounds.items():
                found[name, number] = str(each) if isinstance(each, Unreadable) else Extent(*each)
    return found


async def _at_time(
    visit: Visit, partitions: Iterable[TopicPartition], time_ms: int
) -> dict[TopicPartition, int | str | None]:
    """Return each partition's first offset at or after `time_ms`, or the reason why it is unknown."""
    found: dict[TopicPartition, int | str | None] = {}

    async def look(source: Any, name: str, number: int) -> None:
        try:
            found[name, number] = await source.offset_at(number, time_ms)
        except Unreadable as error:
            found[name, number] = str(error)

    for name, numbers in by_topic(partitions).items():
        topic = visit.cluster.metadata.topics.get(name)
        if topic is not None:
            source = source_of(visit, topic, committed=False)
            for some in batched(numbers, _AT_ONCE):
                await asyncio.gather(*(look(source, name, number) for number in some))
    return found


def _ends(extent: Extent | str) -> tuple[int | None, int | None, str]:
    return (None, None, extent) if isinstance(extent, str) else (*extent, "")


async def _data(visit: Visit, group_id: str, positions: "Positions", steps: Iterable[Step]) -> dict[str, Any]:
    partitions = (
        {
            "topic": each.topic,
            "partition": each.partition,
            "old_offset": each.old,
            "new_offset": each.new,
            "start_offset": each.start,
            "end_offset": each.end,
            "old_lag": each.old_lag,
            "new_lag": each.new_lag,
            "note": each.note,
        }
        for each in steps
    )
    return {
        "name": group_id,
        "state": positions.state,
        "members": positions.members,
        "problem": _active(group_id, positions.state),
        "partitions": await visit.finish(gathered(partitions)),
    }


# --- offsets at the group's coordinator


_FIND_VERSION: Final = 3
_FETCH_VERSION: Final = 7
_COMMIT_VERSION: Final = 8


class Positions(NamedTuple):
    """The committed offsets of one group."""

    state: str
    members: int
    committed: dict[TopicPartition, int]
    """Committed offsets for visible topics."""


async def positions_of(visit: Visit, group_id: str) -> Positions:
    """Return the group's offsets. Raises BadCall if the group does not exist or is not visible."""
    visit.rights.require(Operation.DESCRIBE, ResourceType.GROUP, group_id)
    coordinator = await coordinator_of(visit, group_id)
    group = await describe_group(visit, coordinator, group_id)
    _check(group.error_code, f"group {group_id}")
    fetched = await visit.ask(
        ApiKey.OFFSET_FETCH, _FETCH_VERSION, coordinator, group_id=group_id, topics=None
    )
    _check(fetched.error_code, f"the offsets of group {group_id}")
    found = (
        ((topic.name, each.partition_index), each.committed_offset)
        for topic in fetched.topics
        if visit.rights.may_see_topic(topic.name)
        for each in topic.partitions
        if each.committed_offset >= 0
    )
    committed = dict(await visit.finish(gathered(found)))
    if group.state == DEAD and not committed:
        raise BadCall(f"unknown group {group_id}", NOT_FOUND)
    return Positions(group.state, len(group.members), committed)


async def commit(visit: Visit, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets for a group without members. Raises BadCall for the first rejected offset."""
    visit.rights.require(Operation.READ, ResourceType.GROUP, group_id)
    for topic in {topic for topic, _ in offsets}:
        visit.rights.require(Operation.READ, ResourceType.TOPIC, topic)
    topics = commit_topics({place: Committed(offset) for place, offset in offsets.items()})
    coordinator = await coordinator_of(visit, group_id)
    group = await describe_group(visit, coordinator, group_id)
    _check(group.error_code, f"group {group_id}")
    problem = _active(group_id, group.state)
    if problem is not None:
        raise BadCall(problem, CONFLICT)
    answer = await visit.ask(
        ApiKey.OFFSET_COMMIT, _COMMIT_VERSION, coordinator, group_id=group_id, topics=topics
    )
    for (topic, partition), each in each_partition(answer.topics):
        _check(each.error_code, f"the offset of {topic}-{partition}")


def _active(group_id: str, state: str) -> str | None:
    """Return why offsets cannot be changed, as kafka-consumer-groups reports it, or None if they can be."""
    if state in (EMPTY, DEAD):
        return None
    return f"Offsets can only be reset while the group '{group_id}' is inactive; its state is {state}."


async def coordinator_of(visit: Visit, group_id: str) -> int:
    """Return the group's coordinator. Raises BadCall if no coordinator is available."""
    found = await visit.ask(ApiKey.FIND_COORDINATOR, _FIND_VERSION, key=group_id)
    _check(found.error_code, f"the coordinator of group {group_id}")
    return int(found.node_id)


def _check(number: int, what: str) -> None:
    code = known_code(number)
    if code == ErrorCode.NONE:
        return
    if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
        raise BadCall(
            "Offsets can only be reset while the group is inactive, and members have just joined it.",
            CONFLICT,
        )
    if code == ErrorCode.GROUP_ID_NOT_FOUND:
        raise BadCall(f"{what}: not found", NOT_FOUND)
    status = UNAVAILABLE if code.name.startswith("COORDINATOR") else CONFLICT
    raise BadCall(f"{what}: {code.name} {STANDARD_MESSAGES.get(code, '')}".strip(), status)
