"""kafka-compat pipeline archive."""

import argparse
from typing import Any

from kafka_compat.cli.pipelines import common

HELP = "archive topics to Parquet files, each record exactly once"
DESCRIPTION = """\
Archive topics to DIR/topic_dir=T/day_utc=YYYY-MM-DD/PARTITION-FIRST-LAST.parquet, each record exactly once,
also when killed at any moment. Run again, it goes on where it stopped."""
EPILOG = """\
exit codes: 0 all archived; 1 Spark or Kafka failed in mid-run, run again to go on; 2 nothing was started;
3 records are gone from the topic that the archive would need (see --accept-loss)"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job's own arguments."""
    common.add_stream(parser, batch=1_000_000)
    parser.add_argument(
        "--accept-loss",
        action="store_true",
        help="go on after records that Kafka deleted before they were archived",
    )


def run_job(args: argparse.Namespace) -> Any:
    """Run it; the report. Raises PipelineError."""
    from kafka_compat.pipelines.archive import ArchiveJob, run_archive

    return run_archive(ArchiveJob(**common.stream_settings(args), accept_loss=args.accept_loss))
