"""The time that a follower waits after an error before it fetches from its leader again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from kafka_compat.clock import SystemClock
from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafka_compat.replication.follower import Follower, FollowerSettings
from kafka_compat.replication.partition import Partition
from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.directories.log_dirs import LogDirs

_TOPIC_ID = uuid4()


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    log_dirs = LogDirs(
        [str(tmp_path)], broker_id=1, cluster_id="c", clock=SystemClock(), config_for=lambda _: LogConfig()
    )
    log_dirs.load()
    soon: list[Callable[[], None]] = []
    partition = Partition(
        log_dirs.create("t", 0, _TOPIC_ID),
        1,
        None,  # type: ignore[arg-type]
        soon.append,
        monotonic_ms=SystemClock().monotonic_ms,
    )
    partition.become_follower(2, 7, (1, 2))
    yield partition
    log_dirs.close()


def waits_ms(partition: Partition, code: int, times: int) -> list[int]:
    """Return the waiting times after consecutive responses with this error."""
    follower = Follower(1, FollowerSettings(backoff_ms=100), lambda: None)
    follower.add(partition, _TOPIC_ID)
    now_ms, waits = 1_000, []
    for _ in range(times):
        sent = follower.next_fetch(now_ms)
        assert sent is not None
        refused = PartitionData(partition_index=0, error_code=code)
        topic = FetchableTopicResponse(topic_id=_TOPIC_ID, partitions=[refused])
        follower.fetched(sent, FetchResponse(session_id=5, responses=[topic]), now_ms)
        wait_ms = follower.wait_ms(now_ms)
        assert wait_ms is not None and follower.next_fetch(now_ms + wait_ms - 1) is None
        waits.append(wait_ms)
        now_ms += wait_ms
    return waits


@pytest.mark.parametrize(
    "code",
    [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID],
)
def test_a_fetch_is_retried_soon_if_the_leader_has_not_yet_learned_of_its_election(
    partition: Partition, code: ErrorCode
) -> None:
    assert waits_ms(partition, code, 5) == [20, 40, 80, 100, 100]


def test_a_fetch_is_retried_after_the_configured_backoff_for_other_errors(partition: Partition) -> None:
    assert waits_ms(partition, ErrorCode.UNKNOWN_SERVER_ERROR, 2) == [100, 100]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (ErrorCode.UNKNOWN_TOPIC_ID, "The leader of t-0 is not ready (UNKNOWN_TOPIC_ID)"),
        (ErrorCode.KAFKA_STORAGE_ERROR, "The leader of t-0 returned an error: KAFKA_STORAGE_ERROR"),
        (9999, "The leader of t-0 returned an error: error code 9999"),
    ],
)
def test_the_log_names_the_error_of_a_leader(
    partition: Partition, code: int, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "kafka_compat"):
        waits_ms(partition, code, 1)
    assert line in caplog.messages
