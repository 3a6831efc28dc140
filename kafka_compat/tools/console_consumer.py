"""kafka-console-consumer: print records of topics to standard output."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from kafka_compat.client.cluster import Cluster, TimedOut
from kafka_compat.storage.records.kinds import TimestampType
from kafka_compat.tools import deserializers, show
from kafka_compat.tools.admin import consuming, parsed, settings_in
from kafka_compat.tools.failure import Failure, is_number, log, of_client
from kafka_compat.tools.options import Options
from kafka_compat.tools.output import Unwritable, discard

if TYPE_CHECKING:
    from kafka_compat.client.consumed import Consumed
    from kafka_compat.client.fetcher import Fetcher, TopicConsumer
    from kafka_compat.client.group_member import GroupMember

CLIENT_ID: Final = "console-consumer"
OLD_NAME: Final = "Option --{old} is deprecated: use --{new}."
_ALSO: Final = "whitelist="
_RENAMED: Final = (("consumer-property", "command-property"), ("consumer.config", "command-config"))
_NEWER_PROTOCOL: Final = (
    "Consuming with the classic group protocol. For the newer one (KIP-848), see "
    "kafka.apache.org/documentation/#consumer_rebalance_protocol"
)
_LOGGER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_DEFAULT_FORMATTER: Final = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
_LATEST, _EARLIEST = -1, -2
_FOR_EVER_S: Final = 1e9
_POLL_S: Final = 1.0
_CLOSE_S: Final = 30.0
"""Maximum time for a consumer to leave its group, as in Kafka's consumer."""
_TIMER_S: Final = 1.5
"""How long before a deadline a request may give up: the longest pause between two attempts, and a margin."""
_INTERRUPTED: Final = 130
_TERMINATED: Final = 143


