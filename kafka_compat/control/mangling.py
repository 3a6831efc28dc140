"""Answers that are cut off, or have bytes that are not what was sent. Pure but for records that are read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from kafka_compat.control.subjects import IsMeant, Subject
from kafka_compat.storage.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC_POSITION

_FLIPPED_MAX = 8
_START_BYTES = 8
"""Of the size of an answer and its correlation id: with others a client does not know whose it is."""
_BATCH_LENGTH = slice(8, LOG_OVERHEAD)


def cut(whole: bytes) -> bytes:
    """Half of an answer."""
    return whole[: len(whole) // 2]


def corrupt(chance: random.Random) -> Callable[[bytes], bytes]:
    """Another bit in up to eight bytes."""

    def mangle(whole: bytes) -> bytes:
        return _flipped(whole, _START_BYTES, len(whole), chance)

    return mangle


def corrupt_records(
    response: Any,
    subjects: list[Subject],
    is_meant: IsMeant,
    is_due: Callable[[], bool],
    chance: random.Random,
) -> None:
    """Have the first batch of each partition of a Fetch's answer not be what its checksum says."""
    meant = {
        (subject.known_as, subject.partition)
        for subject in subjects
        if is_meant(subject.topic, subject.partition)
    }
    found = [
        data
        for topic, data in _with_records(response)
        if meant & {(topic.topic, data.partition_index), (topic.topic_id, data.partition_index)}
    ]
    if found and is_due():
        for data in found:
            records = bytes(data.records.read() if hasattr(data.records, "read") else data.records)
            end = LOG_OVERHEAD + int.from_bytes(records[_BATCH_LENGTH], "big")
            start = HEADER_SIZE if end > HEADER_SIZE else MAGIC_POSITION + 1
            data.records = _flipped(records, start, min(end, len(records)), chance)


def _with_records(response: Any) -> Iterator[tuple[Any, Any]]:
    for topic in response.responses:
        for data in topic.partitions:
            if data.records:
                yield topic, data


def _flipped(whole: bytes, start: int, end: int, chance: random.Random) -> bytes:
    changed = bytearray(whole)
    places = range(start, end)
    for place in chance.sample(places, min(_FLIPPED_MAX, len(places))):
        changed[place] ^= 1 << chance.randrange(8)
    return bytes(changed)
