"""kafka-consumer-groups --describe: where groups are in their topics, who is in them, how they are."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final, NamedTuple

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.groups import DEAD, EMPTY, Description, committed_offsets, describe_group
from kafka_compat.client.leaders import LATEST, leaders_of, list_offsets
from kafka_compat.client.partitions import TopicPartition
from kafka_compat.lag import records_behind
from kafka_compat.tools import show
from kafka_compat.tools.chosen_groups import groups_meant, wrapped
from kafka_compat.tools.options import Options

_MISSING: Final = "-"
_WIDTH_MIN: Final = 15
_COLUMNS: Final = {
    "GROUP": "group",
    "TOPIC": "topic",
    "PARTITION": "partition",
    "LEADER-EPOCH": "leader_epoch",
    "CURRENT-OFFSET": "current_offset",
    "LOG-END-OFFSET": "log_end_offset",
    "LAG": "lag",
    "CONSUMER-ID": "consumer_id",
    "HOST": "host",
    "CLIENT-ID": "client_id",
}
_NARROW: Final = {"PARTITION": 10}
_LAST: Final = "CLIENT-ID"
_REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class Row(NamedTuple):
    """One partition of a group, in the order of the columns; None where there is nothing to say."""

    group: str
    topic: str
    partition: int
    leader_epoch: int | None
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
    wanted = {*assigned, *committed}
    leaders = leaders_of(cluster, {topic for topic, _ in wanted})
    led = [place for place in wanted if leaders.get(place, -1) >= 0]
    ends = list_offsets(cluster, dict.fromkeys(led, LATEST))

    def row(place: TopicPartition, *owner: str) -> Row:
        found = committed.get(place)
        offset = None if found is None else found.offset
        epoch = None if found is None or found.leader_epoch < 0 else found.leader_epoch
        end = ends[place].offset if place in ends else None
        return Row(group.group_id, *place, epoch, offset, end, records_behind(offset, end), *owner)

    rows = [
        row(place, member.member_id, member.host, member.client_id)
        for member in sorted(group.members, key=lambda member: -len(member.partitions))
        for place in sorted(member.partitions)
    ]
    left = committed.keys() - set(assigned)
    return rows + [row(place, _MISSING, _MISSING, _MISSING) for place in sorted(left)]


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
        columns = []
        for title, name in _COLUMNS.items():
            if title != "LEADER-EPOCH" or options.has("verbose"):
                cells = [getattr(row, name) for row in found]
                columns.append([title, *(_MISSING if cell is None else str(cell) for cell in cells)])
        widths = [
            0 if cells[0] == _LAST else _NARROW.get(cells[0]) or max([_WIDTH_MIN, *map(len, cells[1:])])
            for cells in columns
        ]
        for line in zip(*columns, strict=True):
            print(
                "\n" + " ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)), end=""
            )
        print()


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
                        {"topic": topic, "partition": number} for topic, number in sorted(member.partitions)
                    ],
                    "epoch": member.epoch,
                    "target": [
                        {"topic": topic, "partition": number} for topic, number in sorted(member.target)
                    ],
                    "target_epoch": group.target_epoch,
                    "upgraded": member.is_upgraded,
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
        if options.has("verbose"):
            columns += _progress(group)
        widths = [max([least, *map(len, cells)]) for _, least, cells in columns]
        lines = [[title for title, _, _ in columns]]
        lines += [[cells[number] for _, _, cells in columns] for number in range(len(members))]
        end = "" if options.has("verbose") else " "
        print()
        for line in lines:
            print(" ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) + end)


def _progress(group: Description) -> list[tuple[str, int, list[str]]]:
    """What members have, and what they are to have."""
    members = group.members
    found = [
        ("CURRENT-EPOCH", _WIDTH_MIN, [_or_missing(member.epoch) for member in members]),
        ("CURRENT-ASSIGNMENT", 20, [_assignment(member.partitions) for member in members]),
        ("TARGET-EPOCH", _WIDTH_MIN, [_or_missing(group.target_epoch) for _ in members]),
        ("TARGET-ASSIGNMENT", 20, [_assignment(member.target) for member in members]),
    ]
    if {True, False} <= {member.is_upgraded for member in members}:
        upgraded = (member.is_upgraded for member in members)
        found.append(("UPGRADED", 0, [_MISSING if one is None else str(one).lower() for one in upgraded]))
    return found


def _or_missing(value: int | None) -> str:
    return _MISSING if value is None else str(value)


def _assignment(partitions: Iterable[TopicPartition]) -> str:
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    told = (f"{topic}:{show.joined(sorted(numbers))}" for topic, numbers in by_topic.items())
    return ";".join(sorted(told)) or _MISSING


def _states(groups: list[Description], options: Options) -> None:
    if options.as_json:
        show.as_json(
            [
                {
                    "group": group.group_id,
                    "coordinator": {"id": group.coordinator[0], "address": _address(group)},
                    "assignment_strategy": group.assignor,
                    "state": group.state,
                    "epoch": group.epoch,
                    "target_epoch": group.target_epoch,
                    "members": len(group.members),
                }
                for group in groups
            ]
        )
        return
    for group in groups:
        if _is_shown(group, 1):
            coordinator = f"{_address(group)}  ({group.coordinator[0]})"
            columns = [
                ("GROUP", max(_WIDTH_MIN, len(group.group_id)), group.group_id),
                ("COORDINATOR (ID)", max(25, len(coordinator)), coordinator),
                ("ASSIGNMENT-STRATEGY", 20, group.assignor or _MISSING),
                ("STATE", 20, group.state),
                ("GROUP-EPOCH", _WIDTH_MIN, _or_missing(group.epoch)),
                ("TARGET-ASSIGNMENT-EPOCH", 25, _or_missing(group.target_epoch)),
                ("#MEMBERS", 0, str(len(group.members))),
            ]
            if not options.has("verbose"):
                del columns[4:6]
            for cells in zip(*((title, cell) for title, _, cell in columns), strict=True):
                widths = (width for _, width, _ in columns)
                shown = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
                print("\n" + " ".join(shown), end="")
            print()


def _address(group: Description) -> str:
    return f"{group.coordinator[1]}:{group.coordinator[2]}"
