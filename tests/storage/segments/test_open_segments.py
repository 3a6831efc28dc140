"""The cache of segments' file descriptors and indexes: its limit, eviction, and behavior when no descriptors
are available.
"""

from __future__ import annotations

import errno
import gc
import os
import random
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.storage.config import LogConfig
from kafka_compat.storage.filesystem import Buffer, OsFile, RealFilesystem
from kafka_compat.storage.log.log import Log
from kafka_compat.storage.segments.open_segments import OpenSegments
from tests.storage.log_support import START_MS, Harness, append, batch, offsets

SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=200, retention_ms=-1)
LOGS, BATCHES = 40, 30


class Segment:
    """The properties of a segment that the cache uses."""

    def __init__(self, *, sealed: bool) -> None:
        self.sealed = sealed
        self.used = False
        self.open = False

    def release(self) -> None:
        self.open = False


@given(
    limit=st.integers(1, 200),
    steps=st.lists(st.tuples(st.sampled_from(["open", "seal", "forget", "spare"]), st.integers(0, 99))),
)
@settings(deadline=None)
def test_open_segments_never_exceed_the_limit(limit: int, steps: list[tuple[str, int]]) -> None:
    cache = OpenSegments(lambda: limit)
    segments = [Segment(sealed=number % 3 > 0) for number in range(100)]
    for step, number in steps + [("open", number) for number in range(100)]:
        segment = segments[number]
        if step == "open":
            segment.open = True
            cache.note(segment)
            assert segment.open, "the most recently opened segment stays open"
        elif step == "seal" and segment.open:
            segment.sealed = not segment.sealed
            cache.note(segment)
        elif step == "forget":
            segment.open = False
            cache.forget(segment)
        elif step == "spare":
            before = sum(segment.open for segment in segments)
            assert cache.spare() == before - sum(segment.open for segment in segments)
        active = sum(segment.open and not segment.sealed for segment in segments)
        sealed = sum(segment.open and segment.sealed for segment in segments)
        assert (active, sealed) == (cache.active_count, cache.sealed_count)
        assert active <= cache.active_max and sealed <= cache.sealed_max


def test_recently_used_segments_stay_open() -> None:
    cache = OpenSegments(lambda: 1)
    busy, *idle = (Segment(sealed=False) for _ in range(100))
    for segment in [busy, *idle]:
        segment.open = True
        cache.note(segment)
        busy.used = True
    assert busy.open
    assert sum(segment.open for segment in idle) == cache.active_max - 1


class WatchedFilesystem(RealFilesystem):
    """Records which files are read completely, and refuses descriptors on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []
        self.refusals = 0

    def _maybe_refuse(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "Too many open files")

    def open(self, path: str) -> OsFile:
        self._maybe_refuse()
        return super().open(path)

    def create(self, path: str) -> OsFile:
        self._maybe_refuse()
        return super().create(path)

    def read_file(self, path: str) -> bytes:
        self._maybe_refuse()
        self.read.append(os.path.basename(path))
        return super().read_file(path)

    def write_file(self, path: str, content: Buffer) -> None:
        self._maybe_refuse()
        super().write_file(path, content)


def descriptors(folder: Path) -> int:
    """Return the number of descriptors that this process has for files in `folder`."""
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{fd}").startswith(str(folder)) and True
        except OSError:
            continue
    return found


def filled(harness: Harness) -> list[Log]:
    logs = [harness.log(partition=number) for number in range(LOGS)]
    for log in logs:
        for number in range(BATCHES):
            append(log, batch(timestamps=[START_MS + number], size_bytes=100))
        assert log.segment_count > 4
    return logs


def contents(log: Log) -> list[int]:
    found: list[int] = []
    while (offset := found[-1] + 1 if found else 0) < log.log_end_offset:
        found += offsets(log, offset)
    return found


def test_startup_and_retention_open_only_active_segments(tmp_path: Path) -> None:
    filesystem = WatchedFilesystem()
    harness = Harness(tmp_path, config=SMALL, filesystem=filesystem)
    filled(harness)
    harness.dirs.close()
    harness.config = LogConfig(segment_bytes=1_000, retention_ms=10_000, retention_bytes=100_000)
    harness.reopen()
    filesystem.read.clear()
    for log in harness.dirs.logs.values():
        assert log.apply_retention(START_MS + 10_000, log.log_end_offset) == []
    assert filesystem.read == []
    assert descriptors(tmp_path) <= LOGS + 1

    # The largest timestamps are nevertheless correct: retention deletes all segments except the last one.
    for log in harness.dirs.logs.values():
        starts = [base for base, _ in log.segment_starts()]
        assert log.apply_retention(START_MS + 10_000 + BATCHES - 1, log.log_end_offset) == starts[:-1]
    assert filesystem.read == []


def test_all_records_are_readable_within_the_descriptor_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (40, 40))
    harness = Harness(tmp_path, config=SMALL)
    allowed = 20 + 8 + 1
    logs = filled(harness)
    assert descriptors(tmp_path) <= allowed
    for _ in range(2):
        chance = random.Random(7)
        for log in chance.sample(logs, LOGS):
            assert contents(log) == list(range(BATCHES))
            log.flush()
            assert descriptors(tmp_path) <= allowed
        logs.clear()
        del log
        harness.crash()
        gc.collect()
        logs = list(harness.dirs.logs.values())
        assert descriptors(tmp_path) <= allowed
    for log in logs:
        assert append(log, batch(size_bytes=100)).first_offset == BATCHES
        log.truncate_to(BATCHES - 9)
        assert contents(log) == list(range(BATCHES - 9))
        assert descriptors(tmp_path) <= allowed


def test_a_slice_stays_readable_after_its_segments_descriptor_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1, 1))
    logs = filled(Harness(tmp_path, config=SMALL))
    part = logs[0].read(0, 100)
    assert part is not None
    before = part.read()
    for log in logs:
        contents(log)
    assert part.read() == os.pread(part.fd, part.size_bytes, part.position) == before


def test_a_failed_open_is_retried_after_closing_other_segments(tmp_path: Path) -> None:
    filesystem = WatchedFilesystem()
    harness = Harness(tmp_path, config=SMALL, filesystem=filesystem)
    logs = filled(harness)
    before = descriptors(tmp_path)
    filesystem.refusals = 2
    assert append(logs[0], batch(size_bytes=850)).first_offset == BATCHES, "the append must roll the segment"
    assert filesystem.refusals == 0
    assert descriptors(tmp_path) < before
    assert not harness.failed


def test_lookups_in_another_thread_see_appended_records(tmp_path: Path) -> None:
    harness = Harness(tmp_path, config=LogConfig(segment_bytes=20_000, index_interval_bytes=100))
    log = harness.log()
    append(log, batch(size_bytes=100))
    wrong: list[object] = []
    done = threading.Event()

    def look() -> None:
        chance = random.Random(1)
        while not done.is_set():
            segment = chance.choice(list(log.segments.all))
            last = log.log_end_offset - 1
            if last < segment.base_offset:
                continue
            offset = chance.randint(segment.base_offset, last)
            try:
                position = segment.indexed_position_of(offset)
                if position < segment.size_bytes:
                    found = int.from_bytes(segment.file.pread(8, position), "big")
                    if found != offset:
                        wrong.append((offset, found))
            except Exception as error:
                wrong.append(error)

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(4_000):
        append(log, batch(size_bytes=100))
    done.set()
    thread.join()
    assert wrong == []
    assert log.segment_count > 20
