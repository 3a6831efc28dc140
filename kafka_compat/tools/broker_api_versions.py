"""kafka-broker-api-versions: which requests brokers serve, and in which versions."""

from __future__ import annotations

import os
from typing import Any, Final

from kafka_compat.tools import show
from kafka_compat.tools.admin import cluster_of
from kafka_compat.tools.failure import Failure, of_client
from kafka_compat.tools.options import Options

_APIS: Final = os.path.join(os.path.dirname(__file__), "apis.txt")
"""Per line: an API's key, its name, the newest version that Kafka's command knows, and whether clients
use it.
"""


def run(arguments: list[str]) -> int:
    """The exit code."""
    options = Options("broker-api-versions", arguments, also="command-property=")
    options.exit_for_help()
    options.require("bootstrap-server")
    try:
        cluster = cluster_of(options)
    except Failure as failure:
        # This command of Kafka's makes no admin client that would say that it cannot be made.
        raise failure.cause or failure from None
    shown = {}
    try:
        for node in cluster.brokers():
            shown[node] = cluster.api_versions(node.node_id, "apiVersions")
    except Exception as error:
        raise of_client(error) from None
    finally:
        cluster.close()
    if options.as_json:
        show.as_json([_as_json(node, found) for node, found in shown.items()])
        return 0
    for node, found in shown.items():
        lines = ",\n\t".join(_lines(found))
        print(f"{node} -> (\n\t{lines}\n)")
    return 0


def _known() -> dict[int, tuple[str, int, bool]]:
    with open(_APIS, encoding="utf-8") as file:
        rows = [line.split() for line in file]
    return {int(key): (name, int(high), use == "client") for key, name, high, use in rows}


def _lines(found: dict[int, tuple[int, int]]) -> list[str]:
    known = _known()
    lines = {}
    for key, (low, high) in found.items():
        versions = f"{low}" if low == high else f"{low} to {high}"
        if key not in known:
            lines[key] = f"UNKNOWN({key}): {versions}"
            continue
        name, newest, _ = known[key]
        if newest < low:
            usable = "unusable: node too new"
        elif high < 0:
            usable = "unusable: node too old"
        else:
            usable = f"usable: {min(newest, high)}"
        lines[key] = f"{name}({key}): {versions} [{usable}]"
    for key, (name, _, is_of_clients) in known.items():
        if is_of_clients and key not in lines:
            lines[key] = f"{name}({key}): UNSUPPORTED"
    return [lines[key] for key in sorted(lines)]


def _as_json(node: Any, found: dict[int, tuple[int, int]]) -> dict[str, Any]:
    known = _known()
    return {
        "id": node.node_id,
        "host": node.host,
        "port": node.port,
        "rack": node.rack,
        "apis": [
            {"key": key, "name": known[key][0] if key in known else None, "min": low, "max": high}
            for key, (low, high) in sorted(found.items())
        ],
    }
