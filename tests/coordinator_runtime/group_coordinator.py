"""A group coordinator without a broker."""

from __future__ import annotations

from kafka_compat.groups.coordinator import GroupCoordinator
from kafka_compat.groups.settings import GroupSettings
from tests.coordinator_runtime.replicated_log import ReplicatedLog
from tests.groups.consumer.topics import consumer_groups, topic
from tests.groups.memory import WALL_MS, ManualScheduler
from tests.groups.share.memory import no_share_groups

RETENTION_MS = 60_000


def coordinator_of(log: ReplicatedLog, scheduler: ManualScheduler) -> GroupCoordinator:
    return GroupCoordinator(
        coordinator_log=log,
        scheduler=scheduler,
        settings=GroupSettings(
            group_initial_rebalance_delay_ms=0,
            offsets_retention_ms=RETENTION_MS,
            offsets_retention_check_interval_ms=RETENTION_MS // 4,
        ),
        now_ms=lambda: WALL_MS + scheduler.now_ms,
        partition_exists=lambda topic, partition: True,
        consumer_groups=consumer_groups(topic("topic", 2), topic("other", 3)),
        share_groups=no_share_groups(),
    )
