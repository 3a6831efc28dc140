"""The settings of the share coordinator in the broker's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.config import BrokerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCoordinatorSettings:
    """Broker settings `share.coordinator.…`, with Kafka's names and defaults."""

    snapshot_update_records_per_snapshot: int = 500
    cold_partition_snapshot_interval_ms: int = 300_000
    state_topic_prune_interval_ms: int = 300_000
    write_timeout_ms: int = 5_000


def share_coordinator_settings(config: BrokerConfig) -> ShareCoordinatorSettings:
    return ShareCoordinatorSettings(
        snapshot_update_records_per_snapshot=config.int(
            "share.coordinator.snapshot.update.records.per.snapshot"
        ),
        cold_partition_snapshot_interval_ms=config.int(
            "share.coordinator.cold.partition.snapshot.interval.ms"
        ),
        state_topic_prune_interval_ms=config.int("share.coordinator.state.topic.prune.interval.ms"),
        write_timeout_ms=config.int("share.coordinator.write.timeout.ms"),
    )
