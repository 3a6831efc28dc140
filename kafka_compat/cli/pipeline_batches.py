"""The jobs audit, lag, replay and report of `kafka-compat pipeline`: their arguments, and how to run them."""

import argparse
from pathlib import Path
from typing import Any

from kafka_compat.cli import pipeline_arguments as common
from kafka_compat.cli.arguments import add_several
from kafka_compat.cli.pipeline_job import Job, exit_codes

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


BATCHES = {
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
    "lag": Job(
        "show a streaming query's lag to Kafka's tools, as a consumer group",
        """\
Commit the position of a Spark streaming query, read from its checkpoint, to a consumer group, so that
kafka-consumer-groups and lag exporters show its lag. Spark never resumes from the group. Needs no Java.""",
        "exit codes: 0 committed; 1 the commit failed; 2 nothing was started",
        _lag_arguments,
        _run_lag,
    ),
    "replay": Job(
        "write the records of an archive to topics, exactly once",
        """\
Write the records of an archive to topics with their key, value, headers, timestamp, partition and order, and
with their origin in headers. Each record is written exactly once, even if the job is killed and rerun.""",
        exit_codes("all replayed", None),
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
}