class _Stopped(Exception):
    """Raised when the process receives SIGTERM."""


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code. Raises Failure if a flag is invalid."""
    options = _options(arguments)
    settings = _settings(options)
    offset = _offset(options)
    timeout_ms = options.integer("timeout-ms", 64)
    timeout_s = _FOR_EVER_S if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
    formatter = formatter_of(options)
    max_messages = options.integer("max-messages")
    limit = -1 if max_messages is None else max_messages
    cluster: Cluster | None = None
    try:
        cluster, fetcher, consumer = _consumer(options, settings, offset)
        if not options.has("partition") and settings.get("group.protocol", "classic").lower() == "classic":
            print(_NEWER_PROTOCOL, file=sys.stderr)
        skips = options.has("skip-message-on-error")
        console = Console(consumer, fetcher, formatter, skips, within=cluster.within)
        code = console.run(limit, timeout_s)
        if options.has("enable-systest-events"):
            print("shutdown_complete")
        return code
    except Exception as error:
        log("ERROR", "Unknown error when running consumer: ", _LOGGER)
        print(_failure(error).trace, end="", file=sys.stderr)
        return 1
    finally:
        if cluster is not None:
            cluster.close()


class Consuming(Protocol):
    """A consumer that fetches records into a buffer."""

    def poll(self, wait_s: float) -> None: ...

    def close(self) -> None: ...


class Buffer(Protocol):
    """The buffer of a consumer."""

    def take(self) -> Consumed | None: ...


class Console:
    """Prints the records of a consumer to standard output. With `skips_on_error`, records that cannot be
    formatted are skipped; `done` is called for each record, with whether it was printed.
    """

    def __init__(
        self,
        consumer: Consuming,
        fetcher: Buffer,
        formatter: Formatter,
        skips_on_error: bool,
        done: Callable[[Consumed, bool], None] | None = None,
        logger: str = _LOGGER,
        within: Callable[[float], AbstractContextManager[None]] = lambda seconds: nullcontext(),
    ) -> None:
        """`within` limits the time of all requests in its block, which then raise TimedOut."""
        self._consumer = consumer
        self._fetcher = fetcher
        self._formatter = formatter
        self._skips_on_error = skips_on_error
        self._done = done
        self._logger = logger
        self._within = within
        self._count = 0

    def run(self, limit: int, timeout_s: float) -> int:
        """Print records, and return the exit code. Raises Failure if a record cannot be formatted."""
        code = 0
        before = _on_sigterm(_stop)
        try:
            self._loop(limit, timeout_s)
        except KeyboardInterrupt:
            code = _INTERRUPTED
        except _Stopped:
            code = _TERMINATED
        except Unwritable:
            print("Cannot write to standard output, closing the consumer.", file=sys.stderr)
            discard()
        finally:
            if before is not None:
                signal.signal(signal.SIGTERM, before)
            self._end()
        return code

    def _loop(self, limit: int, timeout_s: float) -> None:
        out = sys.stdout.buffer
        while limit == -1 or self._count < limit:
            record = self._fetcher.take()
            if record is None:
                out.flush()
                try:
                    record = self._next(timeout_s)
                except (KeyboardInterrupt, _Stopped):
                    raise
                except Exception as error:
                    log("ERROR", "Error processing message, terminating consumer process: ", self._logger)
                    print(_failure(error).trace, end="", file=sys.stderr)
                    return
            self._count += 1
            is_printed = True
            try:
                out.write(self._formatter(record))
            except Failure as failure:
                if not self._skips_on_error:
                    raise
                is_printed = False
                what = "skipping" if self._done is None else "rejecting"
                log("ERROR", f"Error processing message, {what} this message: ", self._logger)
                print(failure.trace, end="", file=sys.stderr)
            if self._done is not None:
                self._done(record, is_printed)
        out.flush()

    def _next(self, timeout_s: float) -> Consumed:
        deadline = time.monotonic() + timeout_s
        while True:
            record = self._fetcher.take()
            if record is not None:
                return record
            left_s = deadline - time.monotonic()
            if left_s < 0:
                raise Failure("org.apache.kafka.common.errors.TimeoutException", None)
            try:
                with self._within(left_s):
                    self._consumer.poll(min(left_s, _POLL_S))
            except TimedOut:
                left_s = deadline - time.monotonic()
                if left_s > _TIMER_S:
                    raise
                time.sleep(max(left_s, 0.0))

    def _end(self) -> None:
        try:
            with self._within(_CLOSE_S):
                self._consumer.close()
        except Exception as error:
            log("WARN", f"Closing the consumer failed: {_failure(error)}", self._logger)
        with suppress(Unwritable):
            sys.stdout.flush()
        print(f"Processed a total of {self._count} messages", file=sys.stderr)


def _stop(number: int, frame: object) -> None:
    raise _Stopped


def _on_sigterm(handler: Callable[[int, object], None]) -> Any:
    """Set the SIGTERM handler. Return the previous one, or None if this thread cannot set handlers."""
    try:
        return signal.signal(signal.SIGTERM, handler)
    except ValueError:
        return None


def _consumer(
    options: Options, settings: dict[str, str], offset: int
) -> tuple[Cluster, Fetcher, GroupMember | TopicConsumer]:
    """Create the client, the fetcher and the consumer. Raises Failure if a setting is invalid."""
    from kafka_compat.client.fetcher import Fetcher, TopicConsumer, fetch_settings
    from kafka_compat.client.group_consumer import uses_consumer_protocol
    from kafka_compat.client.group_member import group_member

    fetching = parsed(fetch_settings, settings)
    parsed(uses_consumer_protocol, settings)
    if not settings.get("group.id", "-").strip():
        cause = Failure(
            "org.apache.kafka.common.errors.InvalidGroupIdException",
            "The group.id must not be empty or blank.",
        )
        raise Failure("org.apache.kafka.common.KafkaException", "Failed to construct kafka consumer", cause)
    cluster = consuming(options.given("bootstrap-server"), settings)
    fetcher = Fetcher(cluster, fetching)
    topics = _topics(cluster, options, fetching.allow_auto_create)
    partition = options.integer("partition")
    if partition is not None:
        fetcher.assign({(options.given("topic"), partition): offset})
        return cluster, fetcher, TopicConsumer(cluster, fetcher, tuple, _FOR_EVER_S)
    if "group.id" not in settings:
        return cluster, fetcher, TopicConsumer(cluster, fetcher, topics, fetching.metadata_max_age_s)
    return cluster, fetcher, group_member(cluster, fetcher, settings, topics, fetching.metadata_max_age_s)


def _topics(cluster: Cluster, options: Options, may_make: bool) -> Callable[[], Iterable[str]]:
    pattern = options.value("include") or options.value("whitelist")
    if pattern is None:
        topic = options.given("topic")

        def one() -> Iterable[str]:
            cluster.metadata([topic], may_create=may_make)
            return [topic]

        return one
    matches = show.topic_filter(pattern).fullmatch

    def all_that_match() -> Iterable[str]:
        answer = cluster.metadata(None)
        return [topic.name for topic in answer.topics if not topic.is_internal and matches(topic.name)]

    return all_that_match


def _failure(error: Exception) -> Failure:
    from kafka_compat.client.fetcher import NoOffset
    from kafka_compat.storage.errors import StorageError

    if isinstance(error, NoOffset):
        return Failure("org.apache.kafka.clients.consumer.NoOffsetForPartitionException", str(error))
    if isinstance(error, StorageError):
        return Failure("org.apache.kafka.common.KafkaException", str(error))
    return of_client(error)


def _options(arguments: list[str]) -> Options:
    options = Options.or_usage("console-consumer", arguments, also=_ALSO)
    options.exit_for_help()
    if sum(map(options.has, ("topic", "include", "whitelist"))) != 1:
        options.usage_error("Specify either --topic or --include")
    if options.has("partition"):
        if not options.has("topic"):
            options.usage_error("--partition requires --topic.")
        if options.has("from-beginning") and options.has("offset"):
            options.usage_error("--from-beginning and --offset exclude each other.")
    elif options.has("offset"):
        options.usage_error("--offset requires --partition.")
    options.require("bootstrap-server")
    return options


def _settings(options: Options) -> dict[str, str]:
    for old, new in _RENAMED:
        options.forbid_together(old, new)
    properties, config = (options.renamed(old, new, OLD_NAME) for old, new in _RENAMED)
    of_file = settings_in(options.given(config)) if options.has(config) else {}
    given = options.pairs(properties)
    named = [options.value("group"), of_file.get("group.id"), given.get("group.id")]
    groups = show.java_order(dict.fromkeys(name for name in named if name is not None), show.java_hash)
    if len(groups) > 1:
        listed = ", ".join(f"'{name}'" for name in groups)
        options.usage_error(
            f"--group, --consumer-property and --consumer.config name different groups: {listed}"
        )
    if groups and options.has("partition"):
        options.usage_error("--group and --partition exclude each other.")
    settings = of_file | given
    reset = settings.get("auto.offset.reset")
    if options.has("from-beginning") and reset not in (None, "earliest"):
        print(
            f"--from-beginning contradicts 'auto.offset.reset={reset}': remove one of them", file=sys.stderr
        )
        sys.exit(1)
    settings["auto.offset.reset"] = reset or ("earliest" if options.has("from-beginning") else "latest")
    settings.setdefault("client.id", CLIENT_ID)
    if options.has("isolation-level"):
        settings["isolation.level"] = options.given("isolation-level")
    if groups:
        settings["group.id"] = groups[0]
    return settings


def _offset(options: Options) -> int:
    if not options.has("offset"):
        return _EARLIEST if options.has("from-beginning") else _LATEST
    text = options.given("offset")
    named = {"earliest": _EARLIEST, "latest": _LATEST}.get(text.lower())
    if named is not None:
        return named
    if not text.isdecimal() or not is_number(text, 64):
        options.usage_error(f"Invalid offset '{text}', expected 'earliest', 'latest' or a number from 0 up.")
    return int(text)


def formatter_of(options: Options) -> Formatter:
    """Return the formatter that the flags select. Exits with the help if they are invalid."""
    properties: dict[str, str] = {}
    if options.has("formatter-config"):
        properties = settings_in(options.given("formatter-config"))
    for flag in ("key-deserializer", "value-deserializer"):
        if options.value(flag):
            properties[flag.replace("-", ".")] = options.given(flag)
    options.forbid_together("property", "formatter-property")
    properties |= options.pairs(options.renamed("property", "formatter-property", OLD_NAME))
    if options.as_json:
        return json_lines(properties)
    try:
        return formatter_named(options.value("formatter") or _DEFAULT_FORMATTER, properties)
    except Failure as failure:
        options.usage_error(failure.message or "")


# --- Kafka's formatters, by class name


Formatter = Callable[["Consumed"], bytes]
"""Formats a record for output. Raises Failure if the record cannot be formatted."""

_NEW: Final = "org.apache.kafka.tools.consumer."
_OLD: Final = "kafka.tools."
_DEFAULT: Final = "DefaultMessageFormatter"
_LOGGING: Final = "LoggingMessageFormatter"
_NO_OP: Final = "NoOpMessageFormatter"
_SHORT: Final = (_DEFAULT, _LOGGING, _NO_OP)
_TYPES: Final = {TimestampType.CREATE_TIME: "CreateTime", TimestampType.LOG_APPEND_TIME: "LogAppendTime"}


def formatter_named(name: str, properties: Mapping[str, str]) -> Formatter:
    """Return the formatter with this class name. Raises Failure if the class is unknown."""
    short = name.removeprefix(_OLD).removeprefix(_NEW)
    if short in _SHORT and name != short:
        if name.startswith(_OLD):
            # As Kafka 3.9 does.
            print(f"WARNING: {name} is deprecated: use {_NEW}{short}", file=sys.stderr)
        return (lambda record: b"") if short == _NO_OP else _Columns(properties).of
    if name.startswith(_NEW):
        from kafka_compat.tools.internal_records import FORMATTERS

        if short in FORMATTERS:
            return FORMATTERS[short]
    raise Failure("java.lang.ClassNotFoundException", name)


class _Columns:
    """A formatter like Kafka's DefaultMessageFormatter. It prints the selected fields, with separators."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def is_on(name: str, default: bool = False) -> bool:
            return properties[name].strip().lower() == "true" if name in properties else default

        self._timestamp = is_on("print.timestamp")
        self._partition = is_on("print.partition")
        self._offset = is_on("print.offset")
        self._delivery = is_on("print.delivery")
        self._epoch = is_on("print.epoch")
        self._headers = is_on("print.headers")
        self._key = is_on("print.key")
        self._value = is_on("print.value", True)
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_separator = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._show_key = _deserializer(properties, "key.deserializer")
        self._show_value = _deserializer(properties, "value.deserializer")
        self._show_header = _deserializer(properties, "headers.deserializer")

    def of(self, record: Consumed) -> bytes:
        """Format a record as a line. Raises Failure if a deserializer cannot read the record."""
        columns: list[bytes] = []
        if self._timestamp:
            kind = record.timestamp_type
            text = "NO_TIMESTAMP" if kind is None else f"{_TYPES[kind]}:{record.timestamp_ms}"
            columns.append(text.encode())
        if self._partition:
            columns.append(b"Partition:%d" % record.partition)
        if self._offset:
            columns.append(b"Offset:%d" % record.offset)
        if self._delivery:
            count = record.delivery_count
            columns.append(b"Delivery:NOT_PRESENT" if count is None else b"Delivery:%d" % count)
        if self._epoch:
            # Kafka's command passes the record to its formatter without the leader epoch.
            columns.append(b"Epoch:NOT_PRESENT")
        if self._headers:
            shown = (
                name.encode() + b":" + self._shown(content, self._show_header)
                for name, content in record.headers
            )
            columns.append(self._headers_separator.join(shown) or b"NO_HEADERS")
        if self._key:
            columns.append(self._shown(record.key, self._show_key))
        if self._value:
            columns.append(self._shown(record.value, self._show_value))
        return self._separator.join(columns) + self._line_separator if columns else b""

    def _shown(self, content: bytes | None, show: deserializers.Deserializer | None) -> bytes:
        found = self._null if content is None else content
        return found if show is None else show(found).encode()


