"""kafka-compat pipeline NAME: the Spark jobs."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

_ARCHIVE_EPILOG = """\
exit codes: 0 all archived; 1 Spark or Kafka failed in mid-run, run again to go on; 2 nothing was started;
3 records are gone from the topic that the archive would need (see --accept-loss)"""


def add_parser(subparsers: Any) -> None:
    """Add `pipeline` to the command line."""
    parser = subparsers.add_parser("pipeline", help="run a data pipeline on Spark")
    jobs = parser.add_subparsers(dest="pipeline", required=True, metavar="NAME")
    archive = jobs.add_parser(
        "archive",
        help="archive topics to Parquet files, each record exactly once",
        description="Archive topics to DIR/topic_dir=T/day_utc=YYYY-MM-DD/PARTITION-FIRST-LAST.parquet, "
        "each record exactly once, also when killed at any moment. Run again, it goes on where it stopped.",
        epilog=_ARCHIVE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    archive.add_argument(
        "--bootstrap-server", required=True, metavar="HOST:PORT[,...]", help="any Kafka cluster"
    )
    topics = archive.add_mutually_exclusive_group(required=True)
    topics.add_argument("--topic", action="append", metavar="T", help="a topic; may be given several times")
    topics.add_argument("--topic-pattern", metavar="REGEX", help="all topics whose whole name matches")
    archive.add_argument("--to", required=True, type=Path, metavar="DIR", help="the archive's folder")
    archive.add_argument(
        "--kafka-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a property of Kafka's consumer (security.protocol=SSL) or an option of Spark's Kafka source "
        "(minPartitions=8); may be given several times",
    )
    archive.add_argument("--continuous", action="store_true", help="go on until SIGINT or SIGTERM")
    archive.add_argument(
        "--interval-s", type=float, default=10.0, help="time between batches of --continuous (10)"
    )
    archive.add_argument(
        "--offsets-per-batch", type=int, default=1_000_000, help="upper bound of one batch (1000000)"
    )
    archive.add_argument(
        "--accept-loss",
        action="store_true",
        help="go on after records that Kafka deleted before they were archived",
    )
    archive.add_argument(
        "--master", default="local[*]", help="Spark's master (local[*]); DIR must be shared with it"
    )
    archive.add_argument("--driver-memory", default="1g", help="memory of Spark's driver (1g)")
    archive.add_argument(
        "--jars",
        type=Path,
        metavar="DIR",
        help="folder filled by `kafka-compat spark jars DIR` (default: fetched from Maven Central)",
    )
    archive.add_argument("--json", action="store_true", help="print the report as JSON")
    archive.add_argument("--verbose", action="store_true", help="show Spark's own messages")


def run(args: argparse.Namespace) -> int:
    """Run the job; 0, or the exit code of its error, which is told on stderr."""
    from kafka_compat.pipelines.archive import ArchiveJob, run_archive
    from kafka_compat.pipelines.errors import PipelineError

    job = ArchiveJob(
        bootstrap_servers=args.bootstrap_server,
        directory=args.to,
        topics=[name for given in args.topic or [] for name in given.split(",") if name],
        pattern=args.topic_pattern,
        kafka_options=args.kafka_option,
        master=args.master,
        jars=args.jars,
        driver_memory=args.driver_memory,
        offsets_per_batch=args.offsets_per_batch,
        continuous_interval_s=args.interval_s if args.continuous else None,
        accept_loss=args.accept_loss,
        verbose=args.verbose,
    )
    try:
        report = run_archive(job)
    except PipelineError as error:
        print(f"kafka-compat pipeline archive: {error}", file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        return error.exit_code
    print(json.dumps(report.as_json(), indent=2) if args.json else report.as_text())
    return 0 if report.complete or args.continuous else 130
