"""Levels of features: defaults, and the rules for changes, which are those of Apache Kafka 4.4.

tests/conformance/test_newest_versions.py compares the rules with Apache Kafka.
"""

from __future__ import annotations

import pytest

from kafka_compat.config import BrokerConfig
from kafka_compat.errors import ErrorCode, KafkaError
from kafka_compat.metadata.features import (
    GROUP_VERSION,
    SHARE_VERSION,
    SUPPORTED,
    TRANSACTION_VERSION,
    FeatureUpdate,
    check_updates,
    effective_levels,
    unsupported_levels,
)

UPGRADE, SAFE, UNSAFE = 1, 2, 3
ON_ZOOKEEPER = {"zookeeper.connect": "127.0.0.1:2181"}
SETTING = "kafka.compat.transaction.version"


@pytest.mark.parametrize(
    ("settings", "stored", "group", "transaction", "share"),
    [
        ({}, {}, 1, 2, 2),
        (ON_ZOOKEEPER, {}, 0, 0, 0),
        ({SETTING: "0"}, {}, 1, 0, 2),
        (ON_ZOOKEEPER | {SETTING: "2"}, {}, 0, 2, 0),
        (ON_ZOOKEEPER | {"kafka.compat.group.version": "1"}, {}, 1, 0, 0),
        (ON_ZOOKEEPER | {"kafka.compat.share.version": "1"}, {}, 0, 0, 1),
        ({"kafka.compat.group.version": "0"}, {}, 0, 2, 2),
        ({}, {GROUP_VERSION: 0}, 0, 2, 2),
        (ON_ZOOKEEPER | {SETTING: "2"}, {TRANSACTION_VERSION: 1, GROUP_VERSION: 1}, 1, 1, 0),
        ({}, {SHARE_VERSION: 1, "streams.version": 0}, 1, 2, 1),
    ],
)
def test_a_stored_level_overrides_the_setting_and_the_default(
    settings: dict[str, str], stored: dict[str, int], group: int, transaction: int, share: int
) -> None:
    levels = effective_levels(BrokerConfig(settings), stored)
    assert levels == {GROUP_VERSION: group, TRANSACTION_VERSION: transaction, SHARE_VERSION: share}


def test_unknown_and_higher_levels_are_unsupported() -> None:
    stored = {GROUP_VERSION: 2, TRANSACTION_VERSION: 2, "streams.version": 1, SHARE_VERSION: 2}
    assert unsupported_levels(stored) == {GROUP_VERSION: 2, "streams.version": 1}


@pytest.mark.parametrize(
    ("current", "update", "problem"),
    [
        (1, FeatureUpdate(TRANSACTION_VERSION, 2, UPGRADE), None),
        (1, FeatureUpdate(TRANSACTION_VERSION, 1, UPGRADE), None),
        (1, FeatureUpdate(TRANSACTION_VERSION, 1, SAFE), None),
        (1, FeatureUpdate(TRANSACTION_VERSION, 0, SAFE), None),
        (1, FeatureUpdate(TRANSACTION_VERSION, 0, UNSAFE), None),
        (1, FeatureUpdate(TRANSACTION_VERSION, 0, UPGRADE), "without setting the upgrade type"),
        (1, FeatureUpdate(TRANSACTION_VERSION, 2, SAFE), "Can't downgrade to a newer version."),
        (1, FeatureUpdate(TRANSACTION_VERSION, 3, UPGRADE), "Local controller 1 only supports versions 0-2"),
        (1, FeatureUpdate(TRANSACTION_VERSION, -1, SAFE), "A feature version cannot be less than 0."),
        (1, FeatureUpdate(TRANSACTION_VERSION, 2, 0), "does not support the given upgrade type."),
        (
            1,
            FeatureUpdate("streams.version", 1, UPGRADE),
            "Local controller 1 does not support this feature.",
        ),
        (1, FeatureUpdate("streams.version", 0, SAFE), "Feature streams.version not found."),
    ],
)
def test_updates_follow_kafkas_rules(current: int, update: FeatureUpdate, problem: str | None) -> None:
    levels = {GROUP_VERSION: 0, TRANSACTION_VERSION: current}
    if problem is None:
        check_updates(levels, [update], 1, {2: SUPPORTED})
        return
    valid = FeatureUpdate(GROUP_VERSION, 1, UPGRADE)
    with pytest.raises(KafkaError) as failed:
        check_updates(levels, [valid, update], 1, {2: SUPPORTED})
    assert failed.value.code == ErrorCode.INVALID_UPDATE_VERSION
    assert failed.value.message.startswith(
        "The update failed for all features since the following feature had"
    )
    assert problem in failed.value.message


def test_a_level_that_another_broker_does_not_support_is_rejected() -> None:
    levels = {GROUP_VERSION: 0, TRANSACTION_VERSION: 2}
    update = [FeatureUpdate(GROUP_VERSION, 1, UPGRADE)]
    with pytest.raises(KafkaError, match="Broker 3 does not support this feature"):
        check_updates(levels, update, 1, {2: SUPPORTED, 3: {}})
    with pytest.raises(KafkaError, match="Broker 3 only supports versions 0-0"):
        check_updates(levels, update, 1, {3: {GROUP_VERSION: 0}})
    # A level may be lowered even if another broker does not know the feature.
    check_updates(levels, [FeatureUpdate(TRANSACTION_VERSION, 0, SAFE)], 1, {3: {}})
