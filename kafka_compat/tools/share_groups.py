"""kafka-share-groups: list, describe and delete share groups, and reset or delete their offsets."""

import sys
from collections.abc import Iterable
from typing import Final

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.groups import DEAD, EMPTY, Listed, all_groups
from kafka_compat.client.partitions import by_topic
from kafka_compat.client.share_groups import (
    SHARE,
    ShareDescription,
    alter_share_offsets,
    delete_share_offsets,
    describe_share_group,
    share_offsets,
)
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.tools import show
from kafka_compat.tools.failure import Failure, executed, failure_of, illegal_argument, of_client
from kafka_compat.tools.group_command import check_available, print_error, run_action
from kafka_compat.tools.options import Options

STATES: Final = ("Stable", "Dead", "Empty")
_ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
_ONLY_WITH: Final = {
    "members": ("describe",),
    "offsets": ("describe",),
    "state": ("describe", "list"),
    "verbose": ("describe",),
}
_TARGETS: Final = ("to-offset", "to-datetime", "to-earliest", "to-latest", "to-current", "from-file")
_TOPICS: Final = ("topic", "all-topics", "from-file")
_MISSING: Final = "-"


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code. Raises Failure if a flag is invalid."""
    options = Options("share-groups", arguments)
    _check(options)
    return run_action("share group", options, _act)


def _act(cluster: Cluster, options: Options) -> None:
    if options.has("list"):
        list_groups(cluster, options)
    elif options.has("describe"):
        describe(cluster, options)
    elif options.has("delete"):
        delete_groups(cluster, options)
    elif options.has("reset-offsets"):
        reset_offsets(cluster, options)
    else:
        delete_offsets(cluster, options)


def _check(options: Options) -> None:
    check_available(options, _ONLY_WITH)
    options.exit_for_help()
    options.require("bootstrap-server")
    if options.has("describe"):
        _check_describe(options)
    if options.has("delete"):
        _check_delete(options)
    if options.has("delete-offsets") and not (options.has("group") and options.has("topic")):
        options.usage_error("Option [delete-offsets] takes the following options: [group], [topic]")
    if options.has("reset-offsets"):
        _check_reset(options)
    options.forbid("group", "all-groups")
    options.forbid("group", "list")
    options.forbid("topic", "list", "describe", "delete")
    if sum(map(options.has, _ACTIONS)) != 1:
        options.usage_error(
            f"Command must include exactly one action: {', '.join(f'--{name}' for name in _ACTIONS)}."
        )


def _check_describe(options: Options) -> None:
    if not options.has("group") and not options.has("all-groups"):
        options.usage_error("Option [describe] takes one of these options: [all-groups], [group]")
    if sum(map(options.has, ("members", "offsets", "state"))) > 1:
        options.usage_error(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if options.value("state") is not None:
        options.usage_error("Option [describe] does not take a value for [state]")


def _check_delete(options: Options) -> None:
    has_group, has_all = options.has("group"), options.has("all-groups")
    if not has_group and not has_all:
        options.usage_error("Option [delete] takes the options [group] or [all-groups].")
    if has_group and has_all:
        options.usage_error("Option [delete] takes either [group] or [all-groups], not both.")
    if options.has("all-topics") or options.has("topic"):
        options.usage_error("Option [delete] does not take the options [topic] or [all-topics].")


def _check_reset(options: Options) -> None:
    action = "Option [reset-offsets]"
    if options.has("dry-run") and options.has("execute"):
        options.usage_error(f"{action} only accepts one of [execute] and [dry-run]")
    if not options.has("dry-run") and not options.has("execute"):
        options.usage_error(f"{action} takes the option: [execute] or [dry-run]")
    if not options.has("group"):
        options.usage_error(f"{action} takes the option: [group]")
    for names in (_TOPICS, _TARGETS):
        if not any(map(options.has, names)):
            listed = ", ".join(sorted(f"[{name}]" for name in names))
            options.usage_error(f"{action} takes one of these options: {listed}")
        for name in names:
            options.forbid(name, *(other for other in names if other != name))


# --- actions


def list_groups(cluster: Cluster, options: Options) -> None:
    """Run --list. Raises Failure if the states are invalid or a request fails."""
    states = _states_in(options.value("state"))
    groups = [group for group in _listed(cluster) if not states or group.state in states]
    if options.as_json:
        show.as_json([{"group": group.group_id, "state": group.state} for group in groups])
        return
    names = [group.group_id for group in groups]
    if not options.has("state"):
        print("".join(f"{name}\n" for name in names), end="")
        return
    columns = show.column("GROUP", names), ("STATE", 0, [group.state or "Unknown" for group in groups])
    print("\n".join(show.table(*columns)))


def _listed(cluster: Cluster) -> list[Listed]:
    return [group for group in all_groups(cluster) if group.type == SHARE]


def _states_in(text: str | None) -> set[str]:
    if not text:
        return set()
    known = {state.lower(): state for state in STATES}
    wanted = [item.strip().lower() for item in text.split(",")]
    if any(item not in known for item in wanted):
        valid = ", ".join(STATES)
        raise illegal_argument(f"Invalid state list '{text}'. Valid states are: {valid}")
    return {known[item] for item in wanted}


def describe(cluster: Cluster, options: Options) -> None:
    """Run --describe. Raises Failure if a request fails."""
    if options.has("all-groups"):
        group_ids = [group.group_id for group in _listed(cluster)]
    else:
        group_ids = list(dict.fromkeys(options.values("group")))
    groups = sorted(_described(cluster, group_id) for group_id in group_ids)
    if options.has("members"):
        _print_members(groups, options)
    elif options.has("state"):
        _print_states(groups, options)
    else:
        _print_offsets(cluster, groups, options)


def _described(cluster: Cluster, group_id: str) -> ShareDescription:
    try:
        return describe_share_group(cluster, group_id)
    except Exception as error:
        raise executed(of_client(error)) from error


def _has_rows(group: ShareDescription, options: Options) -> bool:
    """Print notes about the group's state, and return whether its members are shown."""
    if group.state == DEAD:
        print_error(f"Share group '{group.group_id}' does not exist.", options)
    elif group.state == EMPTY:
        sys.stdout.flush()
        print(f"\nShare group '{group.group_id}' has no active members.", file=sys.stderr)
    return group.state != DEAD and bool(group.members)


