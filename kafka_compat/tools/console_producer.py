"""kafka-console-producer: lines of standard input become records."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafka_compat.tools.admin import dialling, parsed, settings_of, valid_addresses
from kafka_compat.tools.failure import Failure, log, of_client
from kafka_compat.tools.options import Options

if TYPE_CHECKING:
    from kafka_compat.client.cluster import Cluster
    from kafka_compat.client.producer import Producer
    from kafka_compat.tools.line_reader import ReadRecord

CLIENT_ID: Final = "console-producer"
_ALSO: Final = "broker-list="
_RENAMED: Final = {
    "producer-property": "command-property",
    "producer.config": "command-config",
    "property": "reader-property",
}
_OLD_NAME: Final = (
    "Warning: --{old} is deprecated and will be removed in a future version. Use --{new} instead."
)
_OLD_SIZE: Final = (
    "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka 5.0. "
    "Use --batch-size instead."
)
_READERS: Final = (
    "kafka.tools.ConsoleProducer$LineMessageReader",
    "org.apache.kafka.tools.LineMessageReader",
)
_LOGGER: Final = "org.apache.kafka.clients.producer.internals.ErrorLoggingCallback"
_MERGED: Final = {
    "timeout": ("linger.ms", "1000"),
    "request-required-acks": ("acks", "-1"),
    "request-timeout-ms": ("request.timeout.ms", "1500"),
    "message-send-max-retries": ("retries", "3"),
    "retry-backoff-ms": ("retry.backoff.ms", "100"),
    "batch-size": ("batch.size", "16384"),
    "max-partition-memory-bytes": ("batch.size", "16384"),
    "max-block-ms": ("max.block.ms", "60000"),
}
"""Flag -> the producer's setting, and its value unless the setting is given in another way."""
_INTEGERS: Final = {
    "message-send-max-retries": 32,
    "retry-backoff-ms": 64,
    "timeout": 64,
    "request-timeout-ms": 32,
    "metadata-expiry-ms": 64,
    "max-block-ms": 64,
    "max-memory-bytes": 64,
    "batch-size": 32,
    "max-partition-memory-bytes": 32,
    "socket-buffer-size": 32,
}
"""Flags of numbers, and how many bits these may have."""


def run(arguments: list[str]) -> int:
    """The exit code. Raises Failure."""
    from kafka_compat.client.producer import Producer, producer_settings
    from kafka_compat.tools.line_reader import LineReader

    options, names = _options(arguments)
    cluster: Cluster | None = None
    try:
        given = _settings(options, names)
        reader = LineReader(_reader_properties(options, names))
        named = options.value("line-reader")
        if named and named not in _READERS:
            raise Failure("java.lang.ClassNotFoundException", named)
        settings = parsed(producer_settings, given)
        cluster = dialling(bootstrap(options), given, CLIENT_ID, f"Producer clientId={given['client.id']}")
        console = _Console(options.given("topic"), options.has("sync"))
        producer = Producer(cluster, settings, console.settled)
        try:
            _loop(producer, reader.record, console)
        finally:
            producer.flush()
        return 0
    except Failure as failure:
        is_of_flags = failure.kind.startswith("joptsimple.")
        print(f"{failure.message}\n" if is_of_flags else failure.trace, end="", file=sys.stderr)
        return 1
    except Exception as error:
        print(of_client(error).trace, end="", file=sys.stderr)
        return 1
    finally:
        if cluster is not None:
            cluster.close()


def _loop(producer: Producer, record_of: object, console: _Console) -> None:
    from kafka_compat.tools.stdin_lines import lines

    prompt = sys.stdin.isatty() and sys.stdout.isatty()
    if prompt:
        print(">", end="", flush=True)
    for line in lines(producer.wait_s, producer.poll):
        console.send(producer, record_of(line))  # type: ignore[operator]
        if prompt:
            print(">", end="", flush=True)


class _Console:
    """What becomes of records."""

    def __init__(self, topic: str, is_synchronous: bool) -> None:
        self._topic = topic
        self._is_synchronous = is_synchronous

    def send(self, producer: Producer, record: ReadRecord) -> None:
        """Raises Failure, with --sync, when it could not be stored."""
        try:
            producer.send(self._topic, record.key, record.value, record.headers, tag=record)
        except Exception as error:
            self.settled(record, error)
        if self._is_synchronous:
            producer.flush()

    def settled(self, record: ReadRecord, error: Exception | None) -> None:
        """The same."""
        if error is None:
            return
        failure = failure_of_producer(error)
        if self._is_synchronous:
            raise Failure("java.util.concurrent.ExecutionException", str(failure), failure)
        _explain(failure, CLIENT_ID)
        key, value = ("null" if part is None else f"{len(part)} bytes" for part in (record.key, record.value))
        text = (
            f"Error when sending message to topic {self._topic} with key: {key}, value: {value} with error:"
        )
        log("ERROR", text, _LOGGER)
        print(failure.trace, end="", file=sys.stderr)


def failure_of_producer(error: Exception) -> Failure:
    """As `of_client`, for what a producer raises too."""
    from kafka_compat.client.producer import RecordTooLarge

    if isinstance(error, RecordTooLarge):
        return Failure("org.apache.kafka.common.errors.RecordTooLargeException", str(error))
    return of_client(error)


def _explain(failure: Failure, client_id: str) -> None:
    """What Kafka's clients log of topics that cannot be."""
    said, _, topics = (failure.message or "").partition(": ")
    if said == "Invalid topics":
        text = f"[Producer clientId={client_id}] Metadata response reported invalid topics {topics}"
    elif said == "Not authorized to access topics":
        text = f"[Producer clientId={client_id}] Topic authorization failed for topics {topics}"
    else:
        return
    log("ERROR", text, "org.apache.kafka.clients.Metadata")


def _options(arguments: list[str]) -> tuple[Options, dict[str, str]]:
    """With the names by which flags of two names are given."""
    options = Options.or_usage("console-producer", arguments, also=_ALSO)
    options.exit_for_help()
    options.require("topic")
    for old in ("producer.config", "producer-property", "property"):
        options.forbid_together(_RENAMED[old], old)
    names = {new: options.renamed(old, new, _OLD_NAME) for old, new in _RENAMED.items()}
    if options.has("max-partition-memory-bytes"):
        print(_OLD_SIZE)
    if not bootstrap(options).strip():
        options.usage_error("Error while validating the bootstrap address\n")
    if not valid_addresses(bootstrap(options)):
        options.usage_error("Please provide valid host:port like host1:9091,host2:9092\n")
    return options, names


def bootstrap(options: Options) -> str:
    """Where to begin, by the flag or its older name."""
    return options.value("bootstrap-server") or options.given("broker-list")


def _settings(options: Options, names: Mapping[str, str]) -> dict[str, str]:
    settings = settings_of(options, names["command-config"], names["command-property"])
    for flag, bits in _INTEGERS.items():
        options.integer(flag, bits)
    settings["compression.type"] = "none"
    if options.has("compression-codec"):
        settings["compression.type"] = options.value("compression-codec") or "gzip"
    settings.setdefault("client.id", CLIENT_ID)
    for flag, (name, default) in _MERGED.items():
        if options.has(flag):
            settings[name] = options.given(flag)
        else:
            settings.setdefault(name, default)
    return settings


def _reader_properties(options: Options, names: Mapping[str, str]) -> dict[str, str]:
    return settings_of(options, "reader-config", names["reader-property"])
