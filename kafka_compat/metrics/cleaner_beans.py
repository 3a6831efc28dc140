"""Kafka's metrics of compaction: kafka.log:type=LogCleaner and type=LogCleanerManager.

The figures of a look or a cleaning are those of the last one. Of several brokers in one process the greatest
is reported, as Kafka does with the threads of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_compat.metrics.beans import Beans
from kafka_compat.metrics.dialects import Bean
from kafka_compat.upkeep.cleaner_stats import NEVER

if TYPE_CHECKING:
    from kafka_compat.metrics.cluster_view import RunningBroker
    from kafka_compat.upkeep.cleaner_stats import Cleaning


def cleaner(brokers: Sequence[RunningBroker], beans: Beans) -> None:
    """Of brokers with log.cleaner.enable; nothing where no other is."""
    enabled = [each for each in brokers if each.services.config.bool("log.cleaner.enable")]
    if not enabled:
        return
    stats = [each.cleaner.stats for each in enabled if each.cleaner is not None]
    last = [each.last for each in stats if each.last is not None]
    beans.gauge(_cleaner("cleaner-recopy-percent"), _recopied_percent(last))
    fullest = max((each.utilization for each in last), default=0.0)
    beans.gauge(_cleaner("max-buffer-utilization-percent"), int(100 * fullest))
    beans.gauge(_cleaner("max-clean-time-secs"), max((each.took_ms for each in last), default=0) // 1000)
    overdue_ms = max((each.overdue_ms for each in stats), default=0)
    beans.gauge(_cleaner("max-compaction-delay-secs"), overdue_ms // 1000)
    dirtiest = max((each.dirtiest_ratio for each in stats), default=0.0)
    beans.gauge(_manager("max-dirty-percent"), int(100 * dirtiest))
    # A child that fails is followed by another one.
    beans.gauge(_cleaner("DeadThreadCount"), 0)
    idle_ms = [ms for each in enabled for ms in _idle_ms(each)]
    if idle_ms:
        beans.gauge(_manager("time-since-last-run-ms"), max(idle_ms))
    _uncleanable(enabled, beans)


def _recopied_percent(last: Sequence[Cleaning]) -> int:
    """What was left of what was read."""
    written_bytes = sum(each.written_bytes for each in last)
    return int(100 * written_bytes / max(sum(each.read_bytes for each in last), 1))


def _idle_ms(each: RunningBroker) -> list[int]:
    """For how long logs were not looked at; nothing before there was one to look at."""
    stats = None if each.cleaner is None else each.cleaner.stats
    if stats is None or stats.looked_ms == NEVER:
        return []
    return [each.services.clock.monotonic_ms() - stats.looked_ms]


def _uncleanable(enabled: Sequence[RunningBroker], beans: Beans) -> None:
    partitions: Counter[str] = Counter()
    bytes_left: Counter[str] = Counter()
    for each in enabled:
        for path in each.services.log_dirs.directories:
            partitions[path] += 0
        for log, dirty_bytes in [] if each.cleaner is None else each.cleaner.uncleanable():
            partitions[log.disk.path] += 1
            bytes_left[log.disk.path] += dirty_bytes
    for path, count in partitions.items():
        tags = {"logDirectory": f'"{path}"'}
        beans.gauge(_manager("uncleanable-partitions-count"), count, tags)
        beans.gauge(_manager("uncleanable-bytes"), bytes_left[path], tags)


def _cleaner(name: str) -> Bean:
    return Bean("log", "LogCleaner", name)


def _manager(name: str) -> Bean:
    return Bean("log", "LogCleanerManager", name)
