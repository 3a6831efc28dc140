"""kafka-broker-api-versions: list the APIs that brokers support, and their versions."""

import os
from typing import Any, Final, NamedTuple

from kafka_compat.tools import show
from kafka_compat.tools.admin import cluster_of
from kafka_compat.tools.failure import Failure, of_client, report
from kafka_compat.tools.options import Options

_APIS: Final = os.path.join(os.path.dirname(__file__), "apis.txt")
"""A file whose lines contain an API's key, its name, the oldest and newest versions that Kafka's command
supports, and whether clients use the API. The newest version is -1 if only the name is known.
"""


class _Api(NamedTuple):
    name: str
    oldest: int
    newest: int
    is_of_clients: bool


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    try:
        options = Options("broker-api-versions", arguments, also="command-property=")
        options.exit_for_help()
        options.require("bootstrap-server")
        _show(options)
    except Exception as error:
        return report(of_client(error))
    return 0


def _show(options: Options) -> None:
    try:
        cluster = cluster_of(options)
    except Failure as failure:
        # Raise only the cause, because Kafka's command does not use KafkaAdminClient, which would wrap it.
        raise failure.cause or failure from None
    with cluster:
        shown = {node: cluster.api_versions(node.node_id, "apiVersions") for node in cluster.brokers()}
    if options.as_json:
        show.as_json([_as_json(node, found) for node, found in shown.items()])
        return
    for node, found in shown.items():
        lines = ",\n\t".join(_lines(found))
        print(f"{node} -> (\n\t{lines}\n)")


def _known() -> dict[int, _Api]:
    with open(_APIS, encoding="utf-8") as file:
        rows = [line.split() for line in file]
    return {
        int(key): _Api(name, int(oldest), int(newest), use == "client")
        for key, name, oldest, newest, use in rows
    }


def _lines(found: dict[int, tuple[int, int]]) -> list[str]:
    known = _known()
    lines = {}
    for key, (low, high) in found.items():
        versions = f"{low}" if low == high else f"{low} to {high}"
        if key not in known:
            lines[key] = f"UNKNOWN({key}): {versions}"
            continue
        api = known[key]
        if api.newest < low:
            usable = "unusable: node too new"
        elif high < api.oldest:
            usable = "unusable: node too old"
        else:
            usable = f"usable: {min(api.newest, high)}"
        lines[key] = f"{api.name}({key}): {versions} [{usable}]"
    for key, api in known.items():
        if api.is_of_clients and key not in lines:
            lines[key] = f"{api.name}({key}): UNSUPPORTED"
    return [lines[key] for key in sorted(lines)]


def _as_json(node: Any, found: dict[int, tuple[int, int]]) -> dict[str, Any]:
    known = _known()
    return {
        "id": node.node_id,
        "host": node.host,
        "port": node.port,
        "rack": node.rack,
        "apis": [
            {"key": key, "name": known[key].name if key in known else None, "min": low, "max": high}
            for key, (low, high) in sorted(found.items())
        ],
    }
