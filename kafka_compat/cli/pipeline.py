"""kafka-compat pipeline NAME: run a Spark job."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kafka_compat.cli import pipeline_arguments as common
from kafka_compat.cli import pipeline_decoding as decoding
from kafka_compat.cli import pipeline_flow as flow
from kafka_compat.cli.arguments import add_several

_WINDOWS_EXAMPLE = (
    "example: --schema 'carrier STRING, distance DOUBLE' --window 1h --group-by carrier --sum distance"
)
_DELETED = "the next records have been deleted from the topic"


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
        print(f"kafka-compat pipeline {args.pipeline}: {error}", file=sys.stderr)
        hint = error.hint + (spark_output.kept() if isinstance(error, JobFailed) else "")
        if hint:
            print(hint.strip(), file=sys.stderr)
        return error.exit_code
    print(json.dumps(report.as_json(), indent=2) if args.json else report.as_text())
    return int(report.exit_code)


def _exit_codes(done: str, lost: str | None = _DELETED) -> str:
    """Return a help epilog with the meaning of exit codes 0 and, for a job that reads topics, 3."""
    codes = f"exit codes: 0 {done}; 1 Spark or Kafka failed (run again to continue); 2 nothing was started"
    return codes if lost is None else f"{codes};\n3 {lost}"


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


# --- audit


def _audit_arguments(parser: argparse.ArgumentParser) -> None:
    help = "name and location of a tier; may be repeated"
    parser.add_argument("--tier", action="append", required=True, metavar="NAME=PLACE", help=help)
    common.add_length(
        parser, "--bucket", "length of a bucket, such as 15m, 1h or 1d (default: 1h)", default_ms=3_600_000
    )
    common.add_times(parser)
    help = "compare the totals of all partitions, for tiers with different numbers of partitions"
    parser.add_argument("--all-partitions", action="store_true", help=help)
    help = "for `header` tiers: header with PRODUCER:N, where N counts the producer's records from 0"
    parser.add_argument("--sequence-header", default="kafka-compat-sequence", metavar="NAME", help=help)
    common.add_plot(parser)
    common.add_kafka_options(
        parser, "property of Kafka's consumer (security.protocol=SSL) or option of Spark's Kafka source"
    )
    common.add_spark(parser)


def _run_audit(args: argparse.Namespace) -> Any:
    from kafka_compat.pipelines.audit import AuditJob, run_audit

    return run_audit(
        AuditJob(
            tiers=[_tier(text) for text in args.tier],
            sequence_header=args.sequence_header,
            bucket_ms=args.bucket,
            since_ms=args.since,
            until_ms=args.until,
            by_partition=not args.all_partitions,
            kafka_options=common.given_options(args),
            plot=args.plot,
            command=common.command(args),
            spark=common.spark_settings(args),
        )
    )


def _tier(text: str) -> Any:
    from kafka_compat.pipelines.audit import Tier
    from kafka_compat.pipelines.errors import NotStarted

    name, _, rest = text.partition("=")
    kind, _, place = rest.partition(":")
    if kind == "counts" and place:
        return Tier(name, kind, place)
    folder, slash, topic = place.rpartition("/")
    if kind not in ("kafka", "header", "archive") or not (slash and folder and topic):
        raise NotStarted(
            f"--tier {text} is not a tier.",
            "NAME=kafka:HOST:PORT/TOPIC, NAME=header:HOST:PORT/TOPIC, NAME=archive:DIR/TOPIC "
            "or NAME=counts:FILE",
        )
    return Tier(name, kind, folder, topic)


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


# --- lag


def _lag_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_cluster(parser)
    parser.add_argument(
        "--checkpoint", required=True, type=Path, metavar="DIR", help="checkpointLocation of the query"
    )
    parser.add_argument("--group", required=True, metavar="G", help="consumer group to commit offsets for")
    common.add_continuous(parser, 5, "commits")
    common.add_kafka_options(
        parser, "property of librdkafka, which commits the offsets (security.protocol=SSL); may be repeated"
    )


def _run_lag(args: argparse.Namespace) -> Any:
    from kafka_compat.pipelines.lag import LagJob, run_lag

    options, interval_s = common.given_options(args, librdkafka=True), common.interval_s(args)
    return run_lag(LagJob(args.bootstrap_server, args.checkpoint, args.group, options, interval_s))


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


# --- replay


def _replay_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="directory", required=True, type=Path, metavar="DIR", help="directory of the archive"
    )
    common.add_cluster(parser, "the cluster to write to")
    parser.add_argument("--topic", action="append", metavar="T", help="topic of the archive (default: all)")
    parser.add_argument("--to-topic", metavar="T", help="topic to write to (default: each topic's own name)")
    help = "offsets of partition P; FIRST or LAST may be omitted (3:100-, 0:-99); may be repeated"
    add_several(parser, "--offsets", "P:FIRST-LAST", help, type=_offsets)
    common.add_times(parser)
    parser.add_argument("--dry-run", action="store_true", help="count the records without writing them")
    parser.add_argument(
        "--create", action="store_true", help="create missing topics with retention.ms=-1 to keep old records"
    )
    parser.add_argument("--again", action="store_true", help="repeat a replay that is already complete")
    parser.add_argument(
        "--state", type=Path, metavar="DIR", help="the job's directory (default: in the archive)"
    )
    common.add_kafka_options(
        parser, "property of librdkafka's producer (security.protocol=SSL); may be repeated"
    )
    common.add_batch(parser)
    common.add_spark(parser)


def _run_replay(args: argparse.Namespace) -> Any:
    from kafka_compat.pipelines.replay import ReplayJob, run_replay

    return run_replay(
        ReplayJob(
            directory=args.directory,
            bootstrap_servers=args.bootstrap_server,
            topics=common.topics_of(args),
            to_topic=args.to_topic,
            offsets=dict(args.offsets),
            since_ms=args.since,
            until_ms=args.until,
            kafka_options=common.given_options(args, librdkafka=True),
            create=args.create,
            dry_run=args.dry_run,
            again=args.again,
            state=args.state,
            offsets_per_batch=args.offsets_per_batch,
            spark=common.spark_settings(args),
        )
    )


def _offsets(text: str) -> tuple[int, tuple[int | None, int | None]]:
    """Parse P:FIRST-LAST into (P, (FIRST, LAST + 1)). An omitted bound is None."""
    partition, colon, both = text.partition(":")
    first, dash, last = both.partition("-")
    try:
        if not colon or not dash:
            raise ValueError
        return int(partition), (int(first) if first else None, int(last) + 1 if last else None)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not P:FIRST-LAST") from None


# --- report


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    help = "data directory (one of log.dirs); may be repeated"
    parser.add_argument("--log-dir", action="append", required=True, type=Path, metavar="DIR", help=help)
    parser.add_argument("--topic", action="append", metavar="T", help="topic; may be repeated (default: all)")
    retention = "the topics' retention.ms, such as 12h or 7d (default: 7d)"
    common.add_length(parser, "--retention", retention, default_ms=7 * 86_400_000)
    parser.add_argument("--retention-bytes", type=int, help="the topics' retention.bytes (default: no limit)")
    parser.add_argument(
        "--hot-keys", type=int, default=10, help="number of keys to list per topic (default: 10)"
    )
    common.add_plot(parser)
    common.add_spark(parser, connector=False)


def _run_report(args: argparse.Namespace) -> Any:
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
            spark=common.spark_settings(args),
        )
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


class Job(NamedTuple):
    """A job: its help texts, the function that adds its arguments, and the function that runs it. `run`
    returns the report, or raises PipelineError.
    """

    help: str
    description: str
    epilog: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], Any]


JOBS = {
    "archive": Job(
        "archive topics to Parquet files, Iceberg or Delta tables, each record exactly once",
        """\
