"""Arguments that several jobs of `kafka-compat pipeline` share."""

import argparse
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafka_compat.cli.arguments import add_several

_SECRET = re.compile(
    r"^((?:--[a-z-]+=)?[\w.]*(?:password|secret|jaas|token|credential|\.key|\.pem)[\w.]*)=.*", re.I | re.S
)
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def add_cluster(parser: argparse.ArgumentParser, help: str = "any Kafka cluster") -> None:
    """Add --bootstrap-server."""
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT[,...]", help=help)


def add_kafka_options(parser: argparse.ArgumentParser, help: str) -> None:
    """Add --kafka-option, and --command-config for secrets, which must not appear in a process list."""
    add_several(parser, "--kafka-option", "NAME=VALUE", help)
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="a client's properties file, with the setting names of Java clients; "
        "--kafka-option overrides the file",
    )


def given_options(args: argparse.Namespace, *, librdkafka: bool = False) -> list[str]:
    """Return the options in the file, followed by those on the command line, each as name=value. With
    `librdkafka`, the file's options are renamed to librdkafka's. Raises NotStarted if the file is unreadable.
    """
    if args.command_config is None:
        return list(args.kafka_option)
    from kafka_compat.client.connection_settings import WrongSettings, read_settings
    from kafka_compat.pipelines.errors import NotStarted
    from kafka_compat.pipelines.kafka_options import producer_properties

    try:
        settings = read_settings(args.command_config)
    except (OSError, WrongSettings) as error:
        reason = getattr(error, "strerror", None) or error
        raise NotStarted(f"--command-config {args.command_config} cannot be read: {reason}.") from None
    settings.pop("bootstrap.servers", None)
    named = producer_properties(settings) if librdkafka else settings
    return [*(f"{name}={value}" for name, value in named.items()), *args.kafka_option]


def add_length(
    parser: argparse.ArgumentParser, name: str, help: str, *, default_ms: int | None = None
) -> None:
    """Add a duration argument, which is required if it has no default."""
    required = default_ms is None
    parser.add_argument(
        name, type=length_ms, metavar="LENGTH", help=help, required=required, default=default_ms
    )


def add_topics(parser: argparse.ArgumentParser) -> None:
    """Add --topic, which may be repeated, and --topic-pattern."""
    topics = parser.add_mutually_exclusive_group(required=True)
    topics.add_argument("--topic", action="append", metavar="T", help="topic to read; may be repeated")
    topics.add_argument(
        "--topic-pattern", metavar="REGEX", help="regular expression that must match a topic's full name"
    )


def topics_of(args: argparse.Namespace) -> list[str]:
    """Return the topics in the --topic arguments, which are split at commas."""
    return [name for given in args.topic or [] for name in given.split(",") if name]


def add_continuous(parser: argparse.ArgumentParser, interval_s: float, between: str) -> None:
    """Add --continuous and --interval-s. `between` completes the help text `seconds between …`."""
    parser.add_argument("--continuous", action="store_true", help="run until SIGINT or SIGTERM")
    help = f"seconds between {between} (default: {interval_s:g})"
    parser.add_argument("--interval-s", type=float, default=interval_s, help=help)


def interval_s(args: argparse.Namespace) -> float | None:
    """Return the value of --interval-s, or None without --continuous."""
    return args.interval_s if args.continuous else None


def add_batch(parser: argparse.ArgumentParser, default: int = 200_000) -> None:
    """Add --offsets-per-batch."""
    help = f"maximum number of offsets in a batch (default: {default})"
    parser.add_argument("--offsets-per-batch", type=int, default=default, help=help)


def add_times(parser: argparse.ArgumentParser) -> None:
    """Add --since and --until."""
    help = "start time, as 2013-01-31T12:00:00Z or in milliseconds since the epoch"
    parser.add_argument("--since", type=millis, metavar="TIME", help=help)
    parser.add_argument(
        "--until", type=millis, metavar="TIME", help="end time (exclusive), in the format of --since"
    )


def add_plot(parser: argparse.ArgumentParser) -> None:
    """Add --plot."""
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="also write charts to FILE.png and FILE.html"
    )