def _print_offsets(cluster: Cluster, groups: list[ShareDescription], options: Options) -> None:
    found = {group.group_id: share_offsets(cluster, group.group_id) for group in groups}
    rows = {
        group_id: [
            (topic, number, one and one.leader_epoch, one and one.start_offset, one and one.lag)
            for (topic, number), one in sorted(offsets.items(), key=lambda item: item[0])
        ]
        for group_id, offsets in found.items()
    }
    if options.as_json:
        names = ("topic", "partition", "leader_epoch", "start_offset", "lag")
        show.as_json(
            [
                {"group": group_id, **dict(zip(names, row, strict=True))}
                for group_id, mine in rows.items()
                for row in mine
            ]
        )
        return
    for group_id, mine in rows.items():
        if not mine:
            print(f"\nShare group '{group_id}' has no offset information.")
            continue
        columns = [
            show.column("GROUP", [group_id for _ in mine]),
            show.column("TOPIC", [row[0] for row in mine]),
            ("PARTITION", 10, [str(row[1]) for row in mine]),
            ("LEADER-EPOCH", 13, [_or_missing(row[2]) for row in mine]),
            ("START-OFFSET", 13, [_or_missing(row[3]) for row in mine]),
            ("LAG", 0, [_or_missing(row[4]) for row in mine]),
        ]
        if not options.has("verbose"):
            del columns[3]
        _print_table(show.table(*columns))


def _print_members(groups: list[ShareDescription], options: Options) -> None:
    if options.as_json:
        show.as_json(
            [
                {
                    "group": group.group_id,
                    "consumer_id": member.member_id,
                    "host": member.host,
                    "client_id": member.client_id,
                    "epoch": member.epoch,
                    "partitions": [
                        {"topic": topic, "partition": number} for topic, number in sorted(member.partitions)
                    ],
                }
                for group in groups
                for member in group.members
            ]
        )
        return
    for group in groups:
        if not _has_rows(group, options):
            continue
        members = sorted(group.members, key=lambda member: member.member_id)
        columns = [
            show.column("GROUP", [group.group_id for _ in members]),
            show.column("CONSUMER-ID", [member.member_id for member in members]),
            show.column("HOST", [member.host for member in members]),
            show.column("CLIENT-ID", [member.client_id for member in members]),
            ("#PARTITIONS", 12, [str(len(member.partitions)) for member in members]),
            ("MEMBER-EPOCH", 13, [str(member.epoch) for member in members]),
            ("ASSIGNMENT", 0, [_assignment(member.partitions) for member in members]),
        ]
        if not options.has("verbose"):
            del columns[5]
        _print_table(show.table(*columns))


def _assignment(partitions: Iterable[tuple[str, int]]) -> str:
    listed = (f"{topic}:{show.joined(sorted(numbers))}" for topic, numbers in by_topic(partitions).items())
    return ";".join(sorted(listed))


def _print_states(groups: list[ShareDescription], options: Options) -> None:
    if options.as_json:
        show.as_json(
            [
                {
                    "group": group.group_id,
                    "coordinator": {"id": group.coordinator.node_id, "address": _address(group)},
                    "state": group.state,
                    "epoch": group.epoch,
                    "assignment_epoch": group.assignment_epoch,
                    "members": len(group.members),
                }
                for group in groups
            ]
        )
        return
    for group in groups:
        _has_rows(group, options)
        columns = [
            show.column("GROUP", [group.group_id]),
            show.column("COORDINATOR (ID)", [f"{_address(group)}  ({group.coordinator.node_id})"], 25),
            ("STATE", 15, [group.state]),
            ("GROUP-EPOCH", 12, [str(group.epoch)]),
            ("ASSIGNMENT-EPOCH", 17, [str(group.assignment_epoch)]),
            ("#MEMBERS", 0, [str(len(group.members))]),
        ]
        if not options.has("verbose"):
            del columns[3:5]
        _print_table(show.table(*columns))


