"""Metrics that Kafka does not have, and the process metrics of Prometheus's client libraries."""

import os
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kafka_compat.long_work import Steps
from kafka_compat.metrics.beans import Beans
from kafka_compat.metrics.cluster_view import RunningBroker
from kafka_compat.metrics.dialects import Bean
from kafka_compat.metrics.family import COUNTER, GAUGE
from kafka_compat.metrics.loop_watch import LoopWatch

_PROC: Final = Path("/proc/self")
_BOOTED: Final = Path("/proc/stat")


def loop(watch: LoopWatch, beans: Beans) -> None:
    """Add the metrics of the event loop."""
    beans.own("kafka_compat_loop_stalls_total", COUNTER, "Number of stalls of the event loop", watch.stalls)
    beans.own(
        "kafka_compat_loop_stall_seconds_total",
        COUNTER,
        "Total duration of the stalls of the event loop",
        watch.stalled_s,
    )
    beans.own(
        "kafka_compat_loop_busy_seconds_total",
        COUNTER,
        "CPU time of the thread of the event loop",
        watch.busy_s,
    )


def requests(brokers: Sequence[RunningBroker], beans: Beans) -> None:
    """Add the number of waiting requests, and the fetched bytes by send method (copied or sendfile)."""
    replicas = [each.services.replicas for each in brokers]
    parked = sum(len(one.delayed_fetches) + one.delayed_produces for one in replicas)
    beans.own("kafka_compat_parked_requests", GAUGE, "Requests that wait for records or replicas", parked)
    copied = sum(each.partitions.fetched_copied_bytes for each in brokers)
    by_kernel = sum(each.partitions.fetched_sendfile_bytes for each in brokers)
    for way, value in (("copied", copied), ("sendfile", by_kernel)):
        beans.own(
            "kafka_compat_fetched_bytes_total",
            COUNTER,
            "Bytes of records in responses, by method of sending",
            value,
            {"way": way},
        )


class _Proc(NamedTuple):
    open_fds: int
    started_s: float
    virtual_bytes: int
    resident_bytes: int
    read_bytes: int
    written_bytes: int


def _proc() -> _Proc | None:
    """Return the process figures from /proc, or None if the system has no /proc. Call this function in
    another thread, because counting file descriptors can take a long time.
    """
    try:
        open_fds = len(os.listdir(_PROC / "fd"))
        fields = (_PROC / "stat").read_text().rpartition(")")[2].split()
        lines = _BOOTED.read_text().splitlines()
        io = dict(line.split(": ") for line in (_PROC / "io").read_text().splitlines())
    except OSError:
        return None
    booted_s = next((int(line.split()[1]) for line in lines if line.startswith("btime")), 0)
    return _Proc(
        open_fds,
        booted_s + int(fields[19]) / os.sysconf("SC_CLK_TCK"),
        int(fields[20]),
        int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
        int(io["read_bytes"]),
        int(io["write_bytes"]),
    )


def process(beans: Beans) -> Steps[None]:
    """Add the process metrics of Prometheus's client libraries, as far as the system reports them."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    beans.own(
        "process_cpu_seconds_total",
        COUNTER,
        "Total user and system CPU time spent in seconds.",
        used.ru_utime + used.ru_stime,
    )
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    beans.own("process_max_fds", GAUGE, "Maximum number of open file descriptors.", limit)
    proc: _Proc | None = yield _proc
    if proc is None:
        return
    for name, help_text, value in (
        ("open_fds", "Number of open file descriptors.", proc.open_fds),
        ("start_time_seconds", "Start time of the process since unix epoch in seconds.", proc.started_s),
        ("virtual_memory_bytes", "Virtual memory size in bytes.", proc.virtual_bytes),
        ("resident_memory_bytes", "Resident memory size in bytes.", proc.resident_bytes),
    ):
        beans.own(f"process_{name}", GAUGE, help_text, value)
    beans.gauge(Bean("server", "KafkaServer", "linux-disk-read-bytes"), proc.read_bytes)
    beans.gauge(Bean("server", "KafkaServer", "linux-disk-write-bytes"), proc.written_bytes)
