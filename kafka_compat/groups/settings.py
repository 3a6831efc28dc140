"""Settings of consumer groups, derived from the broker's configuration."""

from typing import NamedTuple

from kafka_compat.config import BrokerConfig


class GroupSettings(NamedTuple):
    """Broker settings for groups, with Kafka's names and defaults."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2_147_483_647
    group_initial_rebalance_delay_ms: int = 3_000
    offset_metadata_max_bytes: int = 4_096
    offsets_commit_timeout_ms: int = 5_000
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000


def group_settings(config: BrokerConfig) -> GroupSettings:
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
