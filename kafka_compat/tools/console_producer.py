"""kafka-console-producer: produce lines from standard input as records."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.client.cluster import Cluster
from kafka_compat.tools.admin import dialling, parsed, settings_of, valid_addresses
from kafka_compat.tools.failure import Failure, log, of_client
from kafka_compat.tools.options import Options

if TYPE_CHECKING:
    from kafka_compat.client.producer import Producer
    from kafka_compat.storage.records.records import Header

CLIENT_ID: Final = "console-producer"
_ALSO: Final = "broker-list="
_RENAMED: Final = {
    "producer-property": "command-property",
    "producer.config": "command-config",
    "property": "reader-property",
}
_OLD_NAME: Final = "Warning: --{old} is deprecated: use --{new}."
_OLD_SIZE: Final = "Warning: --max-partition-memory-bytes is deprecated: use --batch-size."
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
"""Maps each flag to the producer setting that it overrides, and the setting's default."""
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
"""Maps each flag with an integer argument to the integer's width in bits."""


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code. Raises Failure if a flag is invalid."""
    from kafka_compat.client.producer import Producer, producer_settings

    options, names = _options(arguments)
    cluster: Cluster | None = None
    try:
        given = _settings(options, names)
        reader = LineReader(settings_of(options, "reader-config", names["reader-property"]))
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
    prompt = sys.stdin.isatty() and sys.stdout.isatty()
    if prompt:
        print(">", end="", flush=True)
    for line in lines(producer.wait_s, producer.poll):
        console.send(producer, record_of(line))  # type: ignore[operator]
        if prompt:
            print(">", end="", flush=True)


class _Console:
    """A sender of records that reports errors."""

    def __init__(self, topic: str, is_synchronous: bool) -> None:
        self._topic = topic
        self._is_synchronous = is_synchronous

    def send(self, producer: Producer, record: ReadRecord) -> None:
        """Send a record. With --sync, wait for its response, and raise Failure if it was not stored."""
        try:
            producer.send(self._topic, record.key, record.value, record.headers, tag=record)
        except Exception as error:
            self.settled(record, error)
        if self._is_synchronous:
            producer.flush()

    def settled(self, record: ReadRecord, error: Exception | None) -> None:
        """Report the error of a record, if any. With --sync, raise it as a Failure."""
        if error is None:
            return
        failure = failure_of_producer(error)
        if self._is_synchronous:
            raise Failure("java.util.concurrent.ExecutionException", str(failure), failure)
        _explain(failure, CLIENT_ID)
        key, value = ("null" if part is None else f"{len(part)} bytes" for part in (record.key, record.value))
        text = f"Error when sending a record to topic {self._topic}, key: {key}, value: {value}:"
        log("ERROR", text, _LOGGER)
        print(failure.trace, end="", file=sys.stderr)


def failure_of_producer(error: Exception) -> Failure:
    """Convert an exception from the producer or its client to a Failure."""
    from kafka_compat.client.producer import RecordTooLarge

    if isinstance(error, RecordTooLarge):
        return Failure("org.apache.kafka.common.errors.RecordTooLargeException", str(error))
    return of_client(error)


def _explain(failure: Failure, client_id: str) -> None:
    """Log the error that Kafka's clients log about invalid or unauthorized topics."""
    said, _, topics = (failure.message or "").partition(": ")
    if said == "Invalid topics":
        text = f"[Producer clientId={client_id}] Metadata response reported invalid topics {topics}"
    elif said == "Not authorized to access topics":
        text = f"[Producer clientId={client_id}] Topic authorization failed for topics {topics}"
    else:
        return
    log("ERROR", text, "org.apache.kafka.clients.Metadata")


def _options(arguments: list[str]) -> tuple[Options, dict[str, str]]:
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
        options.usage_error("Expected HOST:PORT, several separated by commas\n")
    return options, names


def bootstrap(options: Options) -> str:
    """Return the bootstrap servers from --bootstrap-server, or from the older flag --broker-list."""
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


# --- lines to records, as in Kafka's LineMessageReader


_NAMES: Final = {
    "key.separator": "\t",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
}


