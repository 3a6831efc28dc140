"""Start offsets and lags of share-partitions (KIP-1226)."""

from __future__ import annotations

from uuid import uuid4

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.groups.share.progress import PartitionProgress, has_lag, progress, read_summaries
from kafka_compat.share_coordinator.persister import SharePartitionKey, StateSummary
from tests.groups.share.memory import MemoryPersister

NONE = ErrorCode.NONE


@pytest.mark.parametrize(
    ("error", "summary", "end", "expected"),
    [
        (NONE, StateSummary(1, 2, 5, 3), (NONE, 20), PartitionProgress(NONE, 5, 2, 12)),
        (NONE, StateSummary(1, 2, -1, 0), None, PartitionProgress(NONE, -1, 2, -1)),
        (NONE, StateSummary(1, 2, 5, -1), None, PartitionProgress(NONE, 5, 2, -1)),
        (NONE, None, None, PartitionProgress(NONE, -1, 0, -1)),
        (ErrorCode.NOT_COORDINATOR, None, None, PartitionProgress(NONE, -1, 0, -1)),
        (
            NONE,
            StateSummary(1, 2, 5, 3),
            (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
            PartitionProgress(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0, 0, -1),
        ),
    ],
)
def test_the_lag_counts_records_that_are_still_to_be_delivered(
    error: ErrorCode,
    summary: StateSummary | None,
    end: tuple[ErrorCode, int] | None,
    expected: PartitionProgress,
) -> None:
    assert has_lag(error, summary) == (end is not None)
    assert progress(error, summary, end) == expected


async def test_summaries_of_many_partitions_are_read() -> None:
    persister = MemoryPersister()
    topic_id = uuid4()
    keys = [(topic_id, each) for each in range(250)]
    for key in keys:
        persister.initialize(SharePartitionKey("g", *key), 1, key[1], lambda error: None)
    found = await read_summaries(persister, "g", keys)
    assert found == {key: (NONE, StateSummary(1, 0, key[1], 0)) for key in keys}
