"""kafka-compat pipeline NAME: the Spark jobs."""

import argparse
import importlib
import json
import sys
from typing import Any

JOBS = ("archive", "audit", "copy", "dedupe", "lag", "latest", "mirror", "replay", "report", "windows")
"""Each a module of kafka_compat.cli.pipelines."""


def add_parser(subparsers: Any) -> None:
    """Add `pipeline` to the command line."""
    parser = subparsers.add_parser("pipeline", help="run a data pipeline on Spark")
    names = parser.add_subparsers(dest="pipeline", required=True, metavar="NAME")
    for name in JOBS:
        module = _module(name)
        job = names.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION,
            epilog=module.EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(job)
        job.add_argument("--json", action="store_true", help="print the report as JSON")
        job.add_argument("--verbose", action="store_true", help="show Spark's own messages")


def run(args: argparse.Namespace) -> int:
    """Run the job; the exit code of its report, or of its error, which is told on stderr."""
    from kafka_compat.pipelines import spark_output
    from kafka_compat.pipelines.errors import JobFailed, PipelineError

    try:
        report = _module(args.pipeline).run_job(args)
    except PipelineError as error:
        print(f"kafka-compat pipeline {args.pipeline}: {error}", file=sys.stderr)
        hint = error.hint + (spark_output.kept() if isinstance(error, JobFailed) else "")
        if hint:
            print(hint.strip(), file=sys.stderr)
        return error.exit_code
    print(json.dumps(report.as_json(), indent=2) if args.json else report.as_text())
    return int(report.exit_code)


def _module(name: str) -> Any:
    return importlib.import_module(f"kafka_compat.cli.pipelines.{name}")
