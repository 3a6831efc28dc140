"""The cache of record times between scrapes: unchanged logs are not read again, changed ones are."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_compat.lag import time_behind_ms
from kafka_compat.metrics import group_lag
from kafka_compat.metrics.group_lag import RecordTimes
from kafka_compat.storage.log.first_record import first_record_from
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.kinds import ControlRecordType
from kafka_compat.storage.records.records import EndTransactionMarker, build_marker
from tests.storage.log_support import START_MS, Harness, append, batch
from tests.support.steps import result_of

NOW_MS = START_MS + 60_000


class Watched:
    """A partition led by this broker, and the offsets at which its log was read."""

    def __init__(self, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log = log
        self.times = RecordTimes()
        self.reads: list[int] = []
        found = first_record_from

        def counted(log: Log, offset: int, end_offset: int) -> Any:
            self.reads.append(offset)
            return found(log, offset, end_offset)

        monkeypatch.setattr(group_lag, "first_record_from", counted)

    def lag_ms(self, committed: int) -> int | None:
        """Compute the lag in a new scrape."""
        self.times.begin()
        led: Any = SimpleNamespace(
            topic="t", partition=0, log=self.log, high_watermark=self.log.log_end_offset
        )
        return time_behind_ms(result_of(self.times.first_uncommitted_ms(led, committed)), NOW_MS)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(Harness(tmp_path).log(), monkeypatch)


def test_the_timestamp_of_an_offset_is_cached_while_scrapes_use_it(watched: Watched) -> None:
    append(watched.log, batch(timestamps=[START_MS, START_MS + 1, START_MS + 2]))
    assert [watched.lag_ms(0) for _ in range(3)] == [60_000] * 3
    assert watched.reads == [0]
    append(watched.log, batch())
    assert watched.lag_ms(0) == 60_000 and watched.reads == [0]
    assert watched.lag_ms(2) == 59_998 and watched.reads == [0, 2]
    assert watched.lag_ms(4) == 0 and watched.reads == [0, 2]
    assert watched.lag_ms(2) == 59_998, "the entry was evicted, because the previous scrape did not use it"
    assert watched.reads == [0, 2, 2]


def test_markers_are_read_and_skipped_only_once(watched: Watched) -> None:
    append(watched.log, batch(producer_id=7, sequence=0, transactional=True))
    end = build_marker(
        EndTransactionMarker(ControlRecordType.COMMIT, 0), producer_id=7, producer_epoch=0, timestamp=START_MS
    )
    watched.log.append_as_leader(memoryview(bytearray(end)), leader_epoch=0, now_ms=START_MS, internal=True)
    assert [watched.lag_ms(1) for _ in range(2)] == [0, 0]
    assert watched.reads == [1]
    append(watched.log, batch(timestamps=[START_MS + 5]))
    assert [watched.lag_ms(1) for _ in range(2)] == [59_995] * 2
    assert watched.reads == [1, 2]


def test_timestamps_are_read_again_after_a_truncation(watched: Watched) -> None:
    append(watched.log, batch(timestamps=[START_MS]))
    append(watched.log, batch(timestamps=[START_MS + 1]))
    assert watched.lag_ms(1) == 59_999
    watched.log.truncate_to(1)
    assert watched.lag_ms(1) == 0
    append(watched.log, batch(timestamps=[START_MS + 7]))
    assert watched.lag_ms(1) == 59_993


def test_lag_is_zero_for_a_future_timestamp_and_unknown_for_a_missing_timestamp(watched: Watched) -> None:
    append(watched.log, batch(timestamps=[NOW_MS + 1_000]))
    assert watched.lag_ms(0) == 0
    append(watched.log, batch(timestamps=[-1]))
    assert watched.lag_ms(1) is None
