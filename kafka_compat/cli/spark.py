"""kafka-compat spark jars DIR: download Spark's Kafka connector for machines without network access."""

import argparse
import sys
from pathlib import Path
from typing import Any

from kafka_compat.cli.pipeline_errors import print_error


def add_parser(subparsers: Any) -> None:
    """Add the `spark` subcommand to the command line."""
    parser = subparsers.add_parser("spark", help="download Spark's Kafka connector")
    commands = parser.add_subparsers(dest="spark", required=True, metavar="COMMAND")
    jars = commands.add_parser(
        "jars",
        help="download the jars of Spark's Kafka connector",
        description="Download the four jars of Spark's Kafka connector to DIR, in the installed pyspark's "
        "version. The download uses Maven, with the mirrors in ~/.m2/settings.xml, or Ivy if Maven is not "
        "installed. Then pass --jars DIR to the jobs of `kafka-compat pipeline`, or list the jars in "
        "spark.jars.",
    )
    jars.add_argument("directory", type=Path, metavar="DIR")
    help = "also download what `pipeline archive --format iceberg` needs"
    jars.add_argument("--format", choices=["iceberg"], help=help)
    help = "version of Spark, on a machine without pyspark (default: that of the installed pyspark)"
    jars.add_argument("--spark-version", metavar="VERSION", help=help)


def run(args: argparse.Namespace) -> int:
    """Download the jars, and return the exit code: 0, or 2 if the download fails."""
    from kafka_compat.pipelines.environment import copy_jars, named_release, require_iceberg
    from kafka_compat.pipelines.errors import PipelineError

    try:
        release = named_release(args.spark_version)
        iceberg = args.format == "iceberg"
        if iceberg:
            require_iceberg(release)
        tool = copy_jars(args.directory, release, iceberg=iceberg)
    except PipelineError as error:
        return print_error(error, "kafka-compat spark jars")
    print(f"Fetched by {tool}:" if tool else "Already there:", file=sys.stderr)
    for name in release.jars(iceberg=iceberg):
        print(args.directory / name)
    return 0
