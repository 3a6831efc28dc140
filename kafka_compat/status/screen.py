"""Draw a snapshot on one screen: problems first, then the worst rows of each table."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from kafka_compat.status.observed_hour import WIDTH_MAX
from kafka_compat.status.observed_hour import rows as chart_rows
from kafka_compat.status.room import shares
from kafka_compat.status.rules import USABLE_MIN, Problem
from kafka_compat.status.snapshot import (
    Broker,
    LogDir,
    Migration,
    Quorum,
    QuorumReplica,
    Rates,
    Snapshot,
    Topic,
    total,
)
from kafka_compat.status.snapshot import Group as ConsumerGroup
from kafka_compat.status.units import counted, rate, size

ROWS: Final = 10
"""Number of rows of each table if the size of the terminal is unknown."""

_UNKNOWN: Final = "-"
_GAP: Final = 2
_FLEXIBLE_MIN: Final = 8
_LINES_OF_HEADINGS: Final = 2
"""Lines of a heading, including the empty line before it."""
_LINES_PER_PROBLEM: Final = 6
"""Number of terminal lines for which one problem may be shown. A problem may take two or three lines."""
_PROBLEMS_MIN: Final = 3

_GOOD, _BAD, _ODD, _FAINT, _TITLE = "green", "bold red", "yellow", "dim", "bold"
_CHART: Final = "cyan"
_BLOCKS_MIN: Final = 17
_BESIDES_BLOCKS: Final = 50
"""Number of characters for the other columns of the charts."""
_CALM: Final = ("Stable", "Empty")


class Column(NamedTuple):
    """A table column. With `is_flexible`, it shrinks if the row is wider than the screen."""

    title: str
    is_number: bool = False
    is_flexible: bool = False


class Section(NamedTuple):
    """A heading, and a table whose first rows are shown."""

    heading: Text
    columns: Sequence[Column]
    rows: Sequence[Sequence[Text]]
    left_out: Callable[[int], str]
    """Returns the line that replaces the hidden rows, given the number of rows shown."""


class View(NamedTuple):
    """A snapshot, and the data shown with it. `stale` is the reason why no newer snapshot exists."""

    snapshot: Snapshot | None
    problems: Sequence[Problem] = ()
    rates: Rates | None = None
    stale: str | None = None
    every_s: float | None = None
    hour: Sequence[Mapping[str, Any]] = ()
    """The charts of the last hour (see observed_hour)."""
    hour_unknown: str | None = None
    """The reason why the charts are unknown."""


def draw(view: View, console: Console, rows: int | None = None) -> RenderableType:
    """Draw the screen, with up to `rows` rows per table (None: as many as fit, or ROWS if not a terminal)."""
    parts: list[RenderableType] = [_top(view)]
    snapshot = view.snapshot
    if view.stale is not None:
        parts += [Text(), _mark("NO BROKER CAN BE REACHED", plain(view.stale), _BAD)]
    if snapshot is None:
        return Group(*parts)
    height = console.height if rows is None and console.is_terminal else None
    if view.stale is not None:
        parts += [Text(f"Last data, from {_time(snapshot.time_ms)}:", _ODD)]
    most = ROWS if rows is None else rows
    named = most if height is None else max(_PROBLEMS_MIN, height // _LINES_PER_PROBLEM)
    parts += [Text(), *_verdict(view.problems, named)]
    parts += [Text(f"unknown: {plain(each)}", _FAINT) for each in snapshot.missing]
    if view.hour_unknown is not None:
        parts.append(Text(f"unknown: {plain(view.hour_unknown)}", _FAINT))
    sections = [
        *([_hour(view.hour, console.width)] if view.hour else []),
        _brokers(snapshot),
        *([_quorum(snapshot.quorum, snapshot.migration)] if snapshot.quorum is not None else []),
        _topics(snapshot, view.rates),
        _groups(snapshot),
        *([_disks(snapshot)] if snapshot.log_dirs else []),
    ]
    needs = [len(section.rows) for section in sections]
    if height is None:
        shown = [min(need, most) for need in needs]
    else:
        taken = len(console.render_lines(Group(*parts))) + len(sections) * _LINES_OF_HEADINGS + 1
        shown = shares(needs, height - taken)
    for section, number in zip(sections, shown, strict=True):
        parts += [Text(), *_section(section, number, console.width)]
    return Group(*parts)


def plain(text: str) -> str:
    """Escape unprintable characters in names chosen by clients, because they could move the cursor."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


