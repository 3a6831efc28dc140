"""kafka-compat pipeline lag."""

import argparse
from pathlib import Path
from typing import Any

from kafka_compat.cli.pipelines import common

HELP = "show a streaming query's lag to Kafka's tools, as a consumer group"
DESCRIPTION = """\
Commit the position of a Spark streaming query, read from its checkpoint, to a consumer group, so that
kafka-consumer-groups and lag exporters show it. Spark never resumes from the group. Needs no Java."""
EPILOG = """exit codes: 0 committed; 1 the cluster did not take it; 2 nothing was started"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job's own arguments."""
    parser.add_argument(
        "--bootstrap-server", required=True, metavar="HOST:PORT[,...]", help="any Kafka cluster"
    )
    parser.add_argument(
        "--checkpoint", required=True, type=Path, metavar="DIR", help="the query's checkpointLocation"
    )
    parser.add_argument("--group", required=True, metavar="G", help="the group to commit to")
    parser.add_argument("--continuous", action="store_true", help="go on until SIGINT or SIGTERM")
    parser.add_argument("--interval-s", type=float, default=5.0, help="time between commits (5)")
    parser.add_argument(
        "--kafka-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a property of librdkafka, which commits (security.protocol=SSL); several times",
    )
    common.add_command_config(parser)


def run_job(args: argparse.Namespace) -> Any:
    """Run it; the report. Raises PipelineError."""
    from kafka_compat.pipelines.lag import LagJob, run_lag

    return run_lag(
        LagJob(
            args.bootstrap_server,
            args.checkpoint,
            args.group,
            common.given_options(args, librdkafka=True),
            args.interval_s if args.continuous else None,
        )
    )