Archive topics to DIR/topic_dir=T/day_utc=YYYY-MM-DD/PARTITION-FIRST-LAST.parquet, or with --format to a table
in DIR/table, each record exactly once, even if the job is killed. A new run continues where the last run
stopped.""",
        _exit_codes("all archived", "records were deleted before they were archived (see --accept-loss)"),
        _archive_arguments,
        _run_archive,
    ),
    "audit": Job(
        "compare the record counts of brokers, archives, mirrors and producers, hour by hour",
        """\
Count records per partition and hour in every tier, and compare the counts with the first tier. Tiers:
  NAME=kafka:HOST:PORT/TOPIC    a topic, up to its end when the audit starts
  NAME=archive:DIR/TOPIC        a topic in the directory of `pipeline archive`
  NAME=header:HOST:PORT/TOPIC   the counts in the header that producers set
  NAME=counts:FILE              a producer's counts: CSV with partition, time_ms, rows""",
        """\
exit codes: 0 all tiers match; 1 records are lost, duplicated or changed, or a tier could not be read
completely; 2 nothing was started""",
        _audit_arguments,
        _run_audit,
    ),
    "copy": Job(
        "copy topics to a topic, exactly once, with transactions",
        """\
Copy topics to a topic of the same or another cluster with Kafka's transactions: consumers with
isolation.level=read_committed read each record exactly once, in order and unchanged.""",
        _exit_codes("all copied"),
        _copy_arguments,
        _run_copy,
    ),
    "dedupe": Job(
        "copy topics without duplicate records",
        """\
Copy topics to a topic without duplicates: if the timestamps of records with the same ID differ by at most
--within, only the first record is copied. IDs are kept for twice --within. Records that are late by more than
--within are omitted and counted.""",
        _exit_codes("all read"),
        _dedupe_arguments,
        _run_dedupe,
    ),
    "lag": Job(
        "show a streaming query's lag to Kafka's tools, as a consumer group",
        """\
Commit the position of a Spark streaming query, read from its checkpoint, to a consumer group, so that
kafka-consumer-groups and lag exporters show its lag. Spark never resumes from the group. Needs no Java.""",
        "exit codes: 0 committed; 1 the commit failed; 2 nothing was started",
        _lag_arguments,
        _run_lag,
    ),
    "latest": Job(
        "maintain a table with the latest record of each key",
        """\
Maintain DIR/latest, a Parquet table with the latest record of each key of a changelog topic; records without
a value delete their key. A new run continues where the last run stopped.""",
        _exit_codes("up to date"),
        _latest_arguments,
        _run_latest,
    ),
    "mirror": Job(
        "copy topics from one cluster to another, each record exactly once",
        """\
Copy topics to the same topics and partitions of another cluster, each record exactly once and in order, with
its origin in headers. Records that originate in the target cluster are not sent back.""",
        _exit_codes("all mirrored"),
        _mirror_arguments,
        _run_mirror,
    ),
    "replay": Job(
        "write the records of an archive to topics, exactly once",
        """\
Write the records of an archive to topics with their key, value, headers, timestamp, partition and order, and
with their origin in headers. Each record is written exactly once, even if the job is killed and rerun.""",
        _exit_codes("all replayed", None),
        _replay_arguments,
        _run_replay,
    ),
    "report": Job(
        "analyze a broker's data directory: skew, hot keys, sizes, compression, retention",
        """\
Read a broker's data directory without the broker, and report the distribution of records over partitions and
keys, record sizes, compression, and the records that retention will delete. If the broker is running or was
killed, its directory is read up to the checkpointed high watermarks.""",
        "exit codes: 0 read; 1 a segment is broken, or Spark failed; 2 nothing was started",
        _report_arguments,
        _run_report,
    ),
    "windows": Job(
        "count and sum by time window, with a dead-letter topic for invalid rows",
        """\
Count the records of topics by time window and group, and sum columns of their values. Results are written
to a topic, keyed by window and group (the last record of a key counts). Invalid rows are written unchanged
to a dead-letter topic, with the reason in the header kafka-compat-reason.""",
        f"{_WINDOWS_EXAMPLE}\n\n{_exit_codes('all read')}",
        _windows_arguments,
        _run_windows,
    ),
}