# --- header


def _top(view: View) -> Text:
    now = "" if view.snapshot is None or view.stale else f"  {_time(view.snapshot.time_ms)}"
    cluster = "" if view.snapshot is None else f"cluster {plain(view.snapshot.cluster_id or _UNKNOWN)}"
    every = "" if view.every_s is None else f"  every {view.every_s:g} s, Ctrl-C to quit"
    return Text.assemble((cluster, _TITLE), (now + every, _FAINT))


def _verdict(problems: Sequence[Problem], most: int) -> Iterable[Text]:
    if not problems:
        yield _mark("healthy", "", _GOOD)
        return
    yield Text(f"{counted(len(problems), 'problem')}:", _BAD)
    for problem in problems[:most]:
        yield _mark("-", plain(problem.text), _BAD)
    if len(problems) > most:
        yield Text(f"- and {len(problems) - most:,} more; --json lists all", _BAD)


def _mark(mark: str, text: str, style: str) -> Text:
    return Text.assemble((mark, style), (f" {text}" if text else ""))


def _time(time_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time_ms / 1000))


# --- tables


def _hour(charts: Sequence[Mapping[str, Any]], width: int) -> Section:
    lines = chart_rows(charts, max(_BLOCKS_MIN, min(WIDTH_MAX, width - _BESIDES_BLOCKS)))
    columns = (
        Column("", is_flexible=True),
        Column("an hour ago … now"),
        Column("now", is_number=True),
        Column("at most", is_number=True),
    )
    cells = [
        [Text(plain(each.title)), Text(each.blocks, _CHART), Text(each.now), Text(each.most)]
        for each in lines
    ]
    return Section(
        Text("LAST HOUR", _TITLE),
        columns,
        cells,
        lambda shown: f"and {counted(len(cells) - shown, 'line')} more",
    )


def _brokers(snapshot: Snapshot) -> Section:
    heading = _heading("BROKERS", f"{len(snapshot.brokers):,}")
    for state in ("down", "unreachable"):
        if away := sum(broker.state == state for broker in snapshot.brokers):
            heading.append(f", {away:,} {state}", _BAD)
    if snapshot.is_kraft:
        heading.append(", KRaft mode", _FAINT)
    leads: dict[int, int] = {}
    replicas: dict[int, int] = {}
    for topic in snapshot.topics:
        for each in topic.partitions:
            if each.leader is not None:
                leads[each.leader] = leads.get(each.leader, 0) + 1
            for broker_id in each.replicas:
                replicas[broker_id] = replicas.get(broker_id, 0) + 1

    def row(broker: Broker) -> list[Text]:
        is_controller = broker.broker_id == snapshot.controller_id
        state = Text(broker.state, _GOOD if broker.is_up else _BAD)
        if is_controller:
            state.append(", controller", "" if broker.is_up else _BAD)
        return [
            _number(broker.broker_id),
            Text(plain(broker.address or _UNKNOWN)),
            Text(plain(broker.rack or _UNKNOWN)),
            state,
            Text(broker.release or _UNKNOWN),
            _number(leads.get(broker.broker_id, 0)),
            _number(replicas.get(broker.broker_id, 0)),
        ]

    columns = (
        Column("id", is_number=True),
        Column("address", is_flexible=True),
        Column("rack"),
        Column("state"),
        Column("Kafka"),
        Column("leads", is_number=True),
        Column("replicas", is_number=True),
    )
    rows = [row(each) for each in sorted(snapshot.brokers, key=lambda each: (each.is_up, each.broker_id))]
    return Section(heading, columns, rows, lambda shown: f"and {counted(len(rows) - shown, 'broker')} more")


