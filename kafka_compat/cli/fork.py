"""kafka-compat fork: duplicate a topic of a running broker, or the data directory of a stopped broker, using
hard links instead of copying records.
"""

import argparse
import json
import os
import sys
import time
from typing import Any, Final

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
_TIMEOUT_S: Final = 60.0


def add_parser(subparsers: Any) -> None:
    """Add the `fork` subcommand to the command line."""
    parser = subparsers.add_parser(
        "fork",
        help="duplicate a topic or a data directory without copying records",
        description="Fork a topic of a running broker with the control API (kafka.compat.control.enable): "
        "`fork --http URL TOPIC NAME`. Or fork the data directory of a stopped broker: "
        "`fork --data DIR --to DIR`. Both copies share closed segments through hard links; later changes "
        "to one copy do not affect the other.",
        epilog="exit codes: 0 if the fork succeeded; 1 if it failed; 2 if the arguments are invalid",
    )
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="topic to fork")
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the new topic")
    parser.add_argument("--http", metavar="URL", help="address of the broker's kafka.compat.http.listener")
    parser.add_argument("--token", metavar="TEXT", help="the broker's kafka.compat.http.token, if set")
    help = "also copy the committed offsets of these consumer groups; `all` for all groups"
    parser.add_argument("--groups", metavar="GROUP,…", help=help)
    parser.add_argument(
        "--data", metavar="DIR", help="data directory of a stopped broker (one of its log.dirs)"
    )
    parser.add_argument("--to", metavar="DIR", help="new directory on the same file system")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Fork a topic or a data directory, and return the exit code."""
    of_topic = (args.http, args.topic, args.name)
    of_folder = (args.data, args.to)
    if all(of_topic) and not any(of_folder):
        return _fork_topic(args)
    if all(of_folder) and not any((*of_topic, args.groups, args.token)):
        return _fork_folder(args)
    return _refuse("expected --http URL TOPIC NAME, or --data DIR --to DIR", EXIT_USAGE)


def _fork_topic(args: argparse.Namespace) -> int:
    from urllib.parse import quote

    from kafka_compat.http_client import Unreachable, place, request

    try:
        broker = place(args.http)
    except ValueError:
        return _refuse(f"--http {args.http}: expected http://HOST:PORT", EXIT_USAGE)
    groups: Any = args.groups.split(",") if args.groups else []
    body = json.dumps({"name": args.name, "groups": True if groups == ["all"] else groups}).encode()
    headers = {"Authorization": f"Bearer {args.token}"} if args.token else {}
    where = broker.below(f"/control/v1/topics/{quote(args.topic, '')}/fork")
    try:
        response = request(where, "POST", body, headers, _TIMEOUT_S)
        answer = json.loads(response.body)
    except (Unreachable, ValueError) as error:
        return _refuse(f"no response from {args.http}: {error}", EXIT_FAILED)
    if response.status >= 400:
        return _refuse(answer["detail"], EXIT_FAILED)
    if args.json:
        print(json.dumps(answer))
    else:
        with_groups = (
            f", with the committed offsets of {', '.join(answer['groups'])}" if answer["groups"] else ""
        )
        print(f"forked {args.topic} to {args.name}{with_groups} ({answer['took_ms']:.0f} ms)")
    return 0


def _fork_folder(args: argparse.Namespace) -> int:
    from kafka_compat.storage.errors import StorageError
    from kafka_compat.storage.log.fork import fork_data

    began_s = time.perf_counter()
    try:
        logs = fork_data(os.path.abspath(args.data), os.path.abspath(args.to))
    except (OSError, StorageError) as error:
        return _refuse(str(error), EXIT_FAILED)
    took_ms = round((time.perf_counter() - began_s) * 1000, 3)
    if args.json:
        print(json.dumps({"data": args.data, "to": args.to, "logs": logs, "took_ms": took_ms}))
    else:
        print(f"forked {logs} logs of {args.data} to {args.to} ({took_ms:.0f} ms)")
    return 0


def _refuse(message: str, code: int) -> int:
    print(f"kafka-compat fork: {message}", file=sys.stderr)
    return code
