"""kafka-compat pipeline dedupe."""

import argparse
from typing import Any

from kafka_compat.cli.pipelines import common

HELP = "copy topics without records that repeat others"
DESCRIPTION = """\
Copy topics to a topic, leaving out records that repeat another one: the same id, and timestamps at most
--within apart. The first one stays. Ids are remembered for twice that time; what comes later than --within
behind the latest record is left out and counted."""
EPILOG = """\
exit codes: 0 all read; 1 Spark or Kafka failed in mid-run, run again to go on; 2 nothing was started;
3 records are gone from the topic that were to come next"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job's own arguments."""
    common.add_stream(parser)
    parser.add_argument("--to-topic", required=True, metavar="T", help="write to this topic")
    parser.add_argument(
        "--within", required=True, type=common.length_ms, metavar="LENGTH", help="30s, 15m, 1h, 1d"
    )
    parser.add_argument(
        "--by",
        metavar="ID",
        help="key, value, header:NAME, or an SQL expression over the source's columns "
        "(default: key and value together)",
    )
    parser.add_argument(
        "--target", metavar="HOST:PORT[,...]", help="the cluster that is written to (default: the same)"
    )
    common.add_target(parser)


def run_job(args: argparse.Namespace) -> Any:
    """Run it; the report. Raises PipelineError."""
    from kafka_compat.pipelines.dedupe import DedupeJob, run_dedupe

    return run_dedupe(
        DedupeJob(
            common.stream_job(args),
            args.to_topic,
            args.within,
            args.by,
            args.target,
            args.target_option,
            args.create,
        )
    )
