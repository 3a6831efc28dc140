"""kafka-compat migrate: check a cluster of Apache Kafka before its brokers are replaced, and copy committed
offsets to a mirrored cluster.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.cli import arguments

if TYPE_CHECKING:
    from kafka_compat.migration.findings import Finding
    from kafka_compat.migration.group_offsets import Copy

EXIT_INCOMPLETE: Final = 1
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
    _add_offsets(steps)


def _add_check(steps: Any) -> None:
    parser = steps.add_parser(
        "check",
        help="report what differs, or must be changed, before kafka-compat takes a broker's place",
        description="Read the settings, log directories, ZooKeeper nodes and versions of a cluster of Apache "
        "Kafka. Report for each broker what must be changed before kafka-compat takes its place, and what "
        "will differ. Nothing is changed. Log directories are checked if they are on this machine.",
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


def _add_offsets(steps: Any) -> None:
    parser = steps.add_parser(
        "offsets",
        help="copy the committed offsets of groups to a mirrored cluster",
        description="Copy the committed offsets of consumer groups to a cluster that `kafka-compat pipeline "
        "mirror` has copied, so that each group continues with the first record that it has not processed. "
        "Offsets in the new cluster never move back, and groups that have members there are left alone.",
        epilog="exit codes: 0 if all offsets were copied; 1 if some were not, with the reason, or if a group "
        "of --group has none; 2 if a cluster failed",
    )
    for name, what in (("from", "the old cluster"), ("to", "the new cluster")):
        parser.add_argument(
            f"--{name}", metavar="HOST:PORT,…", required=True, dest=f"{name}_servers", help=what
        )
        help = f"client settings for {what}, with the names of Java clients"
        parser.add_argument(f"--{name}-config", metavar="FILE", help=help)
    arguments.add_several(parser, "--group", "NAME", "group to copy (default: all); may be repeated")
    parser.add_argument("--dry-run", action="store_true", help="print the offsets without committing them")
    parser.add_argument("--json", action="store_true", help="print the offsets as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the step, and return the exit code."""
    return _offsets(args) if args.step == "offsets" else _check(args)


def _offsets(args: argparse.Namespace) -> int:
    from kafka_compat.client.cluster import Cluster, TimedOut
    from kafka_compat.client.connection_settings import WrongSettings, read_settings
    from kafka_compat.errors import KafkaError
    from kafka_compat.migration.group_offsets import CLIENT_ID, copy_offsets
    from kafka_compat.security.sasl.client import Untrusted

    def cluster(servers: str, config: str | None) -> Cluster:
        return Cluster(servers, read_settings(config) if config else {}, client_id=CLIENT_ID)

    copies: list[Copy] = []
    try:
        with (
            cluster(args.from_servers, args.from_config) as original,
            cluster(args.to_servers, args.to_config) as mirror,
        ):
            copies.extend(copy_offsets(original, mirror, args.group or None, dry_run=args.dry_run))
    except (WrongSettings, Untrusted, TimedOut, OSError, ValueError) as error:
        print(f"kafka-compat: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KafkaError as error:
        print(f"kafka-compat: {error.code.name} {error}".rstrip(), file=sys.stderr)
        return EXIT_FAILED
    if args.json:
        print(json.dumps([each._asdict() for each in copies], indent=2))
    else:
        _show_copies(copies)
    absent = sorted({*(args.group or ())} - {each.group for each in copies})
    for group in absent:
        print(f"kafka-compat: the group {group} has no committed offsets in the old cluster", file=sys.stderr)
    return 0 if not absent and all(each.is_done for each in copies) else EXIT_INCOMPLETE


def _show_copies(copies: list[Copy]) -> None:
    rows = [("GROUP", "TOPIC", "PARTITION", "OLD-OFFSET", "NEW-OFFSET", "RESULT")]
    for each in copies:
        new = "-" if each.new_offset is None else str(each.new_offset)
        rows.append((each.group, each.topic, str(each.partition), str(each.offset), new, each.note))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        print(" ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]))


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
