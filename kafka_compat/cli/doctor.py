"""kafka-compat doctor: find out why a client cannot reach a broker. `diagnosis.py` contains the checks."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.cli import arguments

if TYPE_CHECKING:
    from kafka_compat.cli.diagnosis import Finding

EXIT_ILL: Final = 1
EXIT_USAGE: Final = 2
_BOOTSTRAP: Final = "127.0.0.1:9092"
_TIMEOUT_S: Final = 10.0


def add_parser(subparsers: Any) -> None:
    """Add the `doctor` subcommand to the command line."""
    parser = subparsers.add_parser(
        "doctor",
        help="find out why a client cannot reach a broker",
        description="Connect to every broker of a cluster as a client does, and check name resolution, "
        "connection, TLS, authentication, metadata and permissions. For the first step that fails, print "
        "which side is at fault (client, broker or network) and the remedy.",
        epilog="exit codes: 0 if every step succeeded; 1 if a step failed; 2 if the settings are invalid",
    )
    help = "the client's properties file, with the setting names of Java clients"
    parser.add_argument("properties", nargs="?", metavar="client.properties", help=help)
    help = f"brokers to connect to first (default: bootstrap.servers in the file, or {_BOOTSTRAP})"
    parser.add_argument("--bootstrap-server", "--bootstrap", metavar="HOST:PORT,…", help=help)
    arguments.add_several(parser, "--topic", "NAME", "topic to check permissions for; may be repeated")
    arguments.add_several(parser, "--group", "NAME", "group to check permissions for; may be repeated")
    help = f"timeout of each step in seconds (default: {_TIMEOUT_S:g})"
    parser.add_argument("--timeout", type=float, default=_TIMEOUT_S, metavar="SECONDS", help=help)
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the diagnosis, and return the exit code."""
    from kafka_compat.cli.diagnosis import Examination, Wanted
    from kafka_compat.client.connection_settings import (
        WrongSettings,
        addresses,
        connection_settings,
        read_settings,
    )

    try:
        settings = read_settings(args.properties) if args.properties else {}
        bootstrap = addresses(args.bootstrap_server or settings.get("bootstrap.servers", _BOOTSTRAP))
        connecting = connection_settings(settings, args.timeout)
    except WrongSettings as error:
        print(f"kafka-compat: {error}", file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        print(f"kafka-compat: cannot read {args.properties}: {error.strerror or error}", file=sys.stderr)
        return EXIT_USAGE
    examination = Examination(connecting, Wanted(tuple(args.topic), tuple(args.group)))
    findings = []
    for finding in examination.all(bootstrap):
        findings.append(finding)
        if not args.json:
            _show(finding)
    if args.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    return 0 if all(finding.ok for finding in findings) else EXIT_ILL


def _show(finding: Finding) -> None:
    mark = "ok    " if finding.ok else "FAILED"
    print(f"{mark} {finding.address:<24} {finding.step:<12} {finding.text}")
    if not finding.ok:
        print(f"       → {finding.side}: {finding.remedy}")
