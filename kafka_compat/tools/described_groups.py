"""kafka-consumer-groups --describe: where groups are in their topics, who is in them, how they are."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final, NamedTuple

from kafka_compat.client.groups import DEAD, EMPTY, Description, Member, committed_offsets, describe_group
from kafka_compat.client.partition_offsets import LATEST, list_offsets
from kafka_compat.client.partitions import TopicPartition
from kafka_compat.tools import show
from kafka_compat.tools.chosen_groups import groups_meant, wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster
    from kafka_compat.tools.options import Options

_MISSING: Final = "-"
_WIDTH_MIN: Final = 15
_REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class Row(NamedTuple):
    """One partition of a group, in the order of the columns; None where there is nothing to say."""

    group: str
    topic: str
    partition: int
    current_offset: int | None
    log_end_offset: int | None
    lag: int | None
    consumer_id: str
    host: str
    client_id: str


def describe(cluster: Cluster, options: Options) -> None:
    """Raises Failure."""
    group_ids = groups_meant(cluster, options)
    try:
        groups = sorted(describe_group(cluster, group_id) for group_id in group_ids)
    except Exception as error:
        raise wrapped(error, runtime=False) from error
    if options.has("members"):
        _members(groups, options)
    elif options.has("state"):
        _states(groups, options)
    else:
        try:
            rows = {group.group_id: rows_of(cluster, group) for group in groups}
        except Exception as error:
            raise wrapped(error) from error
        _offsets(groups, rows, options)


def rows_of(cluster: Cluster, group: Description) -> list[Row]:
    """What members consume, those with most partitions first; then what else was committed. Raises as
    `Cluster.ask`.
    """
    committed = committed_offsets(cluster, group.group_id)
    assigned = [place for member in group.members for place in member.partitions]
    ends = list_offsets(cluster, dict.fromkeys({*assigned, *committed}, LATEST))

    def row(place: TopicPartition, *owner: str) -> Row:
        offset = committed[place].offset if place in committed else None
        end = ends[place].offset
        lag = None if offset is None else end - offset
        return Row(group.group_id, *place, offset, end, lag, *owner)

    rows = [
        row(place, member.member_id, member.host, member.client_id)
        for member in sorted(group.members, key=lambda member: -len(member.partitions))
        for place in _in_order(member.partitions)
    ]
    left = committed.keys() - set(assigned)
    return rows + [row(place, _MISSING, _MISSING, _MISSING) for place in _in_order(left)]


def _in_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    return sorted(partitions)


def _is_shown(group: Description, rows: int) -> bool:
    """Whether there is something to show; says what is odd about the group."""
    if group.state == DEAD:
        print(f"\nError: Consumer group '{group.group_id}' does not exist.")
    elif group.state == EMPTY:
        _say(f"\nConsumer group '{group.group_id}' has no active members.")
    elif group.state in _REBALANCING:
        _say(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.")
    return group.state != DEAD and rows > 0


def _say(text: str) -> None:
    sys.stdout.flush()
    print(text, file=sys.stderr)


def _offsets(groups: list[Description], rows: dict[str, list[Row]], options: Options) -> None:
    if options.as_json:
        show.as_json([row._asdict() for group in groups for row in rows[group.group_id]])
        return
    for group in groups:
        found = rows[group.group_id]
        if not _is_shown(group, len(found)):
            continue
        group_id, topic, consumer_id, host = (_width(row[column] for row in found) for column in (0, 1, 6, 7))
        first = f"\n{{:<{group_id}}} {{:<{topic}}} {{:<10}} {{:<15}} {{:<15}} {{:<15}} "
        line = f"{first}{{:<{consumer_id}}} {{:<{host}}} {{}}"
        text = line.format(
            "GROUP",
            "TOPIC",
            "PARTITION",
            "CURRENT-OFFSET",
            "LOG-END-OFFSET",
            "LAG",
            "CONSUMER-ID",
            "HOST",
            "CLIENT-ID",
        )
        for row in found:
            text += line.format(*(_MISSING if item is None else item for item in row))
        print(text)


def _members(groups: list[Description], options: Options) -> None:
    if options.as_json:
        show.as_json(
            [
                {
                    "group": group.group_id,
                    "consumer_id": member.member_id,
                    "group_instance_id": member.instance_id or None,
                    "host": member.host,
                    "client_id": member.client_id,
                    "partitions": [
                        {"topic": topic, "partition": number}
                        for topic, number in _in_order(member.partitions)
                    ],
                }
                for group in groups
                for member in group.members
            ]
        )
        return
    for group in groups:
        members = group.members
        is_shown = _is_shown(group, len(members))
        with_instance = is_shown and any(member.instance_id for member in members)
        columns = [
            ("GROUP", _WIDTH_MIN, [group.group_id for _ in members]),
            ("CONSUMER-ID", _WIDTH_MIN, [member.member_id for member in members]),
            ("GROUP-INSTANCE-ID", 17, [member.instance_id for member in members]),
            ("HOST", _WIDTH_MIN, [member.host for member in members]),
            ("CLIENT-ID", _WIDTH_MIN, [member.client_id for member in members]),
            ("#PARTITIONS", _WIDTH_MIN, [str(len(member.partitions)) for member in members]),
        ]
        if not with_instance:
            del columns[2]
        widths = [max([least, *map(len, cells)]) for _, least, cells in columns]
        lines = [[title for title, _, _ in columns]]
        lines += [[cells[number] for _, _, cells in columns] for number in range(len(members))]
        last = ["ASSIGNMENT", *map(_assignment, members)] if options.has("verbose") else [""] * len(lines)
        print()
        for cells, end in zip(lines, last, strict=True):
            shown = (f"{cell:<{width}} " for cell, width in zip(cells, widths, strict=True))
            print("".join(shown) + end)


def _assignment(member: Member) -> str:
    by_topic: dict[str, list[str]] = {}
    for topic, number in member.partitions:
        by_topic.setdefault(topic, []).append(str(number))
    return ", ".join(sorted(f"({','.join(sorted(numbers))})" for numbers in by_topic.values())) or _MISSING


def _states(groups: list[Description], options: Options) -> None:
    if options.as_json:
        show.as_json(
            [
                {
                    "group": group.group_id,
                    "coordinator": {"id": group.coordinator[0], "address": _address(group)},
                    "assignment_strategy": group.assignor,
                    "state": group.state,
                    "members": len(group.members),
                }
                for group in groups
            ]
        )
        return
    for group in groups:
        if _is_shown(group, 1):
            coordinator = f"{_address(group)}  ({group.coordinator[0]})"
            line = f"\n{{:<{max(25, len(coordinator))}}} {{:<25}} {{:<20}} {{:<15}} {{}}"
            text = line.format("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
            print(
                text
                + line.format(group.group_id, coordinator, group.assignor, group.state, len(group.members))
            )


def _address(group: Description) -> str:
    return f"{group.coordinator[1]}:{group.coordinator[2]}"


def _width(cells: Iterable[object]) -> int:
    return max([_WIDTH_MIN, *(len(str(cell)) for cell in cells)])