def _quorum(quorum: Quorum, migration: Migration | None) -> Section:
    heading = _heading("QUORUM", counted(len(quorum.voters), "voter"))
    if quorum.error is not None:
        heading.append(f", {quorum.error}", _BAD)
    else:
        heading.append(f", leader {quorum.leader_id}, epoch {quorum.epoch}")
    if migration is not None:
        target = "no target" if migration.target is None else f"to {migration.target}"
        heading.append(f", migration {target} ({counted(len(migration.brokers), 'broker')} prepared)", _ODD)

    def row(each: QuorumReplica) -> list[Text]:
        is_leader = each.node_id == quorum.leader_id
        role = "leader" if is_leader else "voter" if each.is_voter else "observer"
        age_ms = each.fetched_before_ms
        since = "" if is_leader else _UNKNOWN if age_ms is None else f"{age_ms / 1000:.1f} s"
        return [_number(each.node_id), Text(role), _number(each.lag), Text(since)]

    columns = (
        Column("node", is_number=True),
        Column("role"),
        Column("lag", is_number=True),
        Column("last fetch", is_number=True),
    )
    rows = [row(each) for each in quorum.replicas]
    return Section(heading, columns, rows, lambda shown: f"and {counted(len(rows) - shown, 'replica')} more")


def _topics(snapshot: Snapshot, rates: Rates | None) -> Section:
    topics = sorted(
        snapshot.topics, key=lambda each: (-(each.disk_bytes or 0), -(each.records or 0), each.name)
    )
    partitions = sum(len(each.partitions) for each in topics)
    heading = _heading("TOPICS", f"{len(topics):,} with {counted(partitions, 'partition')}")
    faults = (
        ("without leader", sum(len(each.offline) for each in topics), _BAD),
        ("under min ISR", sum(len(each.under_min_isr) for each in topics), _BAD),
        ("under-replicated", sum(len(each.under_replicated) for each in topics), _ODD),
    )
    for what, number, style in faults:
        if number:
            heading.append(f", {number:,} {what}", style)
    if rates is not None:
        heading.append(f", {rate(rates.total)} records/s written")

    def row(topic: Topic) -> list[Text]:
        style = _BAD if topic.offline or topic.under_min_isr else _ODD if topic.under_replicated else ""
        cells = [
            Text(plain(topic.name), style),
            _number(len(topic.partitions)),
            _number(topic.replication_factor),
            _number(topic.records),
            _bytes(topic.disk_bytes),
        ]
        if rates is not None:
            per_second = rates.by_topic.get(topic.name)
            cells.append(Text(_UNKNOWN if per_second is None else rate(per_second)))
        return cells

    def left_out(shown: int) -> str:
        rest = topics[shown:]
        records, on_disk = total(each.records for each in rest), total(each.disk_bytes for each in rest)
        parts = [] if records is None else [counted(records, "record")]
        parts += [] if on_disk is None else [f"{size(on_disk)} on disks"]
        return f"and {counted(len(rest), 'topic')} more{': ' if parts else ''}{', '.join(parts)}"

    columns = [
        Column("the largest", is_flexible=True),
        Column("partitions", is_number=True),
        Column("copies", is_number=True),
        Column("records", is_number=True),
        Column("on disks", is_number=True),
    ]
    if rates is not None:
        columns.append(Column("records/s", is_number=True))
    return Section(heading, columns, [row(each) for each in topics], left_out)


