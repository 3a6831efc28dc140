"""Rates and latencies of a quorum node, with the meaning of Kafka's raft-metrics. No I/O and no clock."""

from collections import deque

WINDOW_MS = 60_000
"""Time that rates, averages and maxima cover: the two samples of 30 s of Kafka's defaults."""
_SAMPLES = 12


class _Windowed:
    """Sums of the last minute in samples of five seconds."""

    def __init__(self) -> None:
        self._samples: deque[list[float]] = deque(maxlen=_SAMPLES)

    def record(self, value: float, now_ms: float) -> None:
        start = now_ms // (WINDOW_MS / _SAMPLES)
        if not self._samples or self._samples[-1][0] != start:
            self._samples.append([start, 0.0, 0.0, 0.0])
        sample = self._samples[-1]
        sample[1] += value
        sample[2] += 1
        sample[3] = max(sample[3], value)

    def current(self, now_ms: float) -> list[list[float]]:
        oldest = now_ms // (WINDOW_MS / _SAMPLES) - _SAMPLES
        return [sample for sample in self._samples if sample[0] > oldest]


class Rate:
    """The average rate of the last minute."""

    def __init__(self) -> None:
        self._window = _Windowed()

    def record(self, count: int, now_ms: float) -> None:
        """Count events. `now_ms` is monotonic."""
        self._window.record(count, now_ms)

    def per_second(self, now_ms: float) -> float:
        return sum(sample[1] for sample in self._window.current(now_ms)) * 1000 / WINDOW_MS


class Latency:
    """The average and the maximum of the last minute, in milliseconds. Both are None without values."""

    def __init__(self) -> None:
        self._window = _Windowed()

    def record(self, latency_ms: float, now_ms: float) -> None:
        """Record a latency. `now_ms` is monotonic."""
        self._window.record(latency_ms, now_ms)

    def average_ms(self, now_ms: float) -> float | None:
        samples = self._window.current(now_ms)
        count = sum(sample[2] for sample in samples)
        return sum(sample[1] for sample in samples) / count if count else None

    def max_ms(self, now_ms: float) -> float | None:
        return max((sample[3] for sample in self._window.current(now_ms)), default=None)


class QuorumStatistics:
    """The statistics of one node. Times are those of a monotonic clock, in milliseconds."""

    def __init__(self) -> None:
        self.appended_records = Rate()
        """Records that this node appended as leader."""
        self.fetched_records = Rate()
        """Records that this node fetched from the leader."""
        self.commits = Latency()
        """Times from an append by this leader until the high watermark passed it."""
        self.elections = Latency()
        """Times from the loss of a leader, or from startup, until this node knew a leader."""
        self._uncommitted: deque[tuple[int, float]] = deque()
        self._searching_since_ms: float | None = None

    def appended(self, count: int, end_offset: int, now_ms: float) -> None:
        """Record that this leader appended records. `end_offset` is the offset after the last one."""
        self.appended_records.record(count, now_ms)
        self._uncommitted.append((end_offset, now_ms))

    def committed(self, high_watermark: int, now_ms: float) -> None:
        """Record that the high watermark has advanced."""
        while self._uncommitted and self._uncommitted[0][0] <= high_watermark:
            self.commits.record(now_ms - self._uncommitted.popleft()[1], now_ms)

    def role_changed(self, *, is_leader: bool, knows_leader: bool, now_ms: float) -> None:
        """Record the role of this node, and whether it knows a leader."""
        if not is_leader:
            self._uncommitted.clear()
        if not knows_leader:
            if self._searching_since_ms is None:
                self._searching_since_ms = now_ms
        elif self._searching_since_ms is not None:
            self.elections.record(now_ms - self._searching_since_ms, now_ms)
            self._searching_since_ms = None
