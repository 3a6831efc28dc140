"""The cached size of a log: it always matches the sum of its segments' sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.records.records import Record, build_batch
from tests.storage.cleaning_support import clean
from tests.storage.log_support import START_MS, Harness, append

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "append",
                "append",
                "append",
                "roll",
                "truncate",
                "start anew",
                "delete",
                "retain",
                "clean",
                "reopen",
            ]
        ),
        st.floats(0, 1),
    ),
    max_size=40,
)


def check(log: Log, folder: Path) -> None:
    segments = log.segments
    assert segments.size_bytes == sum(segment.size_bytes for segment in segments.all)
    assert log.size_bytes == sum(file.stat().st_size for file in folder.glob("t-0/*.log"))
    assert segments.active is segments.all[-1]
    assert [segment.sealed for segment in segments.all] == [True] * (log.segment_count - 1) + [False]


@given(steps=STEPS)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_tracked_size_is_the_sum_of_the_segment_sizes(
    steps: list[tuple[str, float]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("size")
    config = LogConfig(
        segment_bytes=700,
        index_interval_bytes=100,
        retention_ms=-1,
        retention_bytes=2_000,
        file_delete_delay_ms=0,
        cleanup_policy=frozenset({"compact", "delete"}),
    )
    harness = Harness(folder, config=config)
    log = harness.log()
    for step, share in steps:
        offset = log.log_start_offset + int(share * (log.log_end_offset - log.log_start_offset))
        if step == "append":
            append(log, batch_with_keys(1 + int(share * 3)))
        elif step == "roll":
            # An empty segment is never rolled, because the new segment would have the same base offset.
            if log.segments.active.size_bytes:
                log.roll(START_MS)
        elif step == "truncate":
            log.truncate_to(offset)
        elif step == "start anew":
            log.truncate_fully_and_start_at(offset)
        elif step == "delete":
            log.advance_log_start_offset(offset)
            log.apply_retention(START_MS, log.log_end_offset)
        elif step == "retain":
            log.apply_retention(START_MS, log.log_end_offset)
        elif step == "clean":
            clean(log, None, START_MS)
        else:
            harness.crash()
            log = harness.log()
        check(log, folder)


def batch_with_keys(count: int) -> memoryview:
    records = [
        Record(timestamp=START_MS, key=b"k%d" % (number % 2), value=b"v" * 60) for number in range(count)
    ]
    return memoryview(bytearray(build_batch(records)))
