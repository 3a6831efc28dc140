"""kafka-compat pipeline windows."""

import argparse
from typing import Any

from kafka_compat.cli.pipelines import common

HELP = "count and sum by windows of time; bad rows to a dead-letter topic"
DESCRIPTION = """\
Count the records of topics by windows of their time and by groups, and sum columns of their values. Results
go to a topic, keyed by window and group (the last record of a key counts); rows that cannot be counted to a
dead-letter topic as they were, with the reason in the header kafka-compat-reason."""
EPILOG = """\
example: --schema 'carrier STRING, distance DOUBLE' --window 1h --group-by carrier --sum distance

exit codes: 0 all read; 1 Spark or Kafka failed in mid-run, run again to go on; 2 nothing was started;
3 records are gone from the topic that were to come next"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job's own arguments."""
    common.add_stream(parser)
    parser.add_argument("--to-topic", required=True, metavar="T", help="results go to this topic")
    parser.add_argument("--dead-letter-topic", required=True, metavar="T", help="bad rows go to this one")
    parser.add_argument("--schema", required=True, help="a value's columns, in SQL's words")
    parser.add_argument("--format", choices=("json", "csv"), default="json", help="of the values (json)")
    parser.add_argument("--null", default="", metavar="TEXT", help="a missing value in CSV (empty)")
    parser.add_argument(
        "--time", metavar="COLUMN", help="the column with the time (default: the record's timestamp)"
    )
    parser.add_argument(
        "--window", required=True, type=common.length_ms, metavar="LENGTH", help="30s, 15m, 1h, 1d"
    )
    parser.add_argument(
        "--lateness",
        type=common.length_ms,
        default=3_600_000,
        metavar="LENGTH",
        help="how long behind its end a window stays open, by the latest time seen (1h)",
    )
    for name, what in (
        ("group-by", "count by this column"),
        ("sum", "sum this column up"),
        ("min", "find this column's least value"),
        ("max", "find this column's greatest value"),
    ):
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar="COLUMN", help=f"{what}; several times"
        )
    parser.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="SQL",
        help="a condition that a good row fulfils (distance > 0); several times",
    )
    parser.add_argument(
        "--target", metavar="HOST:PORT[,...]", help="the cluster that is written to (default: the same)"
    )
    common.add_target(parser)


def run_job(args: argparse.Namespace) -> Any:
    """Run it; the report. Raises PipelineError."""
    from kafka_compat.pipelines.windows import WindowsJob, run_windows
    from kafka_compat.pipelines.windows_rows import WindowQuery

    query = WindowQuery(
        schema=args.schema,
        window_ms=args.window,
        lateness_ms=args.lateness,
        format=args.format,
        null_text=args.null,
        time=args.time,
        group_by=args.group_by,
        sums=args.sum,
        minima=args.min,
        maxima=args.max,
        checks=args.check,
    )
    return run_windows(
        WindowsJob(
            common.stream_job(args),
            query,
            args.to_topic,
            args.dead_letter_topic,
            args.target,
            args.target_option,
            args.create,
        )
    )
