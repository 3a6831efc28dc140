"""kafka-compat pipeline copy."""

import argparse
from typing import Any

from kafka_compat.cli.pipelines import common

HELP = "copy topics to a topic, exactly once by transactions"
DESCRIPTION = """\
Copy topics to a topic of the same or of another cluster by Kafka's transactions: readers with
isolation.level=read_committed see each record exactly once, in order, with all that it had and no more."""
EPILOG = """\
exit codes: 0 all copied; 1 Spark or Kafka failed in mid-run, run again to go on; 2 nothing was started;
3 records are gone from the topic that were to come next"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job's own arguments."""
    common.add_stream(parser)
    parser.add_argument("--to-topic", metavar="T", help="write to this topic (default: the same names)")
    parser.add_argument(
        "--target", metavar="HOST:PORT[,...]", help="the cluster that is written to (default: the same)"
    )
    common.add_target(parser)
    parser.add_argument(
        "--group", metavar="G", help="the consumer group that holds the job's position (default: by its id)"
    )


def run_job(args: argparse.Namespace) -> Any:
    """Run it; the report. Raises PipelineError."""
    from kafka_compat.pipelines.copy import CopyJob, run_copy

    source = common.stream_job(args)
    return run_copy(CopyJob(source, args.to_topic, args.target, args.target_option, args.create, args.group))
