"""What kafka-producer-perf-test reckons and prints; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

_SAMPLES_MAX: Final = 500_000
_MEBIBYTE: Final = 1024 * 1024
_SHARES: Final = (0.5, 0.95, 0.99, 0.999)


class Statistics:
    """Times are ms of one clock; sizes bytes of records' values. `of_steady_state`: of what comes after the
    records to warm up.
    """

    def __init__(
        self, records: int, interval_ms: int, now_ms: float, *, of_steady_state: bool = False
    ) -> None:
        self._of_steady_state = of_steady_state
        self._sampling = max(records // min(records, _SAMPLES_MAX), 1)
        self._interval_ms = interval_ms
        self._start_ms = now_ms
        self._latencies_ms: list[int] = []
        self.count = 0
        self._bytes = 0
        self._latency_ms = 0
        self._latency_max_ms = 0
        self._new_window(now_ms)

    def _new_window(self, now_ms: float) -> None:
        self._window_start_ms = now_ms
        self._window_count = self._window_bytes = self._window_latency_ms = self._window_max_ms = 0

    def record(self, latency_ms: int, size_bytes: int, now_ms: float) -> str | None:
        """One is stored; the line for the time since the last one, when it is time for that."""
        if self.count % self._sampling == 0:
            self._latencies_ms.append(latency_ms)
        self.count += 1
        self._bytes += size_bytes
        self._latency_ms += latency_ms
        self._latency_max_ms = max(self._latency_max_ms, latency_ms)
        self._window_count += 1
        self._window_bytes += size_bytes
        self._window_latency_ms += latency_ms
        self._window_max_ms = max(self._window_max_ms, latency_ms)
        elapsed_ms = now_ms - self._window_start_ms
        if elapsed_ms < self._interval_ms:
            return None
        first = self._of_steady_state and self.count == self._window_count
        line = ("In steady state.\n" if first else "") + (
            f"{self._window_count} records sent, {1000 * self._window_count / elapsed_ms:.1f} records/sec "
            f"({1000 * self._window_bytes / elapsed_ms / _MEBIBYTE:.2f} MB/sec), "
            f"{self._window_latency_ms / self._window_count:.1f} ms avg latency, "
            f"{float(self._window_max_ms):.1f} ms max latency."
        )
        self._new_window(now_ms)
        return line

    def total(self, now_ms: float) -> dict[str, Any]:
        """Of the whole run; the percentiles in ms, by their names."""
        elapsed_ms = max(now_ms - self._start_ms, 1)
        return {
            "records": self.count,
            "records_per_s": 1000 * self.count / elapsed_ms,
            "mebibytes_per_s": 1000 * self._bytes / elapsed_ms / _MEBIBYTE,
            "latency_ms_avg": self._latency_ms / self.count if self.count else 0.0,
            "latency_ms_max": float(self._latency_max_ms),
            "latency_ms": dict(
                zip(("50th", "95th", "99th", "99.9th"), _percentiles(self._latencies_ms), strict=True)
            ),
        }

    def total_line(self, now_ms: float) -> str:
        """The same, as a line."""
        found = self.total(now_ms)
        steady = " steady state" if self._of_steady_state else ""
        shares = ", ".join(f"{value} ms {name}" for name, value in found["latency_ms"].items())
        return (
            f"{found['records']}{steady} records sent, {found['records_per_s']:f} records/sec "
            f"({found['mebibytes_per_s']:.2f} MB/sec), {found['latency_ms_avg']:.2f} ms avg latency, "
            f"{found['latency_ms_max']:.2f} ms max latency, {shares}."
        )


def _percentiles(latencies_ms: Sequence[int]) -> list[int]:
    ordered = sorted(latencies_ms) or [0]
    return [ordered[min(int(share * len(ordered)), len(ordered) - 1)] for share in _SHARES]
