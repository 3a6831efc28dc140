"""Inspect the Kafka cluster before a job runs, with the Java client of Spark's Kafka connector."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_compat.pipelines.checkpoint import Offsets
from kafka_compat.pipelines.errors import NotStarted
from kafka_compat.pipelines.first_look import check_topics

TIMEOUT_MS = 20_000
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The selected topics' IDs ("" if not supported), earliest offsets, and latest (next) offsets."""

    topic_ids: dict[str, str]
    earliest: Offsets
    latest: Offsets


def look(
    spark: Any, properties: Mapping[str, str], *, topics: Iterable[str] = (), pattern: str | None = None
) -> ClusterView:
    """Return a view of the topics in `topics`, or of all topics whose entire name matches `pattern`.

    Raises NotStarted if no broker responds or a topic in `topics` does not exist. Topics are not created.
    """
    jvm = spark._jvm
    client = jvm.java.util.Properties()
    for name, value in {
        "default.api.timeout.ms": TIMEOUT_MS,
        "request.timeout.ms": 10_000,
        **properties,
    }.items():
        client.setProperty(name, str(value))
    servers = properties["bootstrap.servers"]
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(client)
    except Exception as error:
        raise NotStarted(
            f"{servers}: {cause(error)}", "Check --bootstrap-server and --kafka-option."
        ) from None
    try:
        existing = set(admin.listTopics().names().get())
        wanted = (
            set(topics) if pattern is None else {name for name in existing if re.fullmatch(pattern, name)}
        )
        check_topics(servers, wanted, existing)
        described = admin.describeTopics(_java_list(jvm, sorted(wanted))).allTopicNames().get()
        ids = {name: described[name].topicId().toString() for name in described}
        partitions = [
            jvm.org.apache.kafka.common.TopicPartition(name, info.partition())
            for name in described
            for info in described[name].partitions()
        ]
        specs = jvm.org.apache.kafka.clients.admin.OffsetSpec
        return ClusterView(
            {name: "" if topic_id == _NO_ID else topic_id for name, topic_id in ids.items()},
            _offsets(jvm, admin, partitions, specs.earliest()),
            _offsets(jvm, admin, partitions, specs.latest()),
        )
    except NotStarted:
        raise
    except Exception as error:
        raise NotStarted(
            f"The cluster at {servers} does not respond: {cause(error)}",
            "Is the broker running, and is the address correct?",
        ) from None
    finally:
        admin.close(jvm.java.time.Duration.ofSeconds(1))


def cause(error: BaseException) -> str:
    """Return the root cause of an error, on one line: the innermost Java exception, or the last line of a
    worker's traceback.
    """
    java = getattr(error, "java_exception", None)
    if java is None:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return lines[-1 if any(line.startswith("Traceback") for line in lines) else 0]
    while java.getCause() is not None:
        java = java.getCause()
    message = str(java.getMessage())
    if "Traceback (most recent call last)" in message:
        # The exception of a Python worker: its last line is the reason.
        return message.strip().splitlines()[-1]
    return f"{java.getClass().getSimpleName()}: {message}"


def lost_since(view: ClusterView, archived: Offsets, topic_ids: Mapping[str, str]) -> list[str]:
    """Return the reasons why a job cannot continue from `archived` (next offsets) without a gap."""
    reasons = []
    for topic, partitions in archived.items():
        if topic not in view.topic_ids:
            continue
        known, now = topic_ids.get(topic, ""), view.topic_ids[topic]
        if known and now and known != now:
            reasons.append(f"{topic} was deleted and recreated (topic ID {known}, now {now}).")
            continue
        for partition, offset in partitions.items():
            earliest = view.earliest[topic].get(partition, 0)
            latest = view.latest[topic].get(partition, 0)
            if offset > latest:
                reasons.append(
                    f"{topic}-{partition} ends at offset {latest}, but was archived up to {offset}."
                )
            elif offset < earliest:
                reasons.append(
                    f"{topic}-{partition}: offsets {offset} to {earliest - 1} were deleted, not archived."
                )
    return reasons


def _offsets(jvm: Any, admin: Any, partitions: list[Any], spec: Any) -> Offsets:
    request = jvm.java.util.HashMap()
    for partition in partitions:
        request.put(partition, spec)
    answer = admin.listOffsets(request).all().get()
    found: Offsets = {}
    for partition in partitions:
        found.setdefault(partition.topic(), {})[partition.partition()] = answer[partition].offset()
    return found


def _java_list(jvm: Any, values: Iterable[str]) -> Any:
    result = jvm.java.util.ArrayList()
    for value in values:
        result.add(value)
    return result
