"""kafka-compat pipeline latest."""

import argparse
from typing import Any

from kafka_compat.cli.pipelines import common

HELP = "keep a table with the latest record of each key"
DESCRIPTION = """\
Keep DIR/latest, a Parquet table with the latest record of each key of a changelog topic; records without
value delete. Run again, it goes on where it stopped; read from the beginning, it gives the same table."""
EPILOG = """\
exit codes: 0 up to date; 1 Spark or Kafka failed in mid-run, run again to go on; 2 nothing was started;
3 records are gone from the topic that were to come next"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job's own arguments."""
    common.add_stream(parser)


def run_job(args: argparse.Namespace) -> Any:
    """Run it; the report. Raises PipelineError."""
    from kafka_compat.pipelines.latest import run_latest

    return run_latest(common.stream_job(args))
