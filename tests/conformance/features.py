"""Feature levels of a broker under test."""

from __future__ import annotations

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection

SAFE_DOWNGRADE = 2


def disable_consumer_groups(address: str) -> None:
    """Set group.version to 0 on the broker at `address`: it then writes group records as Kafka 3.9 does."""
    update = {"feature": "group.version", "max_version_level": 0, "upgrade_type": SAFE_DOWNGRADE}
    with Connection(address) as connection:
        response = connection.ask(ApiKey.UPDATE_FEATURES, 1, {"feature_updates": [update]})
    assert not response["error_code"], response
