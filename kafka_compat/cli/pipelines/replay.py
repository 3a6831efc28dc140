"""kafka-compat pipeline replay."""

import argparse
from pathlib import Path
from typing import Any

from kafka_compat.cli.pipelines import common

HELP = "write an archive's records to a topic again, each exactly once"
DESCRIPTION = """\
Write records of an archive to topics again: key, value, headers, timestamp, partition and order are kept, and
headers tell the origin. Each arrives exactly once, also when the job is killed and run again."""
EPILOG = """\
exit codes: 0 all replayed; 1 Spark or Kafka failed in mid-run, run again to go on; 2 nothing was started"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job's own arguments."""
    parser.add_argument(
        "--from", dest="directory", required=True, type=Path, metavar="DIR", help="the archive"
    )
    parser.add_argument(
        "--bootstrap-server", required=True, metavar="HOST:PORT[,...]", help="the cluster to write to"
    )
    parser.add_argument("--topic", action="append", metavar="T", help="only this topic of the archive")
    parser.add_argument("--to-topic", metavar="T", help="write to this topic (default: the same names)")
    parser.add_argument(
        "--offsets",
        action="append",
        default=[],
        type=_offsets,
        metavar="P:FIRST-LAST",
        help="only these offsets of partition P, either end may be missing (3:100-, 0:-99); several times",
    )
    parser.add_argument(
        "--since", type=common.millis, metavar="TIME", help="2013-01-31T12:00:00Z, or milliseconds"
    )
    parser.add_argument("--until", type=common.millis, metavar="TIME", help="the same; itself not included")
    parser.add_argument("--dry-run", action="store_true", help="count what would be written")
    parser.add_argument(
        "--create", action="store_true", help="create missing topics, with retention.ms=-1 for old timestamps"
    )
    parser.add_argument("--again", action="store_true", help="once more, when all of it was replayed before")
    parser.add_argument(
        "--state", type=Path, metavar="DIR", help="the job's folder (default: in the archive)"
    )
    parser.add_argument(
        "--kafka-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a property of librdkafka, whose producer writes (security.protocol=SSL); several times",
    )
    common.add_command_config(parser)
    parser.add_argument(
        "--offsets-per-batch", type=int, default=200_000, help="upper bound of one batch (200000)"
    )
    common.add_spark(parser)


def run_job(args: argparse.Namespace) -> Any:
    """Run it; the report. Raises PipelineError."""
    from kafka_compat.pipelines.replay import ReplayJob, run_replay

    return run_replay(
        ReplayJob(
            directory=args.directory,
            bootstrap_servers=args.bootstrap_server,
            topics=common.topics_of(args),
            to_topic=args.to_topic,
            offsets=dict(args.offsets),
            since_ms=args.since,
            until_ms=args.until,
            kafka_options=common.given_options(args, librdkafka=True),
            create=args.create,
            dry_run=args.dry_run,
            again=args.again,
            state=args.state,
            offsets_per_batch=args.offsets_per_batch,
            **common.spark_settings(args),
        )
    )


def _offsets(text: str) -> tuple[int, tuple[int | None, int | None]]:
    """P:FIRST-LAST → (P, (FIRST, LAST + 1)), None for a missing end."""
    partition, colon, both = text.partition(":")
    first, dash, last = both.partition("-")
    try:
        if not colon or not dash:
            raise ValueError
        return int(partition), (int(first) if first else None, int(last) + 1 if last else None)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not P:FIRST-LAST") from None
