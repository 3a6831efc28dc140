"""kafka-get-offsets: list offsets of partitions by time."""

import sys
from collections.abc import Callable
from typing import Any, Final

from kafka_compat.client.leaders import try_offsets
from kafka_compat.client.partitions import TopicPartition, each_partition
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.tools import show
from kafka_compat.tools.admin import connected, settings_of, valid_addresses
from kafka_compat.tools.failure import Failure, executed, is_number, java_int, of_client
from kafka_compat.tools.options import Options

_PENDING: Final = "earliest-pending-upload"
_PENDING_VERSION: Final = 11
"""First version of ListOffsets with this time (KIP-1023)."""

_TIMES: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    _PENDING: -6,
}
_INT_MAX: Final = (1 << 31) - 1
_NONE: Final = -1


class _Terse(Exception):
    """Raised for an error that is printed without the name of a Java exception."""


def run(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    try:
        _run(arguments)
        return 0
    except _Terse as error:
        print(f"Error occurred: {error}", file=sys.stderr)
    except Exception as error:
        failure = of_client(error)
        print(f"Error occurred: {failure.message}\n{failure.trace}", file=sys.stderr)
    return 1


def _run(arguments: list[str]) -> None:
    options = _options(arguments)
    if options.has("topic-partitions") and (options.has("topic") or options.has("partitions")):
        raise _Terse("--topic-partitions excludes --topic and --partitions")
    time_ms = _time(options.value("time", "latest") or "")
    is_wanted = _filter(options)
    where = "bootstrap-server" if options.has("bootstrap-server") else "broker-list"
    settings = settings_of(options) | {"client.id": "GetOffsetShell"}
    with connected(options.given(where), settings) as cluster:
        hidden = show.INTERNAL_TOPICS if options.has("exclude-internal-topics") else ()
        leaders = {
            place: partition.leader_id
            for place, partition in each_partition(cluster.metadata(None, "listTopics").topics)
            if place[0] not in hidden and is_wanted(*place)
        }
        wanted = list(leaders)
        if not wanted:
            raise _Terse("No partition matches the filters")
        found: dict[TopicPartition, Any] = {}
        if time_ms == _TIMES[_PENDING]:
            found = {
                place: _not_served(cluster, leader)
                for place, leader in leaders.items()
                if cluster.version(leader, ApiKey.LIST_OFFSETS, "listOffsets") < _PENDING_VERSION
            }
        answers = try_offsets(cluster, {place: time_ms for place in wanted if place not in found})
        found |= {place: getattr(answer, "offset", answer) for place, answer in answers.items()}
    rows: list[tuple[str, int, int]] = []
    for topic, partition in wanted:
        offset = found[topic, partition]
        if isinstance(offset, Exception):
            text = f"Skipped {topic}-{partition} because of an error: "
            print(text + str(executed(of_client(offset)).message), file=sys.stderr)
        elif offset != _NONE:
            rows.append((topic, partition, offset))
    rows.sort(key=lambda row: f"{row[0]}-{row[1]}")
    if options.as_json:
        show.as_json(
            [{"topic": topic, "partition": index, "offset": offset} for topic, index, offset in rows]
        )
        return
    for topic, partition, offset in rows:
        print(f"{topic}:{partition}:{offset}")


def _options(arguments: list[str]) -> Options:
    try:
        options = Options("get-offsets", arguments, also="command-property= broker-list=")
    except Failure as failure:
        raise _Terse(failure.message) from None
    options.exit_for_help()
    if not options.has("broker-list"):
        options.require("bootstrap-server")
    where = "bootstrap-server" if options.has("bootstrap-server") else "broker-list"
    if not valid_addresses(options.given(where)):
        options.usage_error("Expected HOST:PORT, several separated by commas\n")
    return options


def _time(text: str) -> int:
    if text in _TIMES:
        return _TIMES[text]
    if is_number(text, 64):
        return int(text)
    raise _Terse(
        f"Invalid time {text}, expected milliseconds, latest (-1), earliest (-2), max-timestamp (-3), "
        "earliest-local (-4), latest-tiered (-5) or earliest-pending-upload (-6)"
    )


def _filter(options: Options) -> Callable[[str, int], bool]:
    if options.has("topic-partitions"):
        rules = [_rule(text) for text in options.given("topic-partitions").split(",")]
        return lambda topic, partition: any(rule(topic, partition) for rule in rules)
    text = options.value("partitions") or ""
    try:
        numbers = {java_int(item) for item in text.split(",")} if text else set()
    except Failure:
        raise _Terse(f"--partitions must be numbers separated by commas, but received: {text}") from None
    matches = show.topic_filter(options.value("topic", ".*") or ".*").fullmatch
    return lambda topic, partition: bool(matches(topic)) and (not numbers or partition in numbers)


def _rule(text: str) -> Callable[[str, int], bool]:
    import re

    match = re.fullmatch(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?", text)
    if match is None:
        terse = Failure("org.apache.kafka.tools.TerseException", f"Invalid rule specification: {text}")
        raise Failure("java.lang.RuntimeException", str(terse), terse)
    matches = show.topic_filter(match[1] or ".*").fullmatch
    if match[2]:
        low, high = int(match[2]), int(match[2]) + 1
    else:
        low, high = int(match[3] or 0), int(match[4] or _INT_MAX)
    return lambda topic, partition: bool(matches(topic)) and low <= partition < high


def _not_served(cluster: Any, leader: int) -> KafkaError:
    low, high = cluster.api_versions(leader, "listOffsets")[ApiKey.LIST_OFFSETS]
    text = "The node does not support LIST_OFFSETS with version in range [11,11]. The supported range is "
    return KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{text}[{low},{high}].")
