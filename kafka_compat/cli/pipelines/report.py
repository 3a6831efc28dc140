"""kafka-compat pipeline report."""

import argparse
from pathlib import Path
from typing import Any

from kafka_compat.cli.pipelines import common

HELP = "say what lies in a broker's data folder: skew, hot keys, sizes, compression, retention"
DESCRIPTION = """\
Read a broker's data folder without the broker, and say how records are spread over partitions and keys, how
large they are, how well they are compressed, and what retention will delete. A folder that was not closed in
order, that of a running broker too, is read up to the high watermark in its checkpoint."""
EPILOG = """exit codes: 0 read; 1 a segment is broken, or Spark failed; 2 nothing was started"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job's own arguments."""
    parser.add_argument(
        "--log-dir", action="append", required=True, type=Path, metavar="DIR", help="log.dirs; several times"
    )
    parser.add_argument("--topic", action="append", metavar="T", help="only this topic; several times")
    parser.add_argument(
        "--retention",
        type=common.length_ms,
        default=7 * 86_400_000,
        metavar="LENGTH",
        help="the topics' retention.ms: 12h, 7d (7d)",
    )
    parser.add_argument("--retention-bytes", type=int, help="the topics' retention.bytes (no bound)")
    parser.add_argument("--hot-keys", type=int, default=10, help="how many to list of each topic (10)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write FILE.png and FILE.html")
    common.add_spark(parser, connector=False)


def run_job(args: argparse.Namespace) -> Any:
    """Run it; the report. Raises PipelineError."""
    from kafka_compat.pipelines.report import ReportJob, run_report

    return run_report(
        ReportJob(
            folders=args.log_dir,
            topics=common.topics_of(args),
            retention_ms=args.retention,
            retention_bytes=args.retention_bytes,
            hot_keys=args.hot_keys,
            plot=args.plot,
            command=common.command(args),
            master=args.master,
            driver_memory=args.driver_memory,
            verbose=args.verbose,
        )
    )
