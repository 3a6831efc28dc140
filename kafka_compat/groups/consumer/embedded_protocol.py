"""The consumer protocol that is embedded in JoinGroup and SyncGroup: subscriptions and assignments.

The broker reads and writes it for classic members of consumer groups, and to convert groups (KIP-848).
"""

from collections.abc import Collection, Mapping
from struct import calcsize, unpack_from
from struct import error as StructError
from typing import Final, NamedTuple

from kafka_compat.long_work import Steps, batched, sorted_in_steps
from kafka_compat.protocol.codec import MalformedRequest, decode, encode_versioned
from kafka_compat.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
)

_NEWEST_VERSION: Final = 3
_FIRST_VERSION_WITH_OWNED: Final = 1
_FIRST_VERSION_WITH_RACK: Final = 3
_GENERATION_SIZE: Final = 4

NamedPartitions = Mapping[str, Collection[int]]
"""Maps topic names to partitions."""


class Subscription(NamedTuple):
    """The topics of a member, the partitions that it owns, and its rack (empty: none)."""

    topics: tuple[str, ...]
    owned: NamedPartitions
    rack_id: str


class EmbeddedAssignment(NamedTuple):
    """The partitions of a member, and the data of a custom assignor (empty: none)."""

    partitions: NamedPartitions
    user_data: bytes


def read_subscription(metadata: bytes) -> Steps[Subscription]:
    """Decode the metadata of a protocol in JoinGroup, in steps: it may list very many topics or partitions.
    Raises MalformedRequest.
    """
    version = _version(metadata)
    reader = _Reader(metadata, 2)
    topics: set[str] = set()
    owned: dict[str, list[int]] = {}
    rack_id = ""
    try:
        for _ in range(reader.size(">i")):
            topics.add(reader.text())
            yield None
        reader.skip(max(reader.number(">i"), 0))
        for _ in range(reader.size(">i") if version >= _FIRST_VERSION_WITH_OWNED else 0):
            topic = reader.text()
            partitions = owned[topic] = []
            for some in batched(range(reader.size(">i"))):
                partitions += reader.numbers(len(some))
                yield None
        if version >= _FIRST_VERSION_WITH_RACK:
            reader.skip(_GENERATION_SIZE)
            rack_id = reader.nullable_text() or ""
    except (StructError, UnicodeDecodeError, ValueError) as error:
        raise MalformedRequest(f"The subscription cannot be decoded: {error}") from None
    ordered = yield from sorted_in_steps(topics)
    return Subscription(tuple(ordered), owned, rack_id)


class _Reader:
    """Reads the fields of a message from bytes. Raises StructError, UnicodeDecodeError or ValueError."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def number(self, layout: str) -> int:
        (value,) = unpack_from(layout, self._data, self._position)
        self._position += calcsize(layout)
        return int(value)

    def numbers(self, count: int) -> tuple[int, ...]:
        """Read 32-bit integers."""
        values = unpack_from(f">{count}i", self._data, self._position)
        self._position += 4 * count
        return values

    def size(self, layout: str) -> int:
        size = self.number(layout)
        if size < 0:
            raise ValueError(f"the size {size} is negative")
        return size

    def skip(self, size: int) -> None:
        self._position += size
        if self._position > len(self._data):
            raise ValueError("a field runs past the end")

    def text(self) -> str:
        text = self.nullable_text()
        if text is None:
            raise ValueError("a string is null")
        return text

    def nullable_text(self) -> str | None:
        size = self.number(">h")
        if size < 0:
            return None
        start = self._position
        self.skip(size)
        return self._data[start : self._position].decode()


def read_assignment(assignment: bytes) -> EmbeddedAssignment:
    """Decode the assignment of a member. Raises MalformedRequest."""
    if not assignment:
        return EmbeddedAssignment({}, b"")
    found = decode(ConsumerProtocolAssignment, _version(assignment), assignment, 2)
    partitions = {each.topic: each.partitions for each in found.assigned_partitions}
    return EmbeddedAssignment(partitions, bytes(found.user_data or b""))


def encode_assignment(partitions: NamedPartitions, metadata: bytes) -> bytes:
    """Encode an assignment in the version of the member's metadata."""
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=list(numbers))
            for topic, numbers in partitions.items()
        ]
    )
    return encode_versioned(assignment, _version(metadata))


def _version(data: bytes) -> int:
    """Return the version of the data. Newer versions begin with the fields of the newest known version."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        raise MalformedRequest("The consumer protocol has no valid version")
    return min(version, _NEWEST_VERSION)
