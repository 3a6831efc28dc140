"""kafka-consumer-perf-test: measure the throughput of a consumer."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final

from kafka_compat.client.cluster import Cluster, TimedOut
from kafka_compat.tools import show
from kafka_compat.tools.admin import consuming, parsed, settings_of
from kafka_compat.tools.failure import Failure, illegal_argument, of_client, report
from kafka_compat.tools.options import Options

if TYPE_CHECKING:
    from kafka_compat.client.fetcher import Fetcher
    from kafka_compat.client.group_member import GroupMember

_CLIENT_ID: Final = "perf-consumer-client"
_ALSO: Final = "broker-list= threads= num-fetch-threads="
_OLD_NAME: Final = "Warning: --{old} is deprecated. Use --{new} instead."
_MEBIBYTE: Final = 1024 * 1024
_POLL_S: Final = 0.1
_CLOSE_S: Final = 30.0
_DATE_FORMAT: Final = "yyyy-MM-dd HH:mm:ss:SSS"
_LAST: Final = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
_FIELDS: Final = {"y": "%Y", "M": "%m", "d": "%d", "H": "%H", "m": "%M", "s": "%S"}
_NAMES: Final = (
    "start_time",
    "end_time",
    "mebibytes",
    "mebibytes_per_s",
    "messages",
    "messages_per_s",
    "rebalance_ms",
    "fetch_ms",
    "fetch_mebibytes_per_s",
    "fetch_messages_per_s",
)


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code. Raises Failure if a flag is invalid."""
    options = _options(arguments)
    settings = _settings(options)
    interval_ms = options.integer("reporting-interval", 64)
    if interval_ms is not None and interval_ms <= 0:
        raise illegal_argument("Reporting interval must be greater than 0.")
    from kafka_compat.client.fetcher import Fetcher, fetch_settings
    from kafka_compat.client.group_consumer import uses_consumer_protocol
    from kafka_compat.client.group_member import group_member

    detailed = options.has("show-detailed-stats")
    if not options.has("hide-header") and not options.as_json:
        first = "time, threadId" if detailed else "start.time, end.time"
        print(f"{first}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, {_LAST}")
    fetching = parsed(fetch_settings, settings)
    parsed(uses_consumer_protocol, settings)
    cluster = consuming(options.value("bootstrap-server") or options.given("broker-list"), settings)
    fetcher = Fetcher(cluster, fetching)
    topics = _topics(cluster, options)
    consumer = group_member(cluster, fetcher, settings, topics, fetching.metadata_max_age_s)
    test = _Test(options, cluster, fetcher, consumer, detailed, (interval_ms or 5000) / 1000)
    try:
        wanted = options.integer("messages" if options.has("messages") else "num-records", 64) or 0
        row = test.run(wanted, (options.integer("timeout", 64) or 10_000) / 1000)
        with cluster.within(_CLOSE_S):
            consumer.close()
    except Exception as error:
        return report(of_client(error))
    finally:
        cluster.close()
    if options.as_json:
        show.as_json(dict(zip(_NAMES, row, strict=True)))
    elif not detailed:
        print(_line(row))
    return 0


def _topics(cluster: Cluster, options: Options) -> Callable[[], list[str]]:
    if options.has("topic"):
        topics = [options.given("topic")]
        return lambda: topics
    pattern = options.given("include")
    try:
        matches = re.compile(pattern).fullmatch
    except re.error as error:
        raise Failure("java.util.regex.PatternSyntaxException", f"{error} near index") from None
    return lambda: [
        topic.name for topic in cluster.metadata(None).topics if not topic.is_internal and matches(topic.name)
    ]


