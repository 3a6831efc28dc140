"""kafka-consumer-groups --describe: offsets, members and state of groups."""

import sys
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.groups import DEAD, EMPTY, Description, committed_offsets, describe_group
from kafka_compat.client.leaders import LATEST, leaders_of, list_offsets
from kafka_compat.client.partitions import TopicPartition, by_topic
from kafka_compat.lag import records_behind
from kafka_compat.tools import show
from kafka_compat.tools.chosen_groups import awaited, groups_meant
from kafka_compat.tools.options import Options

_MISSING: Final = "-"
_REBALANCING: Final = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class Row(NamedTuple):
    """One partition of a group, with its fields in the order of the columns. Missing numbers are None."""

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
    """Run --describe. Raises Failure if a request fails."""
    group_ids = groups_meant(cluster, options)
    with awaited(runtime=False):
        groups = sorted(describe_group(cluster, group_id) for group_id in group_ids)
    if options.has("members"):
        _members(groups, options)
    elif options.has("state"):
        _states(groups, options)
    else:
        with awaited():
            rows = {group.group_id: rows_of(cluster, group) for group in groups}
        _offsets(groups, rows, options)


def rows_of(cluster: Cluster, group: Description) -> list[Row]:
    """Return the rows of assigned partitions, starting with the member that has the most partitions, and then
    the rows of other partitions with committed offsets. Raises the same errors as `Cluster.ask`.
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
    """Print notes about the group's state, and return whether there are rows to show."""
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
        for number, name in enumerate(Row._fields):
            if name != "leader_epoch" or options.has("verbose"):
                cells = [_or_missing(row[number]) for row in found]
                title = name.upper().replace("_", "-")
                width = {"partition": 10, "client_id": 0}.get(name)
                columns.append(show.column(title, cells) if width is None else (title, width, cells))
        print("".join(f"\n{line}" for line in show.table(*columns)))


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
            show.column("GROUP", [group.group_id for _ in members]),
            show.column("CONSUMER-ID", [member.member_id for member in members]),
            show.column("GROUP-INSTANCE-ID", [member.instance_id for member in members], 17),
            show.column("HOST", [member.host for member in members]),
            show.column("CLIENT-ID", [member.client_id for member in members]),
            show.column("#PARTITIONS", [str(len(member.partitions)) for member in members]),
        ]
        if not with_instance:
            del columns[2]
        if options.has("verbose"):
            columns += _progress(group)
        end = "" if options.has("verbose") else " "
        print("".join(f"\n{line}{end}" for line in show.table(*columns)))


def _progress(group: Description) -> list[tuple[str, int, Sequence[str]]]:
    members = group.members
    found = [
        show.column("CURRENT-EPOCH", [_or_missing(member.epoch) for member in members]),
        show.column("CURRENT-ASSIGNMENT", [_assignment(member.partitions) for member in members], 20),
        show.column("TARGET-EPOCH", [_or_missing(group.target_epoch) for _ in members]),
        show.column("TARGET-ASSIGNMENT", [_assignment(member.target) for member in members], 20),
    ]
    if {True, False} <= {member.is_upgraded for member in members}:
        upgraded = [member.is_upgraded for member in members]
        cells = [_MISSING if one is None else str(one).lower() for one in upgraded]
        found.append(show.column("UPGRADED", cells, 0))
    return found


def _or_missing(value: object) -> str:
    return _MISSING if value is None else str(value)


def _assignment(partitions: Iterable[TopicPartition]) -> str:
    listed = (f"{topic}:{show.joined(sorted(numbers))}" for topic, numbers in by_topic(partitions).items())
    return ";".join(sorted(listed)) or _MISSING


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
            columns = [
                show.column("GROUP", [group.group_id]),
                show.column("COORDINATOR (ID)", [f"{_address(group)}  ({group.coordinator[0]})"], 25),
                ("ASSIGNMENT-STRATEGY", 20, [group.assignor or _MISSING]),
                ("STATE", 20, [group.state]),
                ("GROUP-EPOCH", 15, [_or_missing(group.epoch)]),
                ("TARGET-ASSIGNMENT-EPOCH", 25, [_or_missing(group.target_epoch)]),
                ("#MEMBERS", 0, [str(len(group.members))]),
            ]
            if not options.has("verbose"):
                del columns[4:6]
            print("".join(f"\n{line}" for line in show.table(*columns)))


def _address(group: Description) -> str:
    return f"{group.coordinator[1]}:{group.coordinator[2]}"
