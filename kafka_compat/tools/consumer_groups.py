"""kafka-consumer-groups: list, describe and delete groups, and reset their offsets."""

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kafka_compat.client.cluster import Cluster
from kafka_compat.tools import show
from kafka_compat.tools.chosen_groups import SCENARIOS, awaited, groups_meant, partitions_in
from kafka_compat.tools.failure import Failure, failure_of, illegal_argument, of_client
from kafka_compat.tools.group_command import check_available, run_action
from kafka_compat.tools.options import Options

if TYPE_CHECKING:
    from kafka_compat.client.partitions import TopicPartition

STATES: Final = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
)
TYPES: Final = ("Consumer", "Classic")
_ACTIONS: Final = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
_ONLY_WITH: Final = {
    "members": ("describe",),
    "verbose": ("describe",),
    "offsets": ("describe",),
    "state": ("describe", "list"),
    "type": ("list",),
}


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code. Raises Failure if a flag is invalid."""
    options = Options("consumer-groups", arguments, also="command-property=")
    _check(options)
    if options.has("validate-regex"):
        return _validate_regex(options)
    return run_action("consumer group", options, _act)


def _validate_regex(options: Options) -> int:
    expression = options.given("validate-regex")
    wrong = what_is_wrong(expression)
    if options.as_json:
        show.as_json({"regex": expression, "error": wrong})
    else:
        verdict = "valid" if wrong is None else f"invalid: {wrong}"
        print(f"The regular expression `{expression}` is {verdict}.")
    return 0


def _act(cluster: Cluster, options: Options) -> None:
    if options.has("list"):
        list_groups(cluster, options)
    elif options.has("describe"):
        from kafka_compat.tools.described_groups import describe

        describe(cluster, options)
    elif options.has("delete"):
        delete_groups(cluster, options)
    elif options.has("reset-offsets"):
        from kafka_compat.tools.reset_offsets import reset_offsets

        reset_offsets(cluster, options)
    else:
        delete_offsets(cluster, options)


def _check(options: Options) -> None:
    check_available(options, _ONLY_WITH)
    options.exit_for_help()
    if not options.has("validate-regex"):
        options.require("bootstrap-server")
    if options.has("describe"):
        _needs_groups(options, "describe")
        one_of = ("members", "offsets", "state")
        if sum(map(options.has, one_of)) > 1:
            listed = ", ".join(f"[{name}]" for name in one_of)
            options.usage_error(f"Option [describe] takes at most one of these options: {listed}")
        if options.value("state") is not None:
            options.usage_error("Option [describe] does not take a value for [state]")
    if options.has("delete"):
        _needs_groups(options, "delete")
        if options.has("topic"):
            options.usage_error("A list of topics requires --delete-offsets instead of --delete.")
    if options.has("delete-offsets") and not (options.has("group") and options.has("topic")):
        options.usage_error("Option [delete-offsets] takes the following options: [topic], [group]")
    if options.has("reset-offsets"):
        _check_reset(options)
    options.forbid("group", "all-groups")
    options.forbid("group", "list")
    options.forbid("topic", "list", "describe")
    if sum(map(options.has, _ACTIONS)) != 1:
        options.usage_error(
            f"Command must include exactly one action: {', '.join(f'--{name}' for name in _ACTIONS)}"
        )


def _check_reset(options: Options) -> None:
    if options.has("dry-run") and options.has("execute"):
        options.usage_error("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not options.has("dry-run") and not options.has("execute"):
        print(
            "WARN: Nothing is changed without --execute. Specify --dry-run in scripts: Kafka 5.0 will "
            "require --dry-run or --execute.",
            file=sys.stderr,
        )
    _needs_groups(options, "reset-offsets")
    for name in (
        "to-offset",
        "to-datetime",
        "by-duration",
        "to-earliest",
        "to-latest",
        "to-current",
        "shift-by",
        "from-file",
    ):
        options.forbid(name, *(other for other in SCENARIOS if other != name))


def _needs_groups(options: Options, action: str) -> None:
    if not options.has("group") and not options.has("all-groups"):
        options.usage_error(f"Option [{action}] takes one of these options: [group], [all-groups]")


# --- actions


def list_groups(cluster: Cluster, options: Options) -> None:
    """Run --list. Raises Failure if an argument is invalid or the request fails."""
    from kafka_compat.client.groups import list_groups as listed

    with_type, with_state = options.has("type"), options.has("state")
    types = _chosen(options.value("type"), TYPES, "types", "types") if with_type else set()
    states = _chosen(options.value("state"), STATES, "state", "states") if with_state else set()
    with awaited(runtime=not (with_type or with_state)):
        groups = listed(cluster)
    groups = [
        group
        for group in groups
        if (not types or group.type in types) and (not states or group.state in states)
    ]
    if options.as_json:
        show.as_json(
            [{"group": group.group_id, "type": group.type, "state": group.state} for group in groups]
        )
        return
    if not with_type and not with_state:
        for group in groups:
            print(group.group_id)
        return
    title, width, cells = show.column("GROUP", [group.group_id for group in groups])
    columns = [(title, width + 10, cells)]
    if with_type:
        columns.append(("TYPE", 20, [group.type or "Unknown" for group in groups]))
    if with_state:
        columns.append(("STATE", 20, [group.state or "Unknown" for group in groups]))
    print("\n".join(show.table(*columns)))


def _chosen(text: str | None, known: tuple[str, ...], what: str, many: str) -> set[str]:
    by_name = {name.lower(): name for name in known}
    wanted = [item.strip().lower() for item in text.split(",")] if text else []
    if any(item not in by_name for item in wanted):
        raise illegal_argument(f"Invalid {what} list '{text}'. Valid {many} are: {', '.join(known)}")
    return {by_name[item] for item in wanted}


def delete_groups(cluster: Cluster, options: Options) -> None:
    """Run --delete, and print the outcome for each group. Raises Failure if groups cannot be listed."""
    from kafka_compat.client.groups import delete_group

    deleted: list[str] = []
    failed: dict[str, Failure] = {}
    for group_id in groups_meant(cluster, options):
        try:
            delete_group(cluster, group_id)
            deleted.append(group_id)
        except Exception as error:
            failed[group_id] = of_client(error)
    if options.as_json:
        errors = {group_id: failure.message for group_id, failure in failed.items()}
        show.as_json([{"group": group_id, "error": errors.get(group_id)} for group_id in [*deleted, *failed]])
        return
    if not failed:
        print(f"Deletion of requested consumer groups ({_quoted(deleted)}) was successful.")
        return
    print("\nError: Deletion of some consumer groups failed:")
    for group_id, failure in failed.items():
        print(f"* Group '{group_id}' could not be deleted due to: {failure}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {_quoted(deleted)}")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


_OF_PARTITIONS: Final = (3, 29, 86)
"""Error codes that Kafka's command reports for each partition."""
_OF_GROUPS: Final = (24, 30, 68, 69)


