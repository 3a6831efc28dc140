"""kafka-compat status: show brokers, topics, groups, disks and their problems on one screen."""

from __future__ import annotations

import argparse
import io
import json
import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

    from kafka_compat.http_client import Place
    from kafka_compat.status.observer import Observer
    from kafka_compat.status.screen import View

EXIT_WRONG: Final = 1
EXIT_UNREACHABLE: Final = 2
EXIT_USAGE: Final = 2
_INTERRUPTED: Final = 130
_EVERY_S: Final = 2.0
_TIMEOUT_S: Final = 5.0
_CHARTS: Final = "/ui/hour.json"
_BOOTSTRAP: Final = "127.0.0.1:9092"


def add_parser(subparsers: Any) -> None:
    """Add the `status` subcommand to the command line."""
    parser = subparsers.add_parser(
        "status",
        help="show brokers, topics, groups, lag, disks and problems",
        description="Show a Kafka cluster on one screen: problems, brokers, the largest topics, the groups "
        "with the most lag, and disks.",
        epilog="exit codes: 0 if the cluster is healthy; 1 if it has problems; 2 if no broker can be "
        "reached, or the settings are invalid; with --watch, 0 after Ctrl-C",
    )
    help = f"brokers to connect to first (default: bootstrap.servers in the file, or {_BOOTSTRAP})"
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT,…", help=help)
    help = "a client's properties file, with the setting names of Java clients"
    parser.add_argument("--command-config", metavar="FILE", help=help)
    help = f"refresh every SECONDS (default: {_EVERY_S:g}) until Ctrl-C"
    parser.add_argument("--watch", nargs="?", type=_positive, const=_EVERY_S, metavar="SECONDS", help=help)
    parser.add_argument(
        "--json", action="store_true", help="print all data as JSON; with --watch, one object per line"
    )
    parser.add_argument(
        "--rows", type=_count, metavar="N", help="rows per table (default: as many as fit; 10 if piped)"
    )
    help = "web console of a broker, such as http://127.0.0.1:9308: show its charts of the last hour"
    parser.add_argument("--page", metavar="URL", help=help)
    parser.add_argument("--token", metavar="TEXT", help="the broker's kafka.compat.http.token, if set")
    parser.add_argument(
        "--timeout",
        type=_positive,
        metavar="SECONDS",
        help=f"timeout of each request in seconds (default: request.timeout.ms in the file, "
        f"or {_TIMEOUT_S:g} s)",
    )


