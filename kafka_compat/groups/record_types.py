"""The common parts of the records of consumer groups (KIP-848) and of share groups (KIP-932).

A table of `RecordType`s says how the records of a type of group are encoded. Each begins with the same
records: the group epoch, the epoch of the target assignment, and the target assignment of each member.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.protocol.codec import MalformedRequest, decode, decode_versioned, encode_versioned

if TYPE_CHECKING:
    from kafka_compat.groups.consumer.assignors.assignor import Assignment

_VALUE_VERSION: Final = 0


class GroupMetadata(NamedTuple):
    """The epoch of a group, and the hash of its topics."""

    epoch: int
    metadata_hash: int


class TargetMetadata(NamedTuple):
    """The group epoch of the target assignment (-1: none), and when it was computed, in ms since the epoch. 0
    means that the next one may be computed at once.
    """

    epoch: int
    timestamp_ms: int


class RecordType(NamedTuple):
    """One type of record. `number` is the version of its key, which Kafka uses as the type.

    The fields of `record` are those of the message `key_message`, followed by `value`. `to_message` converts
    the value to a message, and `from_message` converts the messages of key and value to the value. A value
    without `value_message` is not read.
    """

    record: Callable[..., Any]
    number: int
    key_message: type[Any]
    value_message: type[Any] | None
    to_message: Callable[[Any], Any]
    from_message: Callable[[Any, Any], Any]


class RecordTypes:
    """The encoding of all records of consumer groups and share groups."""

    def __init__(self, types: Iterable[RecordType]) -> None:
        self._by_record: dict[object, RecordType] = {}
        self._by_number: dict[int, RecordType] = {}
        for each in types:
            self._by_record[each.record] = each
            self._by_number[each.number] = each

    def encode(self, record: Any) -> tuple[bytes, bytes | None]:
        """Encode a record as (key, value). A tombstone's value is None. Raises ValueError if text is too
        long.
        """
        each = self._by_record[type(record)]
        *fields, value = record
        key_message = each.key_message(**dict(zip(each.key_message.__slots__, fields, strict=True)))
        key = encode_versioned(key_message, each.number)
        return key, None if value is None else encode_versioned(each.to_message(value), _VALUE_VERSION)

    def decode(self, key: bytes, value: bytes | None) -> Any:
        """Decode a record, or return None for other types of keys. Raises MalformedRequest if it is
        invalid.
        """
        each = self._by_number.get(int.from_bytes(key[:2], "big", signed=True))
        if each is None:
            return None
        try:
            found = decode(each.key_message, each.number, key, 2)
            fields = [getattr(found, name) for name in each.key_message.__slots__]
            if value is None or each.value_message is None:
                return each.record(*fields, value)
            stored, _ = decode_versioned(each.value_message, value)
            return each.record(*fields, each.from_message(found, stored))
        except ValueError as error:
            # For example, a state is unknown, or the numbers of partitions and epochs differ.
            raise MalformedRequest(f"A record of a group is invalid: {error}") from None


def group_metadata(
    record: Callable[..., Any], number: int, key_message: type[Any], value_message: type[Any]
) -> RecordType:
    """Return the type of the record with the group epoch."""
    return RecordType(
        record,
        number,
        key_message,
        value_message,
        lambda value: value_message(epoch=value.epoch, metadata_hash=value.metadata_hash),
        lambda _, stored: GroupMetadata(stored.epoch, stored.metadata_hash),
    )


def target_metadata(
    record: Callable[..., Any], number: int, key_message: type[Any], value_message: type[Any]
) -> RecordType:
    """Return the type of the record with the epoch of the target assignment."""
    return RecordType(
        record,
        number,
        key_message,
        value_message,
        lambda value: value_message(assignment_epoch=value.epoch, assignment_timestamp=value.timestamp_ms),
        lambda _, stored: TargetMetadata(stored.assignment_epoch, stored.assignment_timestamp),
    )


def target_assignment(
    record: Callable[..., Any],
    number: int,
    key_message: type[Any],
    value_message: type[Any],
    topic_message: type[Any],
) -> RecordType:
    """Return the type of the record with a member's part of the target assignment."""
    return RecordType(
        record,
        number,
        key_message,
        value_message,
        lambda value: value_message(topic_partitions=to_topics(value, topic_message)),
        lambda _, stored: from_topics(stored.topic_partitions),
    )


def to_topics(assignment: "Assignment", topic_message: type[Any]) -> list[Any]:
    """Return an assignment as messages."""
    return [
        topic_message(topic_id=topic_id, partitions=list(partitions))
        for topic_id, partitions in assignment.items()
    ]


def from_topics(found: Iterable[Any]) -> "Assignment":
    """Return the assignment that messages contain."""
    return {each.topic_id: tuple(each.partitions) for each in found}
