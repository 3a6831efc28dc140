"""Versions that are new in Kafka 4.2 to 4.4, on our broker.

tests/conformance/test_newest_versions.py compares the responses with those of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain
from tests.support.process import wait_until
from tests.support.servers import KafkaCompatBroker

EARLIEST_PENDING_UPLOAD = -6
TOPIC = "newest-versions"


@pytest.fixture(scope="module")
def connection(shared_broker: KafkaCompatBroker) -> Iterator[Connection]:
    with Connection(shared_broker.address) as found:
        topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        created = found.ask(ApiKey.CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 10_000})
        assert created["topics"][0]["error_code"] in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        yield found


@pytest.mark.parametrize(("version", "code"), [(10, ErrorCode.UNSUPPORTED_VERSION), (11, ErrorCode.NONE)])
def test_no_offset_is_waiting_for_upload_to_tiered_storage(
    connection: Connection, version: int, code: ErrorCode
) -> None:
    partitions = [{"partition_index": 0, "timestamp": EARLIEST_PENDING_UPLOAD}]
    request: Plain = {"replica_id": -1, "topics": [{"name": TOPIC, "partitions": partitions}]}
    answer = connection.ask(ApiKey.LIST_OFFSETS, version, request)
    found = answer["topics"][0]["partitions"][0]
    assert (found["error_code"], found["timestamp"], found["offset"]) == (code, -1, -1)


def test_no_log_directory_is_cordoned(connection: Connection) -> None:
    answer = connection.ask(ApiKey.DESCRIBE_LOG_DIRS, 5, {"topics": None})
    assert [directory["is_cordoned"] for directory in answer["results"]] == [False]


def test_a_group_that_is_not_deleted_has_an_error_without_a_message(connection: Connection) -> None:
    def result() -> tuple[int, str | None]:
        answer = connection.ask(ApiKey.DELETE_GROUPS, 3, {"groups_names": ["no-such-group"]})
        (found,) = answer["results"]
        return found["error_code"], found["error_message"]

    connection.ask(ApiKey.FIND_COORDINATOR, 2, {"key": "no-such-group", "key_type": 0})
    wait_until(lambda: result() == (ErrorCode.GROUP_ID_NOT_FOUND, None), 30, "the coordinator's response")


@pytest.mark.parametrize("may_change", [True, False])
def test_the_response_repeats_whether_the_replication_factor_may_change(
    connection: Connection, may_change: bool
) -> None:
    topics = [{"name": TOPIC, "partitions": [{"partition_index": 0, "replicas": [1]}]}]
    request: Plain = {"allow_replication_factor_change": may_change, "topics": topics}
    answer = connection.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)
    assert answer["allow_replication_factor_change"] == may_change
    assert answer["responses"][0]["partitions"][0]["error_code"] == ErrorCode.NONE


@pytest.mark.parametrize(
    ("level", "upgrade_type", "reason"),
    [
        (1, 1, "Local controller 1 does not support this feature."),
        (0, 2, "Feature a not found."),
        (-3, 3, "A feature version cannot be less than 0."),
        (-3, 0, "The controller does not support the given upgrade type."),
    ],
)
def test_feature_updates_report_only_the_first_error(
    connection: Connection, level: int, upgrade_type: int, reason: str
) -> None:
    first = {"feature": "a", "max_version_level": level, "upgrade_type": upgrade_type}
    updates = [first, {"feature": "b", "max_version_level": 1}]
    answer = connection.ask(ApiKey.UPDATE_FEATURES, 2, {"feature_updates": updates})
    assert (answer["error_code"], answer["error_message"]) == (
        ErrorCode.INVALID_UPDATE_VERSION,
        "The update failed for all features since the following feature had an error: "
        f"Invalid update version {level} for feature a. {reason}",
    )
    assert connection.ask(ApiKey.UPDATE_FEATURES, 2, {})["error_code"] == ErrorCode.NONE


def test_an_unsupported_special_offset_is_reported_before_an_unknown_partition(
    connection: Connection,
) -> None:
    partitions = [{"partition_index": 9, "timestamp": EARLIEST_PENDING_UPLOAD}]
    request: Plain = {"replica_id": -1, "topics": [{"name": TOPIC, "partitions": partitions}]}
    answer = connection.ask(ApiKey.LIST_OFFSETS, 10, request)
    assert answer["topics"][0]["partitions"][0]["error_code"] == ErrorCode.UNSUPPORTED_VERSION