def _groups(snapshot: Snapshot) -> Section:
    groups = sorted(snapshot.groups, key=lambda each: (each.error is None, -(each.lag or 0), each.group_id))
    states: dict[str, int] = {}
    for group in groups:
        states[group.state or "Unknown"] = states.get(group.state or "Unknown", 0) + 1
    heading = _heading("GROUPS", f"{len(groups):,}")
    if groups:
        by_state = ", ".join(f"{number:,} {plain(state)}" for state, number in sorted(states.items()))
        heading.append(f": {by_state}; lag {counted(total(each.lag for each in groups) or 0, 'record')}")

    def row(group: ConsumerGroup) -> list[Text]:
        worst = group.worst
        state = plain(group.error or group.state or _UNKNOWN)
        style = (
            _BAD
            if group.error
            else _GOOD
            if group.state == "Stable"
            else ""
            if group.state in _CALM
            else _ODD
        )
        where = (
            _UNKNOWN if not worst or not worst.lag else f"{worst.lag:,} in {worst.topic}-{worst.partition}"
        )
        return [
            Text(plain(group.group_id)),
            Text(plain(group.type.lower() or _UNKNOWN)),
            Text(state, style),
            _number(group.members),
            _number(group.lag),
            Text(plain(where)),
        ]

    def left_out(shown: int) -> str:
        rest = groups[shown:]
        lag = total(each.lag for each in rest) or 0
        return f"and {counted(len(rest), 'group')} more: lag {counted(lag, 'record')}"

    columns = (
        Column("most lag", is_flexible=True),
        Column("type"),
        Column("state"),
        Column("members", is_number=True),
        Column("lag", is_number=True),
        Column("worst partition", is_flexible=True),
    )
    return Section(heading, columns, [row(each) for each in groups], left_out)


def _disks(snapshot: Snapshot) -> Section:
    dirs = sorted(
        snapshot.log_dirs, key=lambda each: (each.error is None, _share(each), each.broker_id, each.path)
    )
    failed = sum(each.error is not None for each in dirs)
    heading = _heading("DISKS", f"{counted(len(dirs), 'log directory').replace('directorys', 'directories')}")
    heading.append(f", {size(sum(each.replica_bytes for each in dirs))} of replicas")
    if failed:
        heading.append(f", {failed:,} failed", _BAD)

    def row(each: LogDir) -> list[Text]:
        volume = Text(_UNKNOWN)
        if each.error is not None:
            volume = Text(each.error, _BAD)
        elif each.total_bytes and each.usable_bytes is not None:
            style = _BAD if _share(each) < USABLE_MIN else ""
            left = f"{size(each.usable_bytes)} of {size(each.total_bytes)} ({_share(each):.0%})"
            volume = Text(left, style)
        return [
            _number(each.broker_id),
            Text(plain(each.path)),
            _number(each.replicas),
            _bytes(each.replica_bytes),
            volume,
        ]

    columns = (
        Column("broker", is_number=True),
        Column("directory", is_flexible=True),
        Column("replicas", is_number=True),
        Column("size", is_number=True),
        Column("usable", is_number=True),
    )
    rows = [row(each) for each in dirs]
    return Section(heading, columns, rows, lambda shown: f"and {len(rows) - shown:,} more")


def _share(log_dir: LogDir) -> float:
    return 1.0 if log_dir.usable_share is None else log_dir.usable_share


# --- layout of tables


def _heading(title: str, rest: str) -> Text:
    return Text.assemble((title, _TITLE), f" {rest}")


def _number(value: int | None) -> Text:
    return Text(_UNKNOWN if value is None else f"{value:,}")


def _bytes(value: int | None) -> Text:
    return Text(_UNKNOWN if value is None else size(value))


def _section(section: Section, shown: int, width: int) -> Iterable[RenderableType]:
    yield section.heading
    rows = section.rows[:shown]
    if not rows:
        return
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style=_FAINT)
    for column, cells in zip(section.columns, _widths(section.columns, rows, width), strict=True):
        table.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            width=cells,
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in rows:
        table.add_row(*row)
    yield table
    if len(rows) < len(section.rows):
        yield Text(section.left_out(len(rows)), _FAINT)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int) -> list[int]:
    """Return the width of each column. Flexible columns share the remaining space."""
    found = [
        max([cell_len(column.title), *(row[index].cell_len for row in rows)])
        for index, column in enumerate(columns)
    ]
    flexible = [index for index, column in enumerate(columns) if column.is_flexible]
    fixed = sum(need for index, need in enumerate(found) if index not in flexible)
    room = width - fixed - _GAP * (len(columns) - 1)
    for place, index in enumerate(sorted(flexible, key=lambda each: found[each])):
        fair = max(_FLEXIBLE_MIN, room // (len(flexible) - place))
        found[index] = min(found[index], fair)
        room -= found[index]
    return found
