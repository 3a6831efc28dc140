"""The progress of a share group: start offset and lag of its share-partitions (KIP-1226)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kafka_compat.errors import ErrorCode
from kafka_compat.share_coordinator.persister import (
    UNKNOWN_COUNT,
    UNKNOWN_OFFSET,
    Persister,
    SharePartitionKey,
    StateSummary,
)

if TYPE_CHECKING:
    from uuid import UUID

_AT_ONCE = 50
"""Number of summaries that are requested at once."""

Place = tuple[str, int]


class PartitionProgress(NamedTuple):
    """`lag` is the number of records still to be delivered, or -1 if it is unknown."""

    error: ErrorCode
    start_offset: int = UNKNOWN_OFFSET
    leader_epoch: int = 0
    lag: int = -1


async def read_summaries(
    persister: Persister,
    group_id: str,
    partitions: "Sequence[tuple[UUID, int]]",
    pause: Callable[[], Awaitable[None]] | None = None,
) -> "dict[tuple[UUID, int], tuple[ErrorCode, StateSummary | None]]":
    """Read the stored summaries of share-partitions. `pause` lets other requests be served in between."""
    found: dict[tuple[UUID, int], tuple[ErrorCode, StateSummary | None]] = {}
    loop = asyncio.get_running_loop()
    for first in range(0, len(partitions), _AT_ONCE):
        some = partitions[first : first + _AT_ONCE]
        read = loop.create_future()
        missing = len(some)

        def done(
            partition: "tuple[UUID, int]",
            error: ErrorCode,
            summary: StateSummary | None,
            read: "asyncio.Future[None]" = read,
        ) -> None:
            nonlocal missing
            found[partition] = (error, summary)
            missing -= 1
            if not missing and not read.done():
                read.set_result(None)

        for partition in some:
            key = SharePartitionKey(group_id, *partition)
            persister.read_summary(key, partial(done, partition))
        await read
        if pause is not None:
            await pause()
    return found


def has_lag(error: ErrorCode, summary: StateSummary | None) -> bool:
    """Return whether the lag of a share-partition can be computed."""
    return (
        not error
        and summary is not None
        and summary.start_offset != UNKNOWN_OFFSET
        and summary.delivery_complete_count != UNKNOWN_COUNT
    )


def progress(
    error: ErrorCode, summary: StateSummary | None, end: tuple[ErrorCode, int] | None
) -> PartitionProgress:
    """Return the progress of a share-partition. `end` is an error code and the end offset of the partition,
    which is needed if `has_lag`.
    """
    if error or summary is None:
        return PartitionProgress(ErrorCode.NONE)
    if not has_lag(error, summary) or end is None:
        return PartitionProgress(ErrorCode.NONE, summary.start_offset, summary.leader_epoch)
    end_error, end_offset = end
    if end_error:
        return PartitionProgress(end_error, 0)
    lag = end_offset - summary.start_offset - summary.delivery_complete_count
    return PartitionProgress(ErrorCode.NONE, summary.start_offset, summary.leader_epoch, lag)


def end_errors(places: Sequence[Place], known: Mapping[Place, int]) -> dict[Place, tuple[ErrorCode, int]]:
    """Return the end offsets of partitions, and an error code for those without one."""
    return {
        place: (ErrorCode.NONE, known[place])
        if place in known
        else (ErrorCode.NOT_LEADER_OR_FOLLOWER, UNKNOWN_OFFSET)
        for place in places
    }
