"""kafka-console-consumer: records of topics on standard output."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.tools import show
from kafka_compat.tools.admin import consuming, parsed, settings_in
from kafka_compat.tools.failure import Failure, log, of_client
from kafka_compat.tools.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_compat.client.cluster import Cluster
    from kafka_compat.client.consumed import Consumed
    from kafka_compat.client.fetcher import Fetcher
    from kafka_compat.client.group_consumer import GroupConsumer
    from kafka_compat.client.topic_consumer import TopicConsumer
    from kafka_compat.tools.formatters import Formatter

CLIENT_ID: Final = "console-consumer"
_ALSO: Final = "whitelist="
_RENAMED: Final = (("consumer-property", "command-property"), ("consumer.config", "command-config"))
_OLD_NAME: Final = (
    "Option --{old} is deprecated and will be removed in a future version. Use --{new} instead."
)
_NEWER_PROTOCOL: Final = (
    "The consumer rebalance protocol (KIP-848) is production-ready! Set group.protocol=consumer to try it "
    "out. See https://kafka.apache.org/documentation/#consumer_rebalance_protocol"
)
_LOGGER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_DEFAULT_FORMATTER: Final = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
_LATEST, _EARLIEST = -1, -2
_FOR_EVER_S: Final = 1e9
_POLL_S: Final = 1.0
_INTERRUPTED: Final = 130
_TERMINATED: Final = 143


class _Stopped(Exception):
    """By SIGTERM."""


def run(arguments: list[str]) -> int:
    """The exit code. Raises Failure."""
    options = _options(arguments)
    settings = _settings(options)
    offset = _offset(options)
    timeout_ms = options.integer("timeout-ms", 64)
    timeout_s = _FOR_EVER_S if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
    formatter = _formatter(options)
    max_messages = options.integer("max-messages")
    limit = -1 if max_messages is None else max_messages
    cluster: Cluster | None = None
    try:
        cluster, fetcher, consumer = _consumer(options, settings, offset)
        if not options.has("partition") and settings.get("group.protocol", "classic").lower() == "classic":
            print(_NEWER_PROTOCOL, file=sys.stderr)
        console = _Console(consumer, fetcher, formatter, options.has("skip-message-on-error"))
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


class _Console:
    def __init__(
        self,
        consumer: GroupConsumer | TopicConsumer,
        fetcher: Fetcher,
        formatter: Formatter,
        skips_on_error: bool,
    ) -> None:
        self._consumer = consumer
        self._fetcher = fetcher
        self._formatter = formatter
        self._skips_on_error = skips_on_error
        self._count = 0

    def run(self, limit: int, timeout_s: float) -> int:
        """The exit code. Raises Failure for a record that cannot be shown."""
        code = 0
        before = _on_sigterm(_stop)
        try:
            self._loop(limit, timeout_s)
        except KeyboardInterrupt:
            code = _INTERRUPTED
        except _Stopped:
            code = _TERMINATED
        except BrokenPipeError:
            print("Unable to write to standard out, closing consumer.", file=sys.stderr)
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
                except (KeyboardInterrupt, BrokenPipeError, _Stopped):
                    raise
                except Exception as error:
                    log("ERROR", "Error processing message, terminating consumer process: ", _LOGGER)
                    print(_failure(error).trace, end="", file=sys.stderr)
                    return
            self._count += 1
            try:
                out.write(self._formatter(record))
            except Failure as failure:
                if not self._skips_on_error:
                    raise
                log("ERROR", "Error processing message, skipping this message: ", _LOGGER)
                print(failure.trace, end="", file=sys.stderr)
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
            self._consumer.poll(min(left_s, _POLL_S))

    def _end(self) -> None:
        try:
            self._consumer.close()
        except Exception as error:
            log("WARN", f"Closing the consumer failed: {_failure(error)}", _LOGGER)
        with suppress(BrokenPipeError):
            sys.stdout.flush()
        print(f"Processed a total of {self._count} messages", file=sys.stderr)


def _stop(number: int, frame: object) -> None:
    raise _Stopped


def _on_sigterm(handler: Callable[[int, object], None]) -> Any:
    """What was in its place; None where this thread has no say in signals."""
    try:
        return signal.signal(signal.SIGTERM, handler)
    except ValueError:
        return None


def _consumer(
    options: Options, settings: dict[str, str], offset: int
) -> tuple[Cluster, Fetcher, GroupConsumer | TopicConsumer]:
    """Raises Failure for settings that cannot be."""
    from kafka_compat.client.fetcher import Fetcher, fetch_settings
    from kafka_compat.client.topic_consumer import TopicConsumer

    fetching = parsed(fetch_settings, settings)
    cluster = consuming(options.given("bootstrap-server"), settings)
    fetcher = Fetcher(cluster, fetching)
    topics = _topics(cluster, options, fetching.allow_auto_create)
    partition = options.integer("partition")
    if partition is not None:
        fetcher.assign({(options.given("topic"), partition): offset})
        return cluster, fetcher, TopicConsumer(cluster, fetcher, tuple, _FOR_EVER_S)
    if "group.id" not in settings:
        return cluster, fetcher, TopicConsumer(cluster, fetcher, topics, fetching.metadata_max_age_s)
    from kafka_compat.client.group_consumer import GroupConsumer, group_settings

    return cluster, fetcher, GroupConsumer(cluster, fetcher, group_settings(settings), topics)


def _topics(cluster: Cluster, options: Options, may_make: bool) -> Callable[[], Iterable[str]]:
    """The topics that are meant, as they are when it is called."""
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
        options.usage_error("Exactly one of the following arguments is required: [topic], [include]")
    if options.has("partition"):
        if not options.has("topic"):
            options.usage_error("The topic is required when partition is specified.")
        if options.has("from-beginning") and options.has("offset"):
            options.usage_error("Options from-beginning and offset cannot be specified together.")
    elif options.has("offset"):
        options.usage_error("The partition is required when offset is specified.")
    options.require("bootstrap-server")
    return options


def _settings(options: Options) -> dict[str, str]:
    for old, new in _RENAMED:
        options.forbid_together(old, new)
    properties, config = (options.renamed(old, new, _OLD_NAME) for old, new in _RENAMED)
    of_file = settings_in(options.given(config)) if options.has(config) else {}
    given = options.pairs(properties)
    named = [options.value("group"), of_file.get("group.id"), given.get("group.id")]
    groups = show.java_order(dict.fromkeys(name for name in named if name is not None), show.java_hash)
    if len(groups) > 1:
        listed = ", ".join(f"'{name}'" for name in groups)
        options.usage_error(
            "The group ids provided in different places (directly using '--group', via '--consumer-property'"
            f", or via '--consumer.config') do not match. Detected group ids: {listed}"
        )
    if groups and options.has("partition"):
        options.usage_error("Options group and partition cannot be specified together.")
    settings = of_file | given
    reset = settings.get("auto.offset.reset")
    if options.has("from-beginning") and reset not in (None, "earliest"):
        print(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', please remove "
            "one option",
            file=sys.stderr,
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
    if not text.isdecimal():
        options.usage_error(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return int(text)


def _formatter(options: Options) -> Formatter:
    from kafka_compat.tools.formatters import formatter_named, json_lines

    properties: dict[str, str] = {}
    if options.has("formatter-config"):
        properties = settings_in(options.given("formatter-config"))
    for flag in ("key-deserializer", "value-deserializer"):
        if options.value(flag):
            properties[flag.replace("-", ".")] = options.given(flag)
    options.forbid_together("property", "formatter-property")
    properties |= options.pairs(options.renamed("property", "formatter-property", _OLD_NAME))
    if options.as_json:
        return json_lines(properties)
    try:
        return formatter_named(options.value("formatter") or _DEFAULT_FORMATTER, properties)
    except Failure as failure:
        options.usage_error(failure.message or "")
