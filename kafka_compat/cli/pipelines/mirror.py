"""kafka-compat pipeline mirror."""

import argparse
from typing import Any

from kafka_compat.cli.pipelines import common

HELP = "copy topics from one cluster to another, each record exactly once"
DESCRIPTION = """\
Copy topics to the same topics and partitions of another cluster, each record exactly once and in order, with
its origin in headers. Records that came from there are not sent back."""
EPILOG = """\
exit codes: 0 all mirrored; 1 Spark or Kafka failed in mid-run, run again to go on; 2 nothing was started;
3 records are gone from the topic that were to come next"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job's own arguments."""
    common.add_stream(parser)
    parser.add_argument("--name", required=True, help="the name of the cluster that is read, for headers")
    parser.add_argument(
        "--target", required=True, metavar="HOST:PORT[,...]", help="the cluster that is written to"
    )
    parser.add_argument("--target-name", required=True, metavar="NAME", help="its name")
    common.add_target(parser)


def run_job(args: argparse.Namespace) -> Any:
    """Run it; the report. Raises PipelineError."""
    from kafka_compat.pipelines.mirror import MirrorJob, run_mirror

    source = common.stream_job(args)
    return run_mirror(
        MirrorJob(source, args.name, args.target, args.target_name, args.target_option, args.create)
    )
