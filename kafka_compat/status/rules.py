"""Find and describe the problems in a snapshot of a cluster, the worst first. No I/O.

A problem is a state that requires an operator's action: a broker that is down, a partition that rejects
writes or lacks replicas, a disk that failed or is nearly full, a group that cannot be served. Lag alone is
not a problem: only the owner of the group knows whether the lag is expected.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kafka_compat.status.snapshot import Group, LogDir, Partition, Quorum, Snapshot, Topic
from kafka_compat.status.units import counted, size

USABLE_MIN: Final = 0.05
"""Minimum usable share of a volume. Below this share, the volume counts as nearly full."""

VOTER_SILENT_MS: Final = 10_000
"""Time without a fetch, in milliseconds, after which a voter of the quorum counts as failed."""

_STATES: Final = {"down": "is down", "unreachable": "cannot be reached from here"}
_NAMED_MAX: Final = 5
_NUMBERS_MAX: Final = 8
_NAME_MAX: Final = 40


class Problem(NamedTuple):
    """A problem of the cluster. `kind` is a name for programs: "broker-not-up", "no-controller",
    "no-quorum-leader", "quorum-voter-silent", "no-leader", "under-min-isr", "under-replicated",
    "log-dir-failed", "disk-nearly-full", "groups-not-served", "group-error", or "committed-beyond-end".
    `subjects` are the affected brokers, voters, topic-partitions, groups or paths.
    """

    kind: str
    text: str
    subjects: tuple[str, ...]


def problems(snapshot: Snapshot) -> list[Problem]:
    """Return all problems. Each partition is listed only under its worst problem."""
    return [
        *_brokers(snapshot),
        *_controller(snapshot),
        *_partitions(snapshot),
        *_log_dirs(snapshot.log_dirs),
        *_groups(snapshot),
    ]


def _brokers(snapshot: Snapshot) -> Iterator[Problem]:
    for broker in snapshot.brokers:
        if broker.is_up:
            continue
        replicas = sum(
            broker.broker_id in each.replicas for topic in snapshot.topics for each in topic.partitions
        )
        where = f" at {broker.address}" if broker.address else ""
        has = f"; it has {counted(replicas, 'replica')}" if replicas else ""
        text = f"broker {broker.broker_id}{where} {_STATES[broker.state]}: {broker.fault}{has}"
        yield Problem("broker-not-up", text, (str(broker.broker_id),))


def _controller(snapshot: Snapshot) -> Iterator[Problem]:
    if snapshot.is_kraft:
        yield from _quorum(snapshot.quorum)
        return
    controller_id = snapshot.controller_id
    if controller_id is None:
        yield Problem("no-controller", "no controller: topics and leaders cannot change", ())
        return
    state = {broker.broker_id: broker.state for broker in snapshot.brokers}.get(controller_id, "down")
    if state != "up":
        condition = "if no broker can reach it either, " if state == "unreachable" else ""
        effect = f"{condition}topics and leaders cannot change"
        text = f"the controller, broker {controller_id}, {_STATES[state]}: {effect}"
        yield Problem("no-controller", text, (str(controller_id),))


def _quorum(quorum: Quorum | None) -> Iterator[Problem]:
    if quorum is None:
        return
    if quorum.error is not None:
        effect = "topics and leaders cannot change"
        text = f"the metadata quorum has no leader that responds ({quorum.error}): {effect}"
        yield Problem("no-quorum-leader", text, ())
        return
    voters = quorum.voters
    for each in voters:
        age_ms = each.fetched_before_ms
        if each.node_id == quorum.leader_id or (age_ms is not None and age_ms < VOTER_SILENT_MS):
            continue
        since = "" if age_ms is None else f" for {age_ms / 1000:.0f} s"
        text = (
            f"voter {each.node_id} of the metadata quorum has not fetched{since}: the quorum needs "
            f"{len(voters) // 2 + 1} of its {len(voters)} voters"
        )
        yield Problem("quorum-voter-silent", text, (str(each.node_id),))


# --- partitions


def _partitions(snapshot: Snapshot) -> Iterator[Problem]:
    leaderless = _by_topic(snapshot, lambda topic, each: each.leader is None)
    if leaderless:
        text = f"{_places(leaderless)} no leader and cannot be written or read"
        text += f"{_numbers(leaderless)}{_awaited(snapshot, leaderless)}"
        yield Problem("no-leader", text, _all(leaderless))
    too_few = _by_topic(
        snapshot, lambda topic, each: each.leader is not None and each.is_under_min_isr(topic.min_isr)
    )
    if too_few:
        text = "fewer in-sync replicas than min.insync.replicas: writes with acks=all fail"
        yield Problem("under-min-isr", f"{_places(too_few)} {text}{_numbers(too_few)}", _all(too_few))
    missing = _by_topic(
        snapshot, lambda topic, each: each.is_under_replicated and not each.is_under_min_isr(topic.min_isr)
    )
    if missing:
        text = f"{_places(missing)} replicas out of sync{_out_of_sync(missing)}{_numbers(missing)}"
        yield Problem("under-replicated", text, _all(missing))


def _by_topic(snapshot: Snapshot, is_wrong: Callable[[Topic, Partition], bool]) -> dict[str, list[Partition]]:
    found = {
        topic.name: [each for each in topic.partitions if is_wrong(topic, each)] for topic in snapshot.topics
    }
    return {name: partitions for name, partitions in found.items() if partitions}


def _places(found: dict[str, list[Partition]]) -> str:
    """Describe partitions: `2 partitions of orders have`, or `7 partitions of 3 topics (a, b, c) have`."""
    number = sum(map(len, found.values()))
    have = "has" if number == 1 else "have"
    if len(found) == 1:
        return f"{counted(number, 'partition')} of {next(iter(found))} {have}"
    return f"{counted(number, 'partition')} of {len(found):,} topics ({_listed(sorted(found))}) {have}"


def _numbers(found: dict[str, list[Partition]]) -> str:
    """Return the list of partition numbers if all partitions belong to one topic, otherwise ""."""
    if len(found) > 1:
        return ""
    (partitions,) = found.values()
    numbers = _listed([str(each.number) for each in partitions])
    return f" (partition{'' if len(partitions) == 1 else 's'} {numbers})"


def _awaited(snapshot: Snapshot, found: dict[str, list[Partition]]) -> str:
    """Return a note about unavailable brokers that have the last in-sync replicas and can lead again."""
    up = {broker.broker_id for broker in snapshot.brokers if broker.is_up}
    partitions = [each for partitions in found.values() for each in partitions]
    awaited = sorted({broker for each in partitions for broker in each.isr or each.replicas} - up)
    return f"; {_ids(awaited)} can become leader again once available" if awaited else ""


def _out_of_sync(found: dict[str, list[Partition]]) -> str:
    partitions = [each for partitions in found.values() for each in partitions]
    missing = {broker for each in partitions for broker in each.replicas if broker not in each.isr}
    return f" on {_ids(sorted(missing))}"


def _ids(brokers: Sequence[int]) -> str:
    return f"broker{'' if len(brokers) == 1 else 's'} {_listed([str(each) for each in brokers])}"


def _all(found: dict[str, list[Partition]]) -> tuple[str, ...]:
    return tuple(f"{name}-{each.number}" for name, partitions in found.items() for each in partitions)


# --- disks and groups


def _log_dirs(log_dirs: Iterable[LogDir]) -> Iterator[Problem]:
    for each in log_dirs:
        if each.error is not None:
            text = f"log directory {each.path} of broker {each.broker_id} has failed: {each.error}"
            yield Problem("log-dir-failed", text, (each.path,))
        elif each.usable_share is not None and each.usable_share < USABLE_MIN:
            left = f"{size(each.usable_bytes or 0)} of {size(each.total_bytes or 0)} left"
            text = f"log directory {each.path} of broker {each.broker_id} is almost full: {left}"
            yield Problem("disk-nearly-full", text, (each.path,))


def _groups(snapshot: Snapshot) -> Iterator[Problem]:
    for broker_id, error in snapshot.unserved:
        text = f"broker {broker_id} does not serve its groups: {error}"
        yield Problem("groups-not-served", text, (str(broker_id),))
    by_error: dict[str, list[str]] = {}
    for group in snapshot.groups:
        if group.error is not None:
            by_error.setdefault(group.error, []).append(group.group_id)
    for error, names in sorted(by_error.items()):
        text = f"{counted(len(names), 'group')} cannot be described ({_listed(names)}): {error}"
        yield Problem("group-error", text, tuple(names))
    beyond = [group for group in snapshot.groups if _beyond(group)]
    if beyond:
        names = [group.group_id for group in beyond]
        stands = "has" if len(names) == 1 else "have"
        text = f"{counted(len(names), 'group')} {stands} committed offsets beyond the end of a partition"
        places = [place for group in beyond for place in _beyond(group)]
        yield Problem("committed-beyond-end", f"{text} ({_listed(names)}; {_listed(places)})", tuple(names))


def _beyond(group: Group) -> list[str]:
    return [
        f"{each.topic}-{each.partition}" for each in group.positions if each.lag is not None and each.lag < 0
    ]


def _listed(names: Sequence[str]) -> str:
    """Format the beginning of a list of names, and the number of omitted names."""
    most = _NUMBERS_MAX if all(name.isdecimal() for name in names) else _NAMED_MAX
    shown = ", ".join(each if len(each) <= _NAME_MAX else f"{each[:_NAME_MAX]}…" for each in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