def _deserializer(properties: Mapping[str, str], name: str) -> deserializers.Deserializer | None:
    wanted = properties.get(name)
    if wanted is None:
        return None
    found = deserializers.named(wanted)
    if found is None:
        log("ERROR", f"Unable to instantiate a deserializer from {wanted}", f"{_NEW}{_DEFAULT}")
        print(Failure("java.lang.ClassNotFoundException", wanted).trace, end="", file=sys.stderr)
    return found


def json_lines(properties: Mapping[str, str]) -> Formatter:
    """Return a formatter for JSON lines. Keys and values without a deserializer are decoded as UTF-8."""
    import json

    show_key = _deserializer(properties, "key.deserializer") or _text
    show_value = _deserializer(properties, "value.deserializer") or _text

    def of(record: Consumed) -> bytes:
        found: dict[str, Any] = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "timestamp_type": None if record.timestamp_type is None else _TYPES[record.timestamp_type],
            "key": None if record.key is None else show_key(record.key),
            "value": None if record.value is None else show_value(record.value),
            "headers": [
                [name, None if content is None else _text(content)] for name, content in record.headers
            ],
        }
        return json.dumps(found, ensure_ascii=False).encode() + b"\n"

    return of


def _text(content: bytes) -> str:
    return content.decode(errors="replace")