def spark_settings(args: argparse.Namespace) -> Any:
    """Convert the arguments of `add_spark` to SparkSettings."""
    from kafka_compat.pipelines.session import SparkSettings

    return SparkSettings(args.master, getattr(args, "jars", None), args.driver_memory, args.verbose)


def add_spark(parser: argparse.ArgumentParser, *, connector: bool = True) -> None:
    """Add --master, --driver-memory and, for jobs that use Spark's Kafka connector, --jars."""
    parser.add_argument("--master", default="local[*]", help="Spark's master URL (default: local[*])")
    parser.add_argument("--driver-memory", default="1g", help="memory for Spark's driver (default: 1g)")
    if connector:
        parser.add_argument(
            "--jars",
            type=Path,
            metavar="DIR",
            help="directory of jars from `kafka-compat spark jars` (default: download from Maven Central)",
        )


def millis(text: str) -> int:
    """Convert an ISO 8601 time (UTC unless it has an offset) or a number to milliseconds since 1970."""
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is neither a time like 2013-01-31T12:00Z nor a number"
        ) from None
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


def add_stream(parser: argparse.ArgumentParser, *, batch: int = 200_000) -> None:
    """Add the arguments that all streaming jobs share. `batch` is the default of --offsets-per-batch."""
    add_cluster(parser)
    add_kafka_options(
        parser,
        "property of Kafka's consumer (security.protocol=SSL) or option of Spark's Kafka source "
        "(minPartitions=8); may be repeated",
    )
    add_topics(parser)
    help = "the job's directory; with a Spark cluster, all executors must have access to it"
    parser.add_argument("--to", required=True, type=Path, metavar="DIR", help=help)
    add_continuous(parser, 10, "batches of --continuous")
    add_batch(parser, batch)
    add_spark(parser)


def stream_job(args: argparse.Namespace) -> Any:
    """Convert the arguments of `add_stream` to a StreamJob."""
    from kafka_compat.pipelines.stream_job import StreamJob

    return StreamJob(**stream_settings(args))


def stream_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the values of the arguments of `add_stream`, keyed by the field names of StreamJob."""
    return {
        "bootstrap_servers": args.bootstrap_server,
        "directory": args.to,
        "topics": topics_of(args),
        "pattern": args.topic_pattern,
        "kafka_options": given_options(args),
        "offsets_per_batch": args.offsets_per_batch,
        "continuous_interval_s": interval_s(args),
        "spark": spark_settings(args),
    }


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add --format, --compact-every and --keep-versions."""
    help = "parquet files, or an iceberg or delta table in DIR/table (default: parquet)"
    parser.add_argument("--format", choices=["parquet", "iceberg", "delta"], default="parquet", help=help)
    help = "merge a table's small files after every N batches (default: 100; 0: never)"
    parser.add_argument("--compact-every", type=int, metavar="N", default=100, help=help)
    help = "minimum age of versions of a table that are deleted when its files are merged (default: 7d)"
    add_length(parser, "--keep-versions", help, default_ms=7 * 86_400_000)


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add --target, --target-option and --create, which define the cluster to write to."""
    parser.add_argument(
        "--target", metavar="HOST:PORT[,...]", help="cluster to write to (default: the source)"
    )
    add_target_options(parser)


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """Add --target-option and --create."""
    help = "property of librdkafka's producer (security.protocol=SSL); may be repeated"
    add_several(parser, "--target-option", "NAME=VALUE", help)
    help = "create missing topics with retention.ms=-1 to keep old records, and add missing partitions"
    parser.add_argument("--create", action="store_true", help=help)


def command(args: argparse.Namespace) -> str:
    """Return the command line, without passwords, for display in the report."""
    return shlex.join(["kafka-compat", *(_SECRET.sub(r"\1=[hidden]", each) for each in args.line)])


def length_ms(text: str) -> int:
    """Convert a duration such as 30s, 15m, 1h or 1d to milliseconds."""
    try:
        length = int(text[:-1]) * _UNITS_MS[text[-1:]]
        if length <= 0:
            raise ValueError
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{text} is not a duration like 30s, 15m, 1h, 1d") from None
    return length