class ReadRecord(NamedTuple):
    """A record that was read from a line."""

    key: bytes | None
    value: bytes | None
    headers: list[Header]


class LineReader:
    """A parser that converts lines to records, and counts lines for error messages."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Read the parser's properties. Raises Failure if they contradict each other."""
        given = {name: properties.get(name, default) for name, default in _NAMES.items()}
        self._parse_key = _is_true(properties, "parse.key")
        self._parse_headers = _is_true(properties, "parse.headers")
        self._ignore_error = _is_true(properties, "ignore.error")
        self._key_separator = given["key.separator"]
        self._headers_delimiter = given["headers.delimiter"]
        self._headers_separator = given["headers.separator"]
        self._headers_key_separator = given["headers.key.separator"]
        self._null_marker = properties.get("null.marker")
        self._line_number = 0
        for first, second in (
            ("headers.delimiter", "headers.separator"),
            ("headers.delimiter", "headers.key.separator"),
            ("headers.separator", "headers.key.separator"),
        ):
            if given[first] == given[second]:
                raise _refused(f"{first} and {second} may not be equal")
        for name in ("key.separator", "headers.separator", "headers.delimiter", "headers.key.separator"):
            if given[name] == self._null_marker:
                raise _refused(f"null.marker and {name} may not be equal")

    def record(self, line: str) -> ReadRecord:
        """Parse a line as a record. Raises Failure if a separator is missing."""
        self._line_number += 1
        headers, position = self._part(
            self._parse_headers, line, 0, self._headers_delimiter, "headers delimiter"
        )
        key, position = self._part(self._parse_key, line, position, self._key_separator, "key separator")
        found: list[Header] = []
        if headers is not None and headers != self._null_marker:
            found = list(self._headers(headers))
        return ReadRecord(self._bytes(key), self._bytes(line[position:]), found)

    def _part(
        self, enabled: bool, line: str, start: int, separator: str, name: str
    ) -> tuple[str | None, int]:
        if not enabled:
            return None, start
        end = line.find(separator, start)
        if end >= 0:
            return line[start:end], end + len(separator)
        if self._ignore_error:
            return None, start
        raise _refused(f"No {name} found on line number {self._line_number}: '{line}'")

    def _headers(self, text: str) -> Iterator[Header]:
        pairs = re.split(self._headers_separator, text)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        for pair in pairs:
            name, separator, value = pair.partition(self._headers_key_separator)
            if not separator:
                if not self._ignore_error:
                    where = f"'{pair}' on line number {self._line_number}"
                    raise _refused(f"No header key separator found in pair {where}")
                yield pair, None
            elif name == self._null_marker:
                raise _refused(
                    f"A header's key is the null marker '{self._null_marker}', but keys cannot be null"
                )
            else:
                yield name, self._bytes(value)

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self._null_marker else text.encode()


def _is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() == "true"


def _refused(message: str) -> Failure:
    return Failure("org.apache.kafka.common.KafkaException", message)


_PART_BYTES: Final = 64 * 1024
_END_OF_LINE: Final = re.compile(rb"\r\n|\n|\r")


def lines(wait_s: Callable[[], float | None], idle: Callable[[], None]) -> Iterator[str]:
    """Yield the lines of standard input, without line endings. Call `idle` after `wait_s()` seconds without
    input (None: wait without limit).
    """
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):
        # Read all input without a timeout, because the stream has no file descriptor.
        for line in _END_OF_LINE.split(sys.stdin.buffer.read().removesuffix(b"\n")):
            yield line.decode(errors="replace")
        return
    rest = b""
    while True:
        if select.select([descriptor], [], [], wait_s())[0]:
            part = os.read(descriptor, _PART_BYTES)
            if not part:
                break
            # Hold back a final \r, because a \r\n line ending may be split across two reads.
            whole = rest + part
            held = b"\r" if whole.endswith(b"\r") else b""
            *complete, rest = _END_OF_LINE.split(whole.removesuffix(b"\r") if held else whole)
            rest += held
            for line in complete:
                yield line.decode(errors="replace")
        else:
            idle()
    if rest:
        yield rest.removesuffix(b"\r").decode(errors="replace")