def delete_offsets(cluster: Cluster, options: Options) -> None:
    """Run --delete-offsets, and print the outcome for each partition, even if the request fails."""
    from kafka_compat.client.groups import delete_offsets as delete
    from kafka_compat.client.leaders import partitions_of
    from kafka_compat.errors import ErrorCode, KafkaError

    group_id, topics = options.given("group"), options.values("topic")
    partitions = {place for topic in topics if ":" in topic for place in partitions_in(topic)}
    outcome: dict[TopicPartition, int] = {}
    for topic in topics:
        if ":" not in topic:
            try:
                found = partitions_of(cluster, [topic], "describeTopics")[topic]
                partitions |= {(topic, number) for number in found}
            except KafkaError as error:
                outcome[topic, -1] = error.code
    overall = 0
    try:
        codes = delete(cluster, group_id, partitions)
    except KafkaError as error:
        overall = error.code
        codes = dict.fromkeys(partitions, overall)
    outcome |= codes
    overall = overall or next((code for code in codes.values() if code), 0)
    if options.as_json:
        show.as_json(
            [
                {"topic": topic, "partition": number if number >= 0 else None, "error": _error_text(code)}
                for (topic, number), code in sorted(outcome.items())
            ]
        )
        return
    if not overall:
        print(f"Request succeeded for deleting offsets from group {group_id}.")
    elif overall in _OF_GROUPS:
        print(f"\nError: {failure_of(overall).message}")
    elif overall in _OF_PARTITIONS:
        print("\nError: Failed for some partitions:")
    else:
        print(f"\nError: Encountered some unknown error: {ErrorCode(overall).name}")
    rows = sorted(outcome.items(), key=lambda item: f"{item[0][0]}{item[0][1]}")
    table = show.table(
        show.column("TOPIC", [topic for (topic, _), _ in rows]),
        ("PARTITION", 10, [str(number) if number >= 0 else "-" for (_, number), _ in rows]),
        ("STATUS", 15, [f"Error: {_error_text(code)}" if code else "Successful" for _, code in rows]),
    )
    print("".join(f"\n{line}" for line in table))


def _error_text(code: int) -> str | None:
    return str(failure_of(code)) if code else None


_WORDS: Final = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}
"""Maps error messages of RE2 to those of RE2/J, if they differ."""

_CAPTURE: Final = re.compile(r"\(\?P?<(\w+)>")


def what_is_wrong(expression: str) -> str | None:
    """Return the error in the regular expression of a KIP-848 subscription, or None if it is valid.

    google-re2 has the syntax of RE2/J, but different messages. Raises Failure if google-re2 is missing.
    """
    try:
        import re2
    except ImportError:
        text = "--validate-regex needs the package google-re2: install kafka-compat[regex]"
        raise Failure("java.lang.UnsupportedOperationException", text) from None

    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(expression, options=options)
    except re2.error as error:
        reason: str = error.args[0].decode(errors="replace").partition(": ")[0]
        return _WORDS.get(reason, reason)
    names = _CAPTURE.findall(expression)
    return None if len(set(names)) == len(names) else "duplicate capture group name"
