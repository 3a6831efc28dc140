"""The jobs of `kafka-compat pipeline` that read topics as streams: their arguments, and how to run them."""

import argparse
from typing import Any

from kafka_compat.cli import pipeline_arguments as common
from kafka_compat.cli import pipeline_decoding as decoding
from kafka_compat.cli.arguments import add_several
from kafka_compat.cli.pipeline_job import Job, exit_codes

_WINDOWS_EXAMPLE = (
    "example: --schema 'carrier STRING, distance DOUBLE' --window 1h --group-by carrier --sum distance"
)


# --- archive


def _archive_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_stream(parser, batch=1_000_000)
    help = "continue even if Kafka deleted records before they were archived"
    parser.add_argument("--accept-loss", action="store_true", help=help)
    decoding.add_decoding(parser)
    common.add_table(parser)


def _run_archive(args: argparse.Namespace) -> Any:
    from kafka_compat.pipelines.archive import ArchiveJob, run_archive

    settings, decode = common.stream_settings(args), decoding.decode_settings(args)
    table = {"compact_every": args.compact_every, "keep_versions_ms": args.keep_versions}
    return run_archive(
        ArchiveJob(**settings, accept_loss=args.accept_loss, decode=decode, format=args.format, **table)
    )


# --- copy


def _copy_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_stream(parser)
    parser.add_argument("--to-topic", metavar="T", help="topic to write to (default: each topic's own name)")
    common.add_target(parser)
    parser.add_argument(
        "--group", metavar="G", help="consumer group for the offsets of the job (default: one per job)"
    )


def _run_copy(args: argparse.Namespace) -> Any:
    from kafka_compat.pipelines.copy import CopyJob, run_copy

    source = common.stream_job(args)
    return run_copy(CopyJob(source, args.to_topic, args.target, args.target_option, args.create, args.group))


# --- dedupe


def _dedupe_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_stream(parser)
    parser.add_argument("--to-topic", required=True, metavar="T", help="topic to write to")
    common.add_length(parser, "--within", "maximum time between duplicates, such as 30s, 15m, 1h or 1d")
    parser.add_argument(
        "--by",
        metavar="ID",
        help="identity of a record: key, value, header:NAME, or an SQL expression over the source's columns "
        "(default: key and value)",
    )
    common.add_target(parser)


def _run_dedupe(args: argparse.Namespace) -> Any:
    from kafka_compat.pipelines.dedupe import DedupeJob, run_dedupe

    source, target = common.stream_job(args), (args.target, args.target_option, args.create)
    return run_dedupe(DedupeJob(source, args.to_topic, args.within, args.by, *target))


# --- latest


def _latest_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_stream(parser)
    decoding.add_decoding(parser)


def _run_latest(args: argparse.Namespace) -> Any:
    from kafka_compat.pipelines.latest import run_latest

    return run_latest(common.stream_job(args), decoding.decode_settings(args))


# --- mirror


def _mirror_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_stream(parser)
    parser.add_argument("--name", required=True, help="source cluster's name, added to records as a header")
    parser.add_argument("--target", required=True, metavar="HOST:PORT[,...]", help="cluster to write to")
    parser.add_argument("--target-name", required=True, metavar="NAME", help="name of the target cluster")
    common.add_target_options(parser)


def _run_mirror(args: argparse.Namespace) -> Any:
    from kafka_compat.pipelines.mirror import MirrorJob, run_mirror

    source = common.stream_job(args)
    return run_mirror(
        MirrorJob(source, args.name, args.target, args.target_name, args.target_option, args.create)
    )


# --- windows


