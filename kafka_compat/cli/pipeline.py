"""kafka-compat pipeline NAME: run a Spark job."""

import argparse
import json
from typing import Any

from kafka_compat.cli import pipeline_flow as flow
from kafka_compat.cli.pipeline_batches import BATCHES
from kafka_compat.cli.pipeline_errors import print_error
from kafka_compat.cli.pipeline_streams import STREAMS

JOBS = dict(sorted({**STREAMS, **BATCHES}.items()))


def add_parser(subparsers: Any) -> None:
    """Add the `pipeline` subcommand to the command line."""
    parser = subparsers.add_parser("pipeline", help="run a data pipeline on Spark")
    names = parser.add_subparsers(dest="pipeline", required=True, metavar="NAME")
    for name, job in JOBS.items():
        of_job = names.add_parser(
            name,
            help=job.help,
            description=job.description,
            epilog=job.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        job.add_arguments(of_job)
        of_job.add_argument("--json", action="store_true", help="print the report as JSON")
        of_job.add_argument("--verbose", action="store_true", help="print Spark's log")
        help = "stop when standard input ends, for programs that run the job"
        of_job.add_argument("--stop-at-eof", action="store_true", help=help)
    flow.add_run(names)


def run(args: argparse.Namespace) -> int:
    """Run the job, and return its exit code. Print errors on stderr."""
    from kafka_compat.pipelines import spark_output
    from kafka_compat.pipelines.errors import JobFailed, PipelineError

    if args.pipeline == "run":
        return flow.run_flow(args, {name: job.add_arguments for name, job in JOBS.items()})
    if args.stop_at_eof:
        flow.stop_at_eof()
    try:
        report = JOBS[args.pipeline].run(args)
    except PipelineError as error:
        more = spark_output.kept() if isinstance(error, JobFailed) else ""
        return print_error(error, f"kafka-compat pipeline {args.pipeline}", more)
    print(json.dumps(report.as_json(), indent=2) if args.json else report.as_text())
    return int(report.exit_code)
