"""UpdateFeatures on a standalone broker: responses, epochs, and effects that survive a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.storage.records.batch import read_headers
from kafka_compat.storage.records.records import iter_records
from tests.conformance.wire import Connection, Plain
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker, StartBroker

SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}
UPGRADE, DOWNGRADE = 1, 2


def features(
    connection: Connection, version: int = 4
) -> tuple[dict[str, tuple[int, int]], dict[str, int], int]:
    """Return the supported features, the finalized features and their epoch."""
    answer = connection.ask(ApiKey.API_VERSIONS, version, SOFTWARE)
    return (
        {each["name"]: (each["min_version"], each["max_version"]) for each in answer["supported_features"]},
        {each["name"]: each["max_version_level"] for each in answer["finalized_features"]},
        answer["finalized_features_epoch"],
    )


def update(connection: Connection, *updates: tuple[str, int, int], version: int = 2) -> Plain:
    request = [
        {"feature": name, "max_version_level": level, "upgrade_type": kind} for name, level, kind in updates
    ]
    return connection.ask(ApiKey.UPDATE_FEATURES, version, {"feature_updates": request})


def test_levels_are_highest_by_default_and_changes_survive_a_restart(broker: KafkaCompatBroker) -> None:
    share = {"share.version": 2}
    supported = {"group.version": (0, 1), "transaction.version": (0, 2), "share.version": (0, 2)}
    with Connection(broker.address) as connection:
        assert features(connection) == (supported, {"group.version": 1, "transaction.version": 2} | share, 0)
        assert features(connection, 3) == ({}, {"group.version": 1, "transaction.version": 2} | share, 0)
        assert update(connection, ("group.version", 0, DOWNGRADE))["error_code"] == ErrorCode.NONE
        assert features(connection) == (supported, {"transaction.version": 2} | share, 1)
        rejected = update(connection, ("group.version", 1, UPGRADE), ("transaction.version", 1, UPGRADE))
        assert rejected["error_code"] == ErrorCode.INVALID_UPDATE_VERSION
        assert features(connection) == (supported, {"transaction.version": 2} | share, 1)
    broker.restart()
    with Connection(broker.address) as connection:
        assert features(connection) == (supported, {"transaction.version": 2} | share, 1)
        assert update(connection, ("group.version", 1, UPGRADE))["error_code"] == ErrorCode.NONE
        assert features(connection)[1:] == ({"transaction.version": 2, "group.version": 1} | share, 2)


def test_older_versions_return_one_result_per_feature(broker: KafkaCompatBroker) -> None:
    with Connection(broker.address) as connection:
        answer = update(connection, ("transaction.version", 1, DOWNGRADE), version=1)
        assert (answer["error_code"], answer["error_message"]) == (ErrorCode.NONE, None)
        assert answer["results"] == [
            {"feature": "transaction.version", "error_code": 0, "error_message": "NONE"}
        ]
        request = {"feature": "transaction.version", "max_version_level": 0, "allow_downgrade": False}
        answer = connection.ask(ApiKey.UPDATE_FEATURES, 0, {"feature_updates": [request]})
        assert (answer["error_code"], answer["results"]) == (ErrorCode.INVALID_UPDATE_VERSION, [])
        request["allow_downgrade"] = True
        answer = connection.ask(ApiKey.UPDATE_FEATURES, 0, {"feature_updates": [request]})
        assert answer["error_code"] == ErrorCode.NONE
        assert features(connection)[1] == {"group.version": 1, "share.version": 2}


@pytest.mark.parametrize("given", ["0", "1"])
def test_the_setting_is_the_default_until_a_level_is_stored(start_broker: StartBroker, given: str) -> None:
    broker = start_broker({"kafka.compat.transaction.version": given})
    level = int(given)
    with Connection(broker.address) as connection:
        assert features(connection)[1].get("transaction.version", 0) == level
        assert update(connection, ("transaction.version", 2, UPGRADE))["error_code"] == ErrorCode.NONE
        assert features(connection)[1]["transaction.version"] == 2
    broker.restart()
    with Connection(broker.address) as connection:
        assert features(connection)[1]["transaction.version"] == 2


def test_a_changed_transaction_version_applies_to_existing_transactional_ids(
    start_broker: StartBroker,
) -> None:
    broker = start_broker({"transaction.state.log.num.partitions": "1"})
    with Connection(broker.address) as connection:

        def is_initialized() -> bool:
            request = {"transactional_id": "t", "transaction_timeout_ms": 60_000}
            code: int = connection.ask(ApiKey.INIT_PRODUCER_ID, 4, request)["error_code"]
            if code:
                connection.ask(ApiKey.FIND_COORDINATOR, 2, {"key": "t", "key_type": 1})
            return code == 0

        wait_until(is_initialized, 20, "InitProducerId")
        update(connection, ("transaction.version", 0, DOWNGRADE))
        assert is_initialized()
        update(connection, ("transaction.version", 1, UPGRADE))
        assert is_initialized()
    assert _value_versions(broker.log_dir)[-3:] == [1, 0, 1]


def _value_versions(log_dir: Path) -> list[int]:
    """Return the version of each record value in __transaction_state."""
    data = (log_dir / "__transaction_state-0" / "00000000000000000000.log").read_bytes()
    found, position = [], 0
    for header in read_headers(data):
        size = header.batch_length + 12
        for record in iter_records(data[position : position + size]):
            assert record.value is not None
            found.append(int.from_bytes(record.value[:2], "big"))
        position += size
    return found
