"""Groups that this process coordinates, at partitions that others lead: their leaders are asked.

What is asked costs others something, so it is asked of those partitions alone in which a group has committed.
Nothing is remembered of them: nobody here would hear that a record was compacted away. Who does not answer in
time is left out.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.long_work import Steps, batched
from kafka_compat.protocol.codec import MalformedRequest
from kafka_compat.storage.errors import StorageError
from kafka_compat.storage.log.timestamp_lookup import ANY_TIMESTAMP, first_of_batch, is_quick
from kafka_compat.storage.records.batch import read_header

if TYPE_CHECKING:
    from kafka_compat.cluster.remote_partitions import RemotePartitions, TopicPartition
    from kafka_compat.metrics.sight import Sight

log = logging.getLogger(__name__)

PATIENCE_S = 3.0
"""Prometheus waits for ten seconds, unless it is told otherwise."""
_AT_ONCE = 16
_BATCHES_MAX = 64
"""Batches of markers that are passed over on the way to a record."""
_UNKNOWN_MS = -1

GroupPartition = tuple[str, str, int]
"""A group at a topic's partition."""


class FarLag(NamedTuple):
    """Of a group at a partition. `since_ms` is the time of the first record that it has not committed: None
    where there is none, -1 where it is not known.
    """

    committed: int
    newest: int
    since_ms: int | None


class _Asked(NamedTuple):
    leader_epochs: dict[TopicPartition, int]
    committed: dict[GroupPartition, int]


async def look_elsewhere(sight: Sight) -> dict[GroupPartition, FarLag]:
    """What is known of them; nothing for a broker that is alone."""
    remote = sight.remote_partitions()
    if remote is None:
        return {}
    found: dict[GroupPartition, FarLag] = {}
    asked = await sight.long_work.finish(_to_ask(sight))
    await asyncio.gather(*(_ask(sight, remote, leader, each, found) for leader, each in asked.items()))
    return found


def _to_ask(sight: Sight) -> Steps[dict[int, _Asked]]:
    """By leader."""
    asked: dict[int, _Asked] = defaultdict(lambda: _Asked({}, {}))
    for coordinator in sight.coordinators():
        for group_id in coordinator.group_ids():
            progress = coordinator.progress(group_id)
            for some in batched(list(progress.committed.items()) if progress is not None else []):
                for (topic, number), position in some:
                    known = sight.metadata.partition(topic, number)
                    leader = None if known is None else sight.metadata.reachable_leader(known)
                    if known is None or leader is None or sight.led(topic, known) is not None:
                        continue
                    at_leader = asked[leader]
                    at_leader.leader_epochs[topic, number] = known.leader_epoch
                    at_leader.committed[group_id, topic, number] = position.value.offset
                yield None
            yield None
    return dict(asked)


async def _ask(
    sight: Sight,
    remote: RemotePartitions,
    leader_id: int,
    asked: _Asked,
    found: dict[GroupPartition, FarLag],
) -> None:
    """Put into `found` what one leader tells."""
    behind: dict[tuple[TopicPartition, int], list[GroupPartition]] = defaultdict(list)
    try:
        async with asyncio.timeout(PATIENCE_S):
            bounds = await remote.bounds(leader_id, asked.leader_epochs)
            for key, committed in asked.committed.items():
                place = key[1:]
                if place in bounds:
                    oldest, newest = bounds[place]
                    is_behind = committed < newest
                    found[key] = FarLag(committed, newest, _UNKNOWN_MS if is_behind else None)
                    if is_behind:
                        behind[place, max(committed, oldest)].append(key)

            async def look(place: TopicPartition, offset: int) -> None:
                epoch, newest = asked.leader_epochs[place], bounds[place].newest
                since_ms = await _since_ms(sight, remote, leader_id, place, epoch, offset, newest)
                for key in behind[place, offset]:
                    found[key] = found[key]._replace(since_ms=since_ms)

            for some in batched(list(behind), _AT_ONCE):
                await asyncio.gather(*starmap(look, some))
    except (ConnectionError, TimeoutError, MalformedRequest) as problem:
        log.info("broker %d does not tell of its partitions: %r", leader_id, problem)


async def _since_ms(
    sight: Sight,
    remote: RemotePartitions,
    leader_id: int,
    place: TopicPartition,
    leader_epoch: int,
    offset: int,
    end_offset: int,
) -> int | None:
    """The time of the first record in [offset, end_offset), as `FarLag` has it."""
    for _ in range(_BATCHES_MAX):
        if offset >= end_offset:
            return None
        data = await remote.batch_at(leader_id, place, leader_epoch, offset)
        if data is None:
            return _UNKNOWN_MS
        if not data:
            return None
        try:
            header = read_header(data)
            if not header.is_control:
                look = partial(first_of_batch, data, header, ANY_TIMESTAMP, offset)
                record = look() if is_quick(header) else await sight.long_work.in_thread(look)
                if record is not None:
                    return record.timestamp if record.offset < end_offset else None
        except StorageError:
            return _UNKNOWN_MS
        offset = header.next_offset
    return _UNKNOWN_MS
