"""Output formats that several commands share."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from kafka_compat.coordinator_runtime.partitioning import java_hash_code
from kafka_compat.tools.failure import Failure, illegal_argument

T = TypeVar("T")

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")

_UUID_BYTES = 16
_UUID_TEXT_MAX = 24


def as_json(value: Any) -> None:
    """Print a value as JSON."""
    import json

    json.dump(value, sys.stdout, indent=2)
    print()


def column(title: str, cells: Sequence[str], width_min: int = 15) -> tuple[str, int, Sequence[str]]:
    """Return a column for `table` that is as wide as its widest cell."""
    return title, max([width_min, *map(len, cells)]), cells


def table(*columns: tuple[str, int, Sequence[str]]) -> list[str]:
    """Return the lines of a table. Each column has a title, a minimum width and cells."""
    lines = zip(*([title, *cells] for title, _, cells in columns), strict=True)
    widths = [width for _, width, _ in columns]
    return [" ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines]


def joined(numbers: list[int], separator: str = ",") -> str:
    return separator.join(map(str, numbers))


def name_of(partition: tuple[str, int]) -> str:
    return f"{partition[0]}-{partition[1]}"


def java_hash(text: str) -> int:
    """Return Java's String.hashCode as an unsigned number."""
    return java_hash_code(text) & 0xFFFFFFFF


def partition_hash(partition: tuple[str, int]) -> int:
    """Return the hash code of TopicPartition in Kafka's Java client, as an unsigned number."""
    return (31 * (31 + partition[1]) + java_hash(partition[0])) & 0xFFFFFFFF


def java_order(keys: Iterable[T], code: Callable[[T], int], *, sized: bool = False) -> list[T]:
    """Sort keys in the iteration order of Java's HashMap, which determines the output of some commands. With
    `sized`, the map was created with capacity for its entries.
    """
    found = list(keys)
    capacity = 1 << (len(found) - 1).bit_length() if sized and found else 16
    while len(found) > capacity * 3 // 4:
        capacity *= 2

    def bucket(key: T) -> int:
        hashed = code(key)
        return (hashed ^ hashed >> 16) & capacity - 1

    return sorted(found, key=bucket)


def base64_of(uuid: UUID) -> str:
    """Return an ID in Kafka's base64 form."""
    import base64

    return base64.urlsafe_b64encode(uuid.bytes).decode().rstrip("=")


def uuid_of(text: str) -> UUID:
    """Parse an ID in Kafka's base64 form. Raises Failure if it is malformed."""
    import base64

    if len(text) > _UUID_TEXT_MAX:
        start = text[:_UUID_TEXT_MAX]
        raise illegal_argument(f"`{start}...` is too long for a base64 UUID")
    if len(text) == 1:
        raise illegal_argument("Input byte[] should at least have 2 bytes for base64 bytes")
    try:
        found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise illegal_argument("Last unit does not have enough valid bits") from None
    if len(found) != _UUID_BYTES:
        size = f"decoded as {len(found)} bytes, expected 16"
        raise illegal_argument(f"Input string `{text}` {size} of a base64-encoded UUID")
    return UUID(bytes=found)


def topic_filter(raw: str) -> Any:
    """Compile a topic list for `fullmatch`, as Kafka's TopicFilter does. Raises Failure if it is invalid."""
    import re

    text = raw.strip().replace(",", "|").replace(" ", "").lstrip("\"'").rstrip("\"'")
    try:
        return re.compile(text)
    except re.error:
        raise Failure("java.lang.RuntimeException", f"{text} is an invalid regex.") from None
