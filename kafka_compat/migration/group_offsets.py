"""`kafka-compat migrate offsets`: copy groups' committed offsets from a cluster to its mirror.

Rules
1. An offset is translated to the place of the first mirrored record that the group has not processed
   (translated_offsets.py). The group misses no record and repeats none, as after a restart.
2. If the mirror lacks records before the committed offset, nothing is committed for the partition, because
   the group would process them again.
3. A committed offset of the mirror never moves back.
4. Groups with members in the mirror are left alone, because their members commit themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_compat.client.cluster import Cluster
from kafka_compat.client.fetcher import Fetcher, FetchSettings
from kafka_compat.client.groups import (
    DEAD,
    EMPTY,
    Committed,
    commit_offsets,
    committed_offsets,
    describe_group,
    list_groups,
)
from kafka_compat.client.leaders import EARLIEST, LATEST, list_offsets
from kafka_compat.client.partitions import each_partition
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.migration.translated_offsets import Mirrored, Translated, origin_in, translated

if TYPE_CHECKING:
    from kafka_compat.client.consumed import Consumed
    from kafka_compat.client.partitions import TopicPartition

CLIENT_ID: Final = "kafka-compat-migrate"
COPIED: Final = "copied"
_SETTINGS: Final = FetchSettings(
    read_committed=True, reset=EARLIEST, partition_max_bytes=64 * 1024, allow_auto_create=False
)
_POLL_S: Final = 0.5


class Copy(NamedTuple):
    """One committed offset of the original cluster, and what became of it. `note` is COPIED, or why the
    offset was not copied. `new_offset` is None if there is none.
    """

    group: str
    topic: str
    partition: int
    offset: int
    new_offset: int | None
    note: str

    @property
    def is_done(self) -> bool:
        """Whether the mirror has an offset from which the group continues without a gap."""
        return self.note == COPIED


def copy_offsets(
    original: Cluster, mirror: Cluster, groups: list[str] | None, *, dry_run: bool = False
) -> Iterator[Copy]:
    """Copy the offsets of these groups, or of all consumer groups, and yield each of them. Raises KafkaError
    and the errors of `Cluster.ask` if a cluster fails.
    """
    names = groups if groups is not None else sorted(each.group_id for each in list_groups(original))
    topics = {place for place, _ in each_partition(mirror.metadata(None).topics)}
    places = _Places(original, mirror, topics)
    for group in names:
        yield from _copy_group(group, places, original, mirror, dry_run)


def _copy_group(
    group: str, places: _Places, original: Cluster, mirror: Cluster, dry_run: bool
) -> Iterator[Copy]:
    wanted = {
        place: committed
        for place, committed in sorted(committed_offsets(original, group, require_stable=True).items())
    }
    state = _state(mirror, group)
    present: Mapping[TopicPartition, Committed] = {}
    if state in (EMPTY, DEAD):
        present = committed_offsets(mirror, group)
    copies, new = [], {}
    for place, committed in wanted.items():
        offset, note = None, f"the group has members in the new cluster ({state}): stop them"
        if state in (EMPTY, DEAD):
            offset, note = places.translate(place, committed.offset)
        before = present.get(place)
        if offset is not None and note == COPIED and before is not None and before.offset > offset:
            offset = before.offset
        elif offset is not None and note == COPIED:
            new[place] = Committed(offset, metadata=committed.metadata)
        copies.append(Copy(group, *place, committed.offset, offset, note))
    if new and not dry_run:
        try:
            commit_offsets(mirror, group, new)
        except KafkaError as error:
            reason = f"not committed: {error.code.name}"
            copies = [each._replace(note=reason) if each.is_done else each for each in copies]
    yield from copies


def _state(cluster: Cluster, group: str) -> str:
    try:
        return describe_group(cluster, group).state
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return DEAD
        raise


class _Places:
    """Translation of offsets with both clusters."""

    def __init__(self, original: Cluster, mirror: Cluster, mirrored: set[TopicPartition]) -> None:
        self._original = original
        self._mirror = mirror
        self._mirrored = mirrored

    def translate(self, place: TopicPartition, offset: int) -> tuple[int | None, str]:
        """Return the offset in the mirror, or None, and COPIED or a reason."""
        if place not in self._mirrored:
            return None, "the new cluster does not have this partition: mirror its topic first"
        start = list_offsets(self._mirror, {place: EARLIEST})[place].offset
        end = list_offsets(self._mirror, {place: LATEST}, read_committed=True)[place].offset
        found = self._search(place, offset, start, end)
        if found.next_original is None and (missing := self._first_missing(place, offset, found)) is not None:
            return None, f"the mirror lacks offset {missing}: let `pipeline mirror` catch up, and try again"
        return found.offset, COPIED

    def _search(self, place: TopicPartition, offset: int, start: int, end: int) -> Translated:
        fetcher = Fetcher(self._mirror, _SETTINGS)
        probes = translated(offset, start, end)
        try:
            wanted = next(probes)
            while True:
                found = _first(fetcher, place, wanted, end, partial(_mirrored, place))
                wanted = probes.send(found)
        except StopIteration as stop:
            result: Translated = stop.value
            return result

    def _first_missing(self, place: TopicPartition, offset: int, found: Translated) -> int | None:
        """Return the first record of the original between the last mirrored one and `offset`, if any."""
        start = list_offsets(self._original, {place: EARLIEST})[place].offset
        if found.last_original is not None:
            start = max(start, found.last_original + 1)
        if start >= offset:
            return None
        record = _first(Fetcher(self._original, _SETTINGS), place, start, offset, _itself)
        return None if record is None or record.offset >= offset else record.offset


def _first(
    fetcher: Fetcher,
    place: TopicPartition,
    offset: int,
    end: int,
    convert: Callable[[Consumed], Mirrored | None],
) -> Mirrored | None:
    """Return the first record at or after `offset` that `convert` accepts, or None if there is none before
    `end`.
    """
    fetcher.assign({place: offset})
    while True:
        record = fetcher.take()
        if record is None:
            if fetcher.consumed_to().get(place, offset) >= end:
                return None
            fetcher.poll(_POLL_S)
        elif record.offset >= end:
            return None
        elif (found := convert(record)) is not None:
            return found


def _mirrored(place: TopicPartition, record: Consumed) -> Mirrored | None:
    original = origin_in(record.headers, *place)
    return None if original is None else Mirrored(record.offset, original)


def _itself(record: Consumed) -> Mirrored:
    return Mirrored(record.offset, record.offset)
