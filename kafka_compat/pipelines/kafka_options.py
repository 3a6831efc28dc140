"""`--kafka-option k=v` → options of Spark's Kafka source, and properties of Kafka's own client."""

from collections.abc import Iterable

from kafka_compat.pipelines.errors import NotStarted

SOURCE_OPTIONS = {
    option.lower(): option
    for option in (
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "groupIdPrefix",
        "kafkaConsumer.pollTimeoutMs",
        "maxOffsetsPerTrigger",
        "maxRecordsPerPartition",
        "maxTriggerDelay",
        "minOffsetsPerTrigger",
        "minPartitions",
        "startingOffsets",
        "startingOffsetsByTimestamp",
        "startingOffsetsByTimestampStrategy",
        "startingTimestamp",
        "useDeprecatedOffsetFetching",
    )
}
"""Options of the source itself; any other is a property of Kafka's consumer and gets the prefix `kafka.`."""

_OWNED = {
    "assign",
    "failondataloss",
    "includeheaders",
    "kafka.bootstrap.servers",
    "subscribe",
    "subscribepattern",
}


def source_options(pairs: Iterable[str]) -> dict[str, str]:
    """Parse `name=value` strings; NotStarted for one that is malformed or belongs to the job."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise NotStarted(f"--kafka-option {pair}: expected name=value.")
        if name.lower() in SOURCE_OPTIONS:
            name = SOURCE_OPTIONS[name.lower()]
        elif not name.lower().startswith("kafka.") and name.lower() not in _OWNED:
            name = f"kafka.{name}"
        if name.lower() in _OWNED:
            raise NotStarted(f"--kafka-option {pair}: the job sets {name} itself.")
        options[name] = value
    return options


def client_properties(options: dict[str, str]) -> dict[str, str]:
    """What of the source's options Kafka's own client understands, by its own names."""
    return {
        name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")
    }


def named_values(pairs: Iterable[str]) -> dict[str, str]:
    """Parse `name=value` strings as they are; NotStarted for one that is malformed."""
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise NotStarted(f"{pair}: expected name=value.")
        values[name] = value
    return values