def run(args: argparse.Namespace) -> int:
    """Show the cluster's status, and return the exit code."""
    from kafka_compat.client.connection_settings import WrongSettings

    try:
        observer = _observer(args)
        args.charts = _charts_page(args)
    except WrongSettings as error:
        print(f"kafka-compat: {error}", file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        reason = error.strerror or error
        print(f"kafka-compat: cannot read {args.command_config}: {reason}", file=sys.stderr)
        return EXIT_USAGE
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Replace characters that the terminal cannot show, because names may contain them.
        sys.stdout.reconfigure(errors="replace")
    try:
        code = _shown(observer, args) if args.watch is None else _watched(observer, args)
        sys.stdout.flush()
    except WrongSettings as error:
        print(f"kafka-compat: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code


def _observer(args: argparse.Namespace) -> Observer:
    from kafka_compat.client.cluster import Cluster
    from kafka_compat.client.connection_settings import read_settings
    from kafka_compat.status.observer import Observer

    settings = {"request.timeout.ms": str(int(_TIMEOUT_S * 1000))}
    settings |= read_settings(args.command_config) if args.command_config else {}
    if args.timeout is not None:
        settings["request.timeout.ms"] = str(max(1, int(args.timeout * 1000)))
    bootstrap = args.bootstrap_server or settings.get("bootstrap.servers", _BOOTSTRAP)
    return Observer(Cluster(bootstrap, settings, client_id="kafka-compat-status"))


def _charts_page(args: argparse.Namespace) -> Place | None:
    """Return the address of the charts, or None without --page. Raises WrongSettings if it is invalid."""
    if args.page is None:
        return None
    from kafka_compat.client.connection_settings import WrongSettings
    from kafka_compat.http_client import place

    try:
        return place(args.page).below(_CHARTS)
    except ValueError as error:
        text = f"--page {args.page}: {error}; expected a URL such as http://127.0.0.1:9308"
        raise WrongSettings(text) from None


def _with_charts(view: View, args: argparse.Namespace) -> View:
    """Return the view with the charts of the web console in --page."""
    if args.charts is None:
        return view
    from kafka_compat.http_client import Unreachable, request
    from kafka_compat.status.observed_hour import rows

    headers = {} if args.token is None else {"Authorization": f"Bearer {args.token}"}
    try:
        response = request(args.charts, "GET", None, headers, args.timeout or _TIMEOUT_S)
        if response.status != 200:
            raise ValueError(f"HTTP {response.status}: {response.body[:200].decode(errors='replace')}")
        told = json.loads(response.body)
        charts = [*told["charts"], *told["groups"]]
        rows(charts, 1)
    except (Unreachable, ValueError, KeyError, TypeError) as error:
        return view._replace(hour_unknown=f"charts of {args.page}: {error}")
    return view._replace(hour=charts)


def _shown(observer: Observer, args: argparse.Namespace) -> int:
    from kafka_compat.status.observer import Unreachable
    from kafka_compat.status.rules import problems

    try:
        snapshot = observer.observe()
    except Unreachable as error:
        if args.json:
            from kafka_compat.status.as_json import failure

            print(json.dumps(failure(str(error)), indent=2))
        print(f"kafka-compat: no broker can be reached: {error}", file=sys.stderr)
        print(
            "kafka-compat: start the broker, or give its address with --bootstrap-server; run "
            "`kafka-compat doctor` to find the step that fails and its remedy",
            file=sys.stderr,
        )
        return EXIT_UNREACHABLE
    wrong = problems(snapshot)
    if args.json:
        from kafka_compat.status.as_json import as_json

        print(json.dumps(as_json(snapshot, wrong), indent=2))
    else:
        from kafka_compat.status.screen import View, draw

        console = _console()
        console.print(draw(_with_charts(View(snapshot, wrong), args), console, args.rows))
    return EXIT_WRONG if wrong else 0


# --- continuous display


def _watched(observer: Observer, args: argparse.Namespace) -> int:
    # Handle SIGTERM like Ctrl-C, so that the terminal is restored.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if args.json:
            _as_lines(observer, args.watch)
        else:
            _on_screen(observer, args)
    except KeyboardInterrupt:
        pass
    return 0


def _as_lines(observer: Observer, every_s: float) -> None:
    from kafka_compat.status.as_json import as_json, failure

    for view in _views(observer, every_s):
        if view.snapshot is None or view.stale is not None:
            shown = failure(view.stale or "")
        else:
            shown = as_json(view.snapshot, view.problems, view.rates)
        print(json.dumps(shown), flush=True)


def _on_screen(observer: Observer, args: argparse.Namespace) -> None:
    from rich.console import Group
    from rich.live import Live

    from kafka_compat.status.screen import draw

    console = _console()
    if not console.is_terminal or console.is_dumb_terminal:
        for view in _charted_views(observer, args):
            console.print(draw(view, console, args.rows))
            console.print()
            sys.stdout.flush()
        return
    last = Group()
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for view in _charted_views(observer, args):
                last = Group(draw(view, console, args.rows))
                live.update(last, refresh=True)
    finally:
        # Print the last status on the restored screen.
        console.print(last)


def _charted_views(observer: Observer, args: argparse.Namespace) -> Iterator[View]:
    """Yield views with charts: those of the web console in --page, or those of the snapshots so far."""
    from kafka_compat.status.observed_hour import ObservedHour

    observed = ObservedHour()
    for view in _views(observer, args.watch):
        if args.charts is not None:
            yield _with_charts(view, args)
            continue
        if view.snapshot is not None and view.stale is None:
            observed.add(view.snapshot, view.rates)
        yield view._replace(hour=observed.charts())


def _views(observer: Observer, every_s: float) -> Iterator[View]:
    """Yield views of snapshots, endlessly. If a snapshot fails, yield the previous view with the error."""
    from kafka_compat.status.observer import Unreachable
    from kafka_compat.status.rules import problems
    from kafka_compat.status.screen import View
    from kafka_compat.status.snapshot import Snapshot, rates

    before: Snapshot | None = None
    view = View(None)
    while True:
        began_s = time.monotonic()
        try:
            now = observer.observe()
        except Unreachable as error:
            view = view._replace(stale=str(error), every_s=every_s)
        else:
            view = View(now, problems(now), rates(before, now), every_s=every_s)
            before = now
        yield view
        time.sleep(max(0.0, began_s + every_s - time.monotonic()))


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, emoji=False, markup=False)


# --- arguments


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not a duration; expected seconds, more than 0")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a valid number of rows; expected 1 or more")
    return int(text)
