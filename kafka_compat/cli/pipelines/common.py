"""Arguments that several jobs have."""

import argparse
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_SECRET = re.compile(
    r"^((?:--[a-z-]+=)?[\w.]*(?:password|secret|jaas|token|credential|\.key|\.pem)[\w.]*)=.*", re.I | re.S
)
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """--bootstrap-server and --kafka-option of the cluster that is read."""
    parser.add_argument(
        "--bootstrap-server", required=True, metavar="HOST:PORT[,...]", help="any Kafka cluster"
    )
    parser.add_argument(
        "--kafka-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a property of Kafka's consumer (security.protocol=SSL) or an option of Spark's Kafka source "
        "(minPartitions=8); may be given several times",
    )
    add_command_config(parser)


def add_command_config(parser: argparse.ArgumentParser) -> None:
    """--command-config, for what nobody should read in a list of processes."""
    parser.add_argument(
        "--command-config",
        metavar="FILE",
        help="a client's settings, by the names that Java clients use; --kafka-option wins over it",
    )


def given_options(args: argparse.Namespace, *, librdkafka: bool = False) -> list[str]:
    """Those of the file, then those of the command line, as name=value; with `librdkafka` the file's under
    its names. Raises NotStarted when the file cannot be read.
    """
    if args.command_config is None:
        return list(args.kafka_option)
    from kafka_compat.client.connection_settings import WrongSettings, read_settings
    from kafka_compat.pipelines.client_names import producer_properties
    from kafka_compat.pipelines.errors import NotStarted

    try:
        settings = read_settings(args.command_config)
    except (OSError, WrongSettings) as error:
        reason = getattr(error, "strerror", None) or error
        raise NotStarted(f"--command-config {args.command_config} cannot be read: {reason}.") from None
    settings.pop("bootstrap.servers", None)
    named = producer_properties(settings) if librdkafka else settings
    return [*(f"{name}={value}" for name, value in named.items()), *args.kafka_option]


def add_topics(parser: argparse.ArgumentParser) -> None:
    """--topic, several times, or --topic-pattern."""
    topics = parser.add_mutually_exclusive_group(required=True)
    topics.add_argument("--topic", action="append", metavar="T", help="a topic; may be given several times")
    topics.add_argument("--topic-pattern", metavar="REGEX", help="all topics whose whole name matches")


def topics_of(args: argparse.Namespace) -> list[str]:
    """The names given with --topic, commas split."""
    return [name for given in args.topic or [] for name in given.split(",") if name]


def add_batches(parser: argparse.ArgumentParser, default: int) -> None:
    """--continuous, --interval-s and --offsets-per-batch."""
    parser.add_argument("--continuous", action="store_true", help="go on until SIGINT or SIGTERM")
    parser.add_argument(
        "--interval-s", type=float, default=10.0, help="time between batches of --continuous (10)"
    )
    parser.add_argument(
        "--offsets-per-batch", type=int, default=default, help=f"upper bound of one batch ({default})"
    )


def spark_settings(args: argparse.Namespace) -> dict[str, Any]:
    """What `add_spark` with the connector's jars gave, by the names that jobs have for it."""
    return {
        "master": args.master,
        "jars": args.jars,
        "driver_memory": args.driver_memory,
        "verbose": args.verbose,
    }


def add_spark(parser: argparse.ArgumentParser, *, connector: bool = True) -> None:
    """--master and --driver-memory; and --jars for jobs that use Spark's Kafka connector."""
    parser.add_argument("--master", default="local[*]", help="Spark's master (local[*])")
    parser.add_argument("--driver-memory", default="1g", help="memory of Spark's driver (1g)")
    if connector:
        parser.add_argument(
            "--jars",
            type=Path,
            metavar="DIR",
            help="folder filled by `kafka-compat spark jars DIR` (default: fetched from Maven Central)",
        )


def millis(text: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time, UTC unless it says otherwise, or of a number."""
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
    """What all jobs have that stream from topics with a folder of their own; `batch` bounds a batch."""
    add_cluster(parser)
    add_topics(parser)
    parser.add_argument(
        "--to", required=True, type=Path, metavar="DIR", help="the job's folder, shared with --master"
    )
    add_batches(parser, batch)
    add_spark(parser)


def stream_job(args: argparse.Namespace) -> Any:
    """The StreamJob that the arguments of `add_stream` say."""
    from kafka_compat.pipelines.stream_job import StreamJob

    return StreamJob(**stream_settings(args))


def stream_settings(args: argparse.Namespace) -> dict[str, Any]:
    """What `add_stream` gave, by the names that a StreamJob has for it."""
    return {
        "bootstrap_servers": args.bootstrap_server,
        "directory": args.to,
        "topics": topics_of(args),
        "pattern": args.topic_pattern,
        "kafka_options": given_options(args),
        "offsets_per_batch": args.offsets_per_batch,
        "continuous_interval_s": args.interval_s if args.continuous else None,
        **spark_settings(args),
    }


def add_target(parser: argparse.ArgumentParser) -> None:
    """--target-option and --create, of the cluster that is written to."""
    parser.add_argument(
        "--target-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a property of librdkafka, whose producer writes (security.protocol=SSL); several times",
    )
    parser.add_argument(
        "--create",
        action="store_true",
        help="create missing topics, with retention.ms=-1 for old timestamps, and add missing partitions",
    )


def command(args: argparse.Namespace) -> str:
    """The command as it was given, for whoever sees what it made; without the passwords in it."""
    return shlex.join(["kafka-compat", *(_SECRET.sub(r"\1=[hidden]", each) for each in args.line)])


def length_ms(text: str) -> int:
    """Milliseconds of a length of time like 30s, 15m, 1h, 1d."""
    try:
        length = int(text[:-1]) * _UNITS_MS[text[-1:]]
        if length <= 0:
            raise ValueError
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{text} is not a length like 30s, 15m, 1h, 1d") from None
    return length
