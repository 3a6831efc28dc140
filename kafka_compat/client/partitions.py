"""Group and iterate over topic-partitions, and check the error codes of their results."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from kafka_compat.errors import ErrorCode, KafkaError, known_code
from kafka_compat.protocol.schema import fields_of

TopicPartition = tuple[str, int]

PASSING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
"""Errors after which Kafka's clients retry, because a new leader or new metadata may resolve them."""


def check(code: int, message: str | None = "") -> None:
    """Raise KafkaError unless the error code is 0."""
    if code:
        raise KafkaError(known_code(code), message or "")


def error_codes(answer: Any) -> Iterator[int]:
    """Yield all error codes in a response."""
    for spec in fields_of(type(answer)):
        value = getattr(answer, spec.name)
        if spec.name.endswith("error_code"):
            yield value
        elif isinstance(value, list) and value and hasattr(type(value[0]), "__fields__"):
            for part in value:
                yield from error_codes(part)


def each_partition(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, Any]]:
    """Yield each partition in a response's topics, with its entry in the response."""
    for topic in topics:
        for one in topic.partitions:
            yield (topic.name, one.partition_index), one


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, in order of appearance."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
