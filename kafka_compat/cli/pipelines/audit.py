"""kafka-compat pipeline audit."""

import argparse
from pathlib import Path
from typing import Any

from kafka_compat.cli.pipelines import common

HELP = "compare what brokers, archives, mirrors and producers hold, hour by hour"
DESCRIPTION = """\
Count records per partition and hour at every tier, and compare them with the first tier. A tier is one of
  NAME=kafka:HOST:PORT/TOPIC    a topic, up to its end at the start of the audit
  NAME=archive:DIR/TOPIC        a topic in the folder of `pipeline archive`
  NAME=header:HOST:PORT/TOPIC   what producers said in a header that they sent there
  NAME=counts:FILE              what a producer counted: CSV with partition, time_ms, rows"""
EPILOG = """\
exit codes: 0 all tiers hold the same; 1 records are lost, duplicated or changed, or a tier could not be read
to its end; 2 nothing was started"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job's own arguments."""
    parser.add_argument(
        "--tier", action="append", required=True, metavar="NAME=PLACE", help="two or more; see above"
    )
    parser.add_argument(
        "--bucket", type=common.length_ms, default=3_600_000, metavar="LENGTH", help="1h, 15m, 1d (1h)"
    )
    parser.add_argument(
        "--since", type=common.millis, metavar="TIME", help="2013-01-31T12:00:00Z, or milliseconds"
    )
    parser.add_argument("--until", type=common.millis, metavar="TIME", help="the same; itself not included")
    parser.add_argument(
        "--all-partitions",
        action="store_true",
        help="add the partitions up, for tiers with different numbers of them",
    )
    parser.add_argument(
        "--sequence-header",
        default="kafka-compat-sequence",
        metavar="NAME",
        help="the header that tiers of the kind header look at; its value is PRODUCER:N, N counted from 0",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write FILE.png and FILE.html")
    parser.add_argument(
        "--kafka-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a property of Kafka's consumer (security.protocol=SSL) or an option of Spark's Kafka source",
    )
    common.add_command_config(parser)
    common.add_spark(parser)


def run_job(args: argparse.Namespace) -> Any:
    """Run it; the report. Raises PipelineError."""
    from kafka_compat.pipelines.audit import AuditJob, run_audit

    return run_audit(
        AuditJob(
            tiers=[_tier(text) for text in args.tier],
            sequence_header=args.sequence_header,
            bucket_ms=args.bucket,
            since_ms=args.since,
            until_ms=args.until,
            by_partition=not args.all_partitions,
            kafka_options=common.given_options(args),
            plot=args.plot,
            command=common.command(args),
            **common.spark_settings(args),
        )
    )


def _tier(text: str) -> Any:
    from kafka_compat.pipelines.audit import Tier
    from kafka_compat.pipelines.errors import NotStarted

    name, _, rest = text.partition("=")
    kind, _, place = rest.partition(":")
    if kind == "counts" and place:
        return Tier(name, kind, place)
    folder, slash, topic = place.rpartition("/")
    if kind not in ("kafka", "header", "archive") or not (slash and folder and topic):
        raise NotStarted(
            f"--tier {text} is not a tier.",
            "NAME=kafka:HOST:PORT/TOPIC, NAME=header:HOST:PORT/TOPIC, NAME=archive:DIR/TOPIC "
            "or NAME=counts:FILE",
        )
    return Tier(name, kind, folder, topic)