def _address(group: ShareDescription) -> str:
    return f"{group.coordinator.host}:{group.coordinator.port}"


def _or_missing(value: object) -> str:
    return _MISSING if value is None else str(value)


def _print_table(lines: list[str]) -> None:
    print("".join(f"\n{line}" for line in lines))


def delete_groups(cluster: Cluster, options: Options) -> None:
    """Run --delete, and print the outcome for each group. Raises Failure if groups cannot be listed."""
    from kafka_compat.client.groups import delete_group

    listed = {group.group_id: group for group in _listed(cluster)}
    wanted = listed if options.has("all-groups") else dict.fromkeys(options.values("group"))
    deleted: list[str] = []
    failed: dict[str, Failure] = {}
    for group_id in wanted:
        try:
            if group_id not in listed:
                code = ErrorCode.GROUP_ID_NOT_FOUND
                raise failure_of(code, f"Group '{group_id}' is not a share group.")
            if listed[group_id].state != EMPTY:
                code = ErrorCode.NON_EMPTY_GROUP
                raise failure_of(code, f"Share group '{group_id}' is not EMPTY.")
            delete_group(cluster, group_id)
            deleted.append(group_id)
        except Exception as error:
            failed[group_id] = of_client(error)
    if options.as_json:
        errors = {group_id: failure.message for group_id, failure in failed.items()}
        show.as_json([{"group": group_id, "error": errors.get(group_id)} for group_id in [*deleted, *failed]])
        return
    if not failed:
        print(f"Deletion of requested share groups ({_quoted(deleted)}) was successful.")
        return
    print_error("Deletion of some share groups failed:", options)
    for group_id, failure in failed.items():
        print(f"* Group '{group_id}' could not be deleted due to: {failure}")
    if deleted:
        print(f"\nThese share groups were deleted successfully: {_quoted(deleted)}")


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


_WITH_MESSAGE: Final = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)
_OF_TOPICS: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""Error codes that are printed only in the table."""


def delete_offsets(cluster: Cluster, options: Options) -> None:
    """Run --delete-offsets, and print the outcome for each topic, even if the request fails."""
    group_id, topics = options.given("group"), list(dict.fromkeys(options.values("topic")))
    outcome: dict[str, tuple[int, Failure] | None]
    try:
        found = delete_share_offsets(cluster, group_id, topics)
        outcome = {
            topic: None if failed is None else (failed[0], failure_of(*failed))
            for topic, failed in found.items()
        }
    except KafkaError as error:
        outcome = dict.fromkeys(topics, (int(error.code), of_client(error)))
    if options.as_json:
        show.as_json(
            [{"topic": topic, "error": one and one[1].message} for topic, one in sorted(outcome.items())]
        )
        return
    overall = next((one for one in outcome.values() if one is not None), None)
    if overall is not None:
        code, failure = overall
        if code in _WITH_MESSAGE:
            print_error(failure.message or "", options)
        elif code not in _OF_TOPICS:
            print_error(f"Encounter some unknown error: {failure}", options)
    rows = sorted(outcome.items(), key=lambda item: item[0])
    table = show.table(
        show.column("TOPIC", [topic for topic, _ in rows]),
        ("STATUS", 0, ["Successful" if one is None else f"Error: {one[1].message}" for _, one in rows]),
    )
    _print_table(table)


def reset_offsets(cluster: Cluster, options: Options) -> None:
    """Run --reset-offsets. Exits with code 1 if the group has members. Raises Failure if an argument is
    invalid or a request fails.
    """
    from kafka_compat.tools.reset_offsets import Offsets, Planner, print_plan

    group_id = options.given("group")
    try:
        state = describe_share_group(cluster, group_id).state
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            print(of_client(error).message, file=sys.stderr)
            sys.exit(1)
        state = DEAD
    if state not in (EMPTY, DEAD):
        print(f"Share group '{group_id}' is not empty.", file=sys.stderr)
        sys.exit(1)

    def current() -> Offsets:
        found = share_offsets(cluster, group_id)
        return {place: -1 if one is None else one.start_offset for place, one in found.items()}

    planned = Planner(cluster, options, group_id, current).offsets()
    # With --to-current, partitions that were never fetched keep having no start offset.
    offsets = {place: offset for place, offset in planned.items() if offset >= 0}
    if options.has("execute"):
        failed = alter_share_offsets(cluster, group_id, offsets)
        for code, message in failed.values():
            listed = ", ".join(map(show.name_of, sorted(failed)))
            text = f"The offsets of these partitions were not altered: [{listed}]"
            raise failure_of(code, f"{message} {text}" if message else text)
    print_plan({group_id: offsets} if offsets else {}, options)
