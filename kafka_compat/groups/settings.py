"""GroupSettings from the broker's configuration."""

from __future__ import annotations

from kafka_compat.config import BrokerConfig
from kafka_compat.groups.group_states import GroupSettings


def group_settings(config: BrokerConfig) -> GroupSettings:
    """What server.properties says about groups."""
    return GroupSettings(
        group_min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
        group_max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
        group_max_size=config.int("group.max.size"),
        group_initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
        offset_metadata_max_bytes=config.int("offset.metadata.max.bytes"),
        offsets_commit_timeout_ms=config.int("offsets.commit.timeout.ms"),
        offsets_retention_ms=config.int("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=config.int("offsets.retention.check.interval.ms"),
    )
