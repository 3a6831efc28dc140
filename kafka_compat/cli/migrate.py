"""kafka-compat migrate: check a cluster of Apache Kafka before its brokers are replaced, and copy committed
offsets to a mirrored cluster.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafka_compat.migration.findings import Finding

EXIT_FAILED: Final = 2
_PARTS: Final = ("directories", "zookeeper", "brokers")
_TIMEOUT_S: Final = 10.0


def add_parser(subparsers: Any) -> None:
    """Add the `migrate` subcommand to the command line."""
    parser = subparsers.add_parser(
        "migrate",
        help="check a Kafka cluster before its brokers are replaced; copy committed offsets",
        description="Help to move from Apache Kafka to kafka-compat: docs/migrate.md describes the steps.",
    )
    steps = parser.add_subparsers(dest="step", metavar="STEP", required=True)
    _add_check(steps)


def _add_check(steps: Any) -> None:
    parser = steps.add_parser(
        "check",
        help="report what differs, or must be changed, before kafka-compat takes a broker's place",
        description="Read the settings, log directories, ZooKeeper nodes and versions of a cluster of Apache "
        "Kafka. Report for each broker what must be changed before kafka-compat takes its place, and what will "
        "differ. Nothing is changed. Log directories are checked if they are on this machine.",
        epilog="exit codes: 0 if nothing stands in the way; 1 if something does; 2 if the check, or a part "
        "of it, could not be done",
    )
    help = "the settings of each broker of Apache Kafka"
    parser.add_argument("files", nargs="+", metavar="server.properties", help=help)
    help = "brokers to ask (default: the PLAINTEXT listeners in ZooKeeper)"
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT,…", default="", help=help)
    help = "client settings for a user that may describe the cluster, with the names of Java clients"
    parser.add_argument("--command-config", metavar="FILE", help=help)
    help = f"leave out {', '.join(_PARTS[:-1])} or {_PARTS[-1]}; may be repeated"
    parser.add_argument("--skip", action="append", default=[], choices=_PARTS, help=help)
    help = f"timeout for ZooKeeper and for each broker in seconds (default: {_TIMEOUT_S:g})"
    parser.add_argument("--timeout", type=float, default=_TIMEOUT_S, metavar="SECONDS", help=help)
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the step, and return the exit code."""
    return _check(args)


def _check(args: argparse.Namespace) -> int:
    from kafka_compat.client.connection_settings import WrongSettings, read_settings
    from kafka_compat.migration.check import Request, check
    from kafka_compat.migration.findings import exit_code

    # The library logs each attempt to connect. The report says what came of them.
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    try:
        client = read_settings(args.command_config) if args.command_config else {}
        findings = check(
            Request(args.files, args.bootstrap_server, client, frozenset(args.skip), args.timeout)
        )
    except (WrongSettings, ValueError) as error:
        print(f"kafka-compat: {error}", file=sys.stderr)
        return EXIT_FAILED
    except OSError as error:
        print(f"kafka-compat: cannot read {error.filename}: {error.strerror or error}", file=sys.stderr)
        return EXIT_FAILED
    code = exit_code(findings)
    if args.json:
        print(json.dumps({"exit_code": code, "findings": [each._asdict() for each in findings]}, indent=2))
    else:
        _show(findings, code)
    return code


def _show(findings: list[Finding], code: int) -> None:
    row = "{:<8} {:<10} {:<12} {}"
    print(row.format("BROKER", "LEVEL", "AREA", "FINDING"))
    for each in findings:
        broker = "cluster" if each.broker is None else str(each.broker)
        print(row.format(broker, each.level, each.area, each.text))
        if each.remedy:
            print(row.format("", "", "", f"→ {each.remedy}"))
    changes = sum(each.level == "change" for each in findings)
    print(
        (
            "Nothing stands in the way.",
            f"{changes} finding{'s' if changes > 1 else ''} must be changed first (level change).",
            "The check is incomplete (level unchecked).",
        )[code]
    )
