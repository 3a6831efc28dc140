"""kafka-groups: list groups of all types."""

from typing import Final

from kafka_compat.client.groups import CONSUMERS, Listed, all_groups
from kafka_compat.tools import show
from kafka_compat.tools.admin import connected, settings_of
from kafka_compat.tools.failure import illegal_argument, log, of_client, report
from kafka_compat.tools.options import Options

_TYPES: Final = ("Classic", "Consumer", "Share", "Streams")
_FILTERS: Final = ("consumer", "group-type", "protocol", "share", "streams")
_EXCLUSIVE: Final = ("consumer", "share", "streams")
_LOGGER: Final = "org.apache.kafka.tools.GroupsCommand"


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    options = Options.or_usage("groups", arguments)
    try:
        _check(options)
        settings = settings_of(options)
    except Exception as error:
        return report(of_client(error))
    try:
        with connected(options.given("bootstrap-server"), settings) as cluster:
            _print([group for group in all_groups(cluster) if _is_chosen(group, options)], options)
    except Exception as error:
        found = of_client(error)
        print(f"Error while executing groups command : {found.message}", file=options.errors)
        log("ERROR", found.trace, _LOGGER)
        return 1
    return 0


def _check(options: Options) -> None:
    options.exit_for_help()
    if not options.has("list"):
        options.usage_error("Specify the action --list.")
    for name in _EXCLUSIVE:
        options.forbid(name, *(other for other in _FILTERS if other != name))
    if options.has("group-type") and _type(options) not in _TYPES:
        raise illegal_argument("--group-type must be a known type of group.")


def _type(options: Options) -> str:
    return options.given("group-type").capitalize()


def _is_chosen(group: Listed, options: Options) -> bool:
    is_consumer = group.type == "Consumer" or (
        group.type in ("", "Classic") and group.protocol_type in ("", CONSUMERS)
    )
    return (
        (not options.has("consumer") or is_consumer)
        and (not options.has("share") or group.type == "Share")
        and (not options.has("streams") or group.type == "Streams")
        and (not options.has("group-type") or group.type == _type(options))
        and (not options.has("protocol") or group.protocol_type == options.given("protocol"))
    )


def _print(groups: list[Listed], options: Options) -> None:
    if options.as_json:
        show.as_json(
            [{"group": each.group_id, "type": each.type, "protocol": each.protocol_type} for each in groups]
        )
        return
    table = show.table(
        show.column("GROUP", [each.group_id for each in groups], 20),
        ("TYPE", 20, [each.type for each in groups]),
        ("PROTOCOL", 20, [each.protocol_type for each in groups]),
    )
    print("\n".join(table))
