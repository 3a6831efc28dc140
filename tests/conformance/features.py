"""Feature levels of a broker under test."""

from __future__ import annotations

from typing import Any

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection

UPGRADE, SAFE_DOWNGRADE = 1, 2


def disable_consumer_groups(address: str) -> None:
    """Set group.version to 0 on the broker at `address`: it then writes group records as Kafka 3.9 does."""
    _update(address, {"feature": "group.version", "max_version_level": 0, "upgrade_type": SAFE_DOWNGRADE})


def enable_consumer_groups(address: str) -> None:
    """Set group.version to 1 on the broker at `address`."""
    _update(address, {"feature": "group.version", "max_version_level": 1, "upgrade_type": UPGRADE})


def _update(address: str, update: dict[str, Any]) -> None:
    with Connection(address) as connection:
        response = connection.ask(ApiKey.UPDATE_FEATURES, 1, {"feature_updates": [update]})
    assert not response["error_code"], response