def _windows_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_stream(parser)
    parser.add_argument("--to-topic", required=True, metavar="T", help="topic for results")
    parser.add_argument("--dead-letter-topic", required=True, metavar="T", help="topic for invalid rows")
    parser.add_argument(
        "--schema", help="columns of the record values, as an SQL schema; not needed with --schema-registry"
    )
    parser.add_argument(
        "--format",
        "--value-format",
        choices=("json", "csv", "avro", "protobuf"),
        default="json",
        help="format of record values (default: json); avro and protobuf need --schema-registry",
    )
    decoding.add_registry(parser)
    parser.add_argument(
        "--null", default="", metavar="TEXT", help="text that means null in CSV (default: empty)"
    )
    parser.add_argument(
        "--time", metavar="COLUMN", help="column with the event time (default: the record's timestamp)"
    )
    common.add_length(parser, "--window", "length of a window, such as 30s, 15m, 1h or 1d")
    lateness = "event time that a window stays open after its end (default: 1h)"
    common.add_length(parser, "--lateness", lateness, default_ms=3_600_000)
    for name, what in (
        ("group-by", "count by this column"),
        ("sum", "sum of this column"),
        ("min", "minimum of this column"),
        ("max", "maximum of this column"),
    ):
        add_several(parser, f"--{name}", "COLUMN", f"{what}; may be repeated")
    check = "condition that valid rows meet, such as distance > 0; may be repeated"
    add_several(parser, "--check", "SQL", check)
    common.add_target(parser)


def _run_windows(args: argparse.Namespace) -> Any:
    from kafka_compat.pipelines.windows import WindowsJob, run_windows
    from kafka_compat.pipelines.windows_rows import WindowQuery

    decode = decoding.windows_settings(args)
    query = WindowQuery(
        schema=args.schema or "",
        window_ms=args.window,
        lateness_ms=args.lateness,
        format=args.format,
        null_text=args.null,
        time=args.time,
        group_by=args.group_by,
        sums=args.sum,
        minima=args.min,
        maxima=args.max,
        checks=args.check,
    )
    source, target = common.stream_job(args), (args.target, args.target_option, args.create)
    return run_windows(WindowsJob(source, query, args.to_topic, args.dead_letter_topic, *target, decode))


STREAMS = {
    "archive": Job(
        "archive topics to Parquet files, Iceberg or Delta tables, each record exactly once",
        """\
Archive topics to DIR/topic_dir=T/day_utc=YYYY-MM-DD/PARTITION-FIRST-LAST.parquet, or with --format to a table
in DIR/table, each record exactly once, even if the job is killed. A new run continues where the last run
stopped.""",
        exit_codes("all archived", "records were deleted before they were archived (see --accept-loss)"),
        _archive_arguments,
        _run_archive,
    ),
    "copy": Job(
        "copy topics to a topic, exactly once, with transactions",
        """\
Copy topics to a topic of the same or another cluster with Kafka's transactions: consumers with
isolation.level=read_committed read each record exactly once, in order and unchanged.""",
        exit_codes("all copied"),
        _copy_arguments,
        _run_copy,
    ),
    "dedupe": Job(
        "copy topics without duplicate records",
        """\
Copy topics to a topic without duplicates: if the timestamps of records with the same ID differ by at most
--within, only the first record is copied. IDs are kept for twice --within. Records that are late by more than
--within are omitted and counted.""",
        exit_codes("all read"),
        _dedupe_arguments,
        _run_dedupe,
    ),
    "latest": Job(
        "maintain a table with the latest record of each key",
        """\
Maintain DIR/latest, a Parquet table with the latest record of each key of a changelog topic; records without
a value delete their key. A new run continues where the last run stopped.""",
        exit_codes("up to date"),
        _latest_arguments,
        _run_latest,
    ),
    "mirror": Job(
        "copy topics from one cluster to another, each record exactly once",
        """\
Copy topics to the same topics and partitions of another cluster, each record exactly once and in order, with
its origin in headers. Records that originate in the target cluster are not sent back.""",
        exit_codes("all mirrored"),
        _mirror_arguments,
        _run_mirror,
    ),
    "windows": Job(
        "count and sum by time window, with a dead-letter topic for invalid rows",
        """\
Count the records of topics by time window and group, and sum columns of their values. Results are written
to a topic, keyed by window and group (the last record of a key counts). Invalid rows are written unchanged
to a dead-letter topic, with the reason in the header kafka-compat-reason.""",
        f"{_WINDOWS_EXAMPLE}\n\n{exit_codes('all read')}",
        _windows_arguments,
        _run_windows,
    ),
}