class _Test:
    def __init__(
        self,
        options: Options,
        cluster: Cluster,
        fetcher: Fetcher,
        consumer: GroupMember,
        detailed: bool,
        interval_s: float,
    ) -> None:
        self._within = cluster.within
        self._fetcher = fetcher
        self._consumer = consumer
        self._format = options.value("date-format") or _DATE_FORMAT
        self._is_json = options.as_json
        self._detailed = detailed
        self._interval_s = interval_s
        self._messages = 0
        self._bytes = 0

    def run(self, wanted: int, timeout_s: float) -> list[Any]:
        """Consume records, and return the row of totals. Raises the errors of the consumer's `poll`."""
        began_s = reported_s = heard_s = now_s = time.time()
        last_messages = last_bytes = 0
        last_joining_s = 0.0
        while self._messages < wanted and now_s - heard_s <= timeout_s:
            try:
                with self._within(timeout_s - (now_s - heard_s) + _POLL_S):
                    self._consumer.poll(_POLL_S)
            except TimedOut:
                break
            now_s = time.time()
            if self._take():
                heard_s = now_s
            if self._detailed and now_s - reported_s >= self._interval_s and heard_s == now_s:
                joining_s = self._consumer.joining_s - last_joining_s
                row = self._row(reported_s, now_s, joining_s, last_messages, last_bytes)
                if not self._is_json:
                    print(_line([row[1], 0, *row[2:]]), flush=True)
                reported_s, last_messages, last_bytes = now_s, self._messages, self._bytes
                last_joining_s = self._consumer.joining_s
        if self._messages < wanted:
            print(
                "WARNING: Exiting with fewer records than requested: no more records within --timeout "
                f"({int(timeout_s * 1000)} ms).",
                file=sys.stderr if self._is_json else sys.stdout,
            )
        return self._row(began_s, time.time(), self._consumer.joining_s, 0, 0)

    def _take(self) -> bool:
        count = 0
        while (record := self._fetcher.take()) is not None:
            count += 1
            self._bytes += len(record.key or b"") + len(record.value or b"")
        self._messages += count
        return count > 0

    def _row(
        self, start_s: float, end_s: float, joining_s: float, last_messages: int, last_bytes: int
    ) -> list[Any]:
        """Return a row's values in the order of the columns. Rates cover `start_s` to `end_s`."""
        elapsed_s = max(end_s - start_s, 0.001)
        joining_ms = int(joining_s * 1000)
        fetch_ms = int(elapsed_s * 1000) - joining_ms
        messages = self._messages - last_messages
        mebibytes = (self._bytes - last_bytes) / _MEBIBYTE
        fetch_s = fetch_ms / 1000
        return [
            _date(self._format, start_s),
            _date(self._format, end_s),
            self._bytes / _MEBIBYTE,
            mebibytes / elapsed_s,
            self._messages,
            messages / elapsed_s,
            joining_ms,
            fetch_ms,
            mebibytes / fetch_s if fetch_ms > 0 else 0.0,
            messages / fetch_s if fetch_ms > 0 else 0.0,
        ]


def _line(row: list[Any]) -> str:
    return ", ".join(f"{item:.4f}" if isinstance(item, float) else str(item) for item in row)


def _date(pattern: str, moment_s: float) -> str:
    """Format a time like Java's SimpleDateFormat, for numeric fields from years to milliseconds."""
    local = time.localtime(moment_s)

    def field(found: re.Match[str]) -> str:
        if found[1] == "S":
            return f"{int(moment_s * 1000) % 1000:0{len(found[0])}d}"
        if found[1] == "y" and len(found[0]) == 2:
            return time.strftime("%y", local)
        return time.strftime(_FIELDS[found[1]], local)

    return re.sub(r"([yMdHmsS])\1*", field, pattern)


def _options(arguments: list[str]) -> Options:
    options = Options.or_usage("consumer-perf-test", arguments, also=_ALSO)
    if options.has("threads") or options.has("num-fetch-threads"):
        print("WARNING: [threads] and [num-fetch-threads] are deprecated, and have no effect")
    options.exit_for_help()
    if not options.has("broker-list"):
        options.require("bootstrap-server")
    for one, other in (("topic", "include"), ("messages", "num-records")):
        if options.has(one) == options.has(other):
            options.usage_error(f"Specify either --{one} or --{other}")
    options.forbid("consumer.config", "command-config")
    options.renamed("messages", "num-records", _OLD_NAME)
    options.renamed("consumer.config", "command-config", _OLD_NAME)
    return options


def _settings(options: Options) -> dict[str, str]:
    config = "command-config" if options.has("command-config") else "consumer.config"
    settings = settings_of(options, config, "command-property")
    settings["group.id"] = options.value("group") or f"perf-consumer-{Random().randrange(100_000)}"
    settings["max.partition.fetch.bytes"] = options.value("fetch-size") or str(_MEBIBYTE)
    settings["auto.offset.reset"] = "latest" if options.has("from-latest") else "earliest"
    settings.setdefault("client.id", _CLIENT_ID)
    return settings
