"""Combination of state batches: the stored ones of a share-partition with those of a write.

Rules
1. Offsets below the start offset are cut off.
2. Where batches overlap, the higher delivery count is kept, and of equal delivery counts the higher delivery
   state. The order of the batches is therefore irrelevant.
3. Neighbors with the same state and delivery count become one batch.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from kafka_compat.long_work import Steps, finished
from kafka_compat.share_coordinator.persister import UNKNOWN_OFFSET, StateBatch

BATCHES_MAX = 10_000
"""Maximum number of batches in a write, after they have been combined: the highest possible limit of records
in flight. In Kafka, the limit is the size of a record, which is reached with 52,000 batches by default.
"""
_AT_ONCE = 1_000


def is_valid(batch: StateBatch, start_offset: int) -> bool:
    """Return whether the part of a batch that is not below the start offset contains any record."""
    return batch.first_offset <= batch.last_offset or batch.last_offset < start_offset


def combine(
    stored: tuple[StateBatch, ...], new: Sequence[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Return the combined batches in the order of their offsets. `stored` is the result of an earlier call,
    and all batches are valid (see `is_valid`).
    """
    cut = _cut(stored, start_offset)
    added = sorted(_cut(new, start_offset))
    if not added:
        return tuple(cut)
    # Only batches that overlap the new batches, or are their neighbors, can change.
    low = bisect_left(cut, added[0].first_offset - 1, key=_last_offset)
    high = bisect_right(cut, max(map(_last_offset, added)) + 1, key=_first_offset)
    return (*cut[:low], *_merged(sorted({*cut[low:high], *added})), *cut[high:])


def combine_in_steps(new: Iterable[Sequence[StateBatch]]) -> Steps[tuple[StateBatch, ...]]:
    """Combine the many batches of a write with each other. `new` yields some of them at a time. The result
    has the same effect on any state. At most BATCHES_MAX + 1 batches are returned.
    """
    invalid: StateBatch | None = None
    parts: list[list[StateBatch]] = []
    for some in new:
        yield None
        valid = [each for each in some if each.first_offset <= each.last_offset]
        refused = [each for each in some if each.first_offset > each.last_offset]
        if refused:
            # If the write is rejected for any of the invalid batches, it is for the one that ends last.
            invalid = max((*refused, *([invalid] if invalid else ())), key=_last_offset)
        if valid:
            parts.append(_merged(sorted(valid)))
    while len(parts) > 1:
        joined: list[list[StateBatch]] = []
        while parts:
            yield None
            # Two sorted lists are merged in linear time.
            found = yield from _merging(sorted([*parts.pop(), *(parts.pop() if parts else ())]))
            joined.append(found)
            if len(found) > BATCHES_MAX:
                del found[BATCHES_MAX + 1 :]
                # Freeing hundreds of thousands of batches at once would take long.
                for rest in (parts, joined):
                    while len(rest) > 1:
                        rest.pop(0)
                        yield None
                return tuple(found)
        parts = joined
    found = parts[0] if parts else []
    return (*found, invalid) if invalid is not None else tuple(found)


def _first_offset(batch: StateBatch) -> int:
    return batch.first_offset


def _last_offset(batch: StateBatch) -> int:
    return batch.last_offset


def _cut(batches: Sequence[StateBatch], start_offset: int) -> list[StateBatch]:
    if start_offset == UNKNOWN_OFFSET:
        return list(batches)
    return [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    ]


def _merged(batches: list[StateBatch]) -> list[StateBatch]:
    """Merge batches, sorted by first offset."""
    return finished(_merging(batches))


def _merging(batches: list[StateBatch]) -> Steps[list[StateBatch]]:
    """Merge batches, sorted by first offset, by a sweep over their offsets."""
    if _are_apart(batches):
        return batches
    merged: list[StateBatch] = []
    covering: list[tuple[int, int, int]] = []
    """The batches that begin at or before `offset`, the one to keep first: negative delivery count, negative
    state, last offset. Batches that have ended are removed when they become the first.
    """
    position, offset = 0, 0
    count_of_batches = len(batches)
    pause_at = _AT_ONCE
    while position < count_of_batches or covering:
        if position >= pause_at:
            pause_at = position + _AT_ONCE
            yield None
        if not covering:
            batch = batches[position]
            offset = batch.first_offset
            if position + 1 == count_of_batches or batch.last_offset < batches[position + 1].first_offset:
                # The batch overlaps no other one.
                _append(merged, batch)
                position += 1
                continue
        while position < len(batches) and batches[position].first_offset <= offset:
            batch = batches[position]
            heappush(covering, (-batch.delivery_count, -batch.delivery_state, batch.last_offset))
            position += 1
        while covering and covering[0][2] < offset:
            heappop(covering)
        if not covering:
            continue
        count, state, last_offset = covering[0]
        if position < len(batches):
            last_offset = min(last_offset, batches[position].first_offset - 1)
        _append(merged, StateBatch(offset, last_offset, -state, -count))
        offset = last_offset + 1
    return merged


def _are_apart(batches: list[StateBatch]) -> bool:
    """Return whether there is an offset between all neighbors, so that nothing can be merged."""
    firsts = [batch[0] for batch in batches]
    lasts = [batch[1] for batch in batches]
    return all(last + 1 < first for last, first in zip(lasts, firsts[1:], strict=False))


def _append(merged: list[StateBatch], batch: StateBatch) -> None:
    if merged:
        last = merged[-1]
        if last.last_offset + 1 == batch.first_offset and last[2:] == batch[2:]:
            merged[-1] = last._replace(last_offset=batch.last_offset)
            return
    merged.append(batch)
