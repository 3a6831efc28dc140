"""Versions that are new in Kafka 4.2 to 4.4: Apache Kafka 4.4.0 returns the same responses."""

from __future__ import annotations

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.differential import Pair
from tests.conformance.group_requests import ready_group
from tests.conformance.record_requests import fill
from tests.conformance.wire import Plain
from tests.support import campaign

pytestmark = pytest.mark.skipif(
    not campaign.enabled(),
    reason="needs a further Kafka release; normal runs use tests/handlers/test_newest_versions.py",
)

SOFTWARE = {"client_software_name": "conformance", "client_software_version": "1.0"}


@pytest.mark.parametrize("cluster", ["none", "own", "another", "empty"])
@pytest.mark.parametrize("node", ["any", "own", "another", "invalid"])
@pytest.mark.parametrize("software", ["conformance", "a b"])
def test_api_versions_checks_the_expected_broker(
    pair_newest: Pair, cluster: str, node: str, software: str
) -> None:
    own = {
        side: connection.ask(ApiKey.DESCRIBE_CLUSTER, 0, {}) for side, connection in pair_newest.sides.items()
    }

    def request(side: str) -> Plain:
        clusters = {"none": None, "own": own[side]["cluster_id"], "another": "another", "empty": ""}
        nodes = {"any": -1, "own": own[side]["brokers"][0]["broker_id"], "another": 99, "invalid": -2}
        name = {"client_software_name": software}
        return SOFTWARE | name | {"cluster_id": clusters[cluster], "node_id": nodes[node]}

    ours, theirs = pair_newest.both(ApiKey.API_VERSIONS, 5, request)
    assert (ours["error_code"], bool(ours["api_keys"])) == (theirs["error_code"], bool(theirs["api_keys"]))
    if ours["error_code"]:
        assert ours == theirs
    pair_newest.same(ApiKey.METADATA, {"topics": []}, (4,))


@pytest.mark.parametrize("timestamp", range(-8, 0))
def test_special_offsets_are_those_of_apache_kafka(pair_newest: Pair, timestamp: int) -> None:
    topic = pair_newest.topic(2)
    fill(pair_newest, topic, batch(3))
    for index in range(3):
        partitions = [{"partition_index": index, "timestamp": timestamp}]
        for replica_id in (-1, -2):
            topics = [{"name": topic, "partitions": partitions}]
            request: Plain = {"replica_id": replica_id, "topics": topics, "timeout_ms": 1000}
            pair_newest.same(ApiKey.LIST_OFFSETS, request, (10, 11))


def test_log_directories_are_described_as_in_apache_kafka(pair_newest: Pair) -> None:
    topic = pair_newest.topic(2)
    fill(pair_newest, topic, batch(3))
    pair_newest.same(ApiKey.DESCRIBE_LOG_DIRS, {"topics": [{"topic": topic, "partitions": [0, 1]}]}, (4, 5))


def test_deleted_groups_have_the_errors_of_apache_kafka(pair_newest: Pair) -> None:
    topic = pair_newest.topic()
    empty, absent = ready_group(pair_newest), pair_newest.name("group")
    partition = {"partition_index": 0, "committed_offset": 1}
    for version in (2, 3):
        commit: Plain = {"group_id": empty, "topics": [{"name": topic, "partitions": [partition]}]}
        pair_newest.same(ApiKey.OFFSET_COMMIT, commit, (2,))
        pair_newest.same(ApiKey.DELETE_GROUPS, {"groups_names": [empty, absent, empty]}, (version,))


@pytest.mark.parametrize("may_change", [True, False])
@pytest.mark.parametrize("replicas", [[1], [1, 7], [1, 1], [], None])
def test_reassignments_have_the_errors_of_apache_kafka(
    pair_newest: Pair, may_change: bool, replicas: list[int] | None
) -> None:
    """Messages differ, because ours are those of Kafka 3.9."""
    topic = pair_newest.topic()
    partitions = [{"partition_index": 0, "replicas": replicas}]
    request: Plain = {
        "allow_replication_factor_change": may_change,
        "topics": [{"name": topic, "partitions": partitions}],
    }
    ours, theirs = pair_newest.both(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, request)
    for answer in (ours, theirs):
        answer["responses"][0]["partitions"][0]["error_message"] = None
    assert ours["responses"][0]["partitions"] == theirs["responses"][0]["partitions"]
    assert ours["allow_replication_factor_change"] == theirs["allow_replication_factor_change"]


@pytest.mark.parametrize("is_valid_only", [True, False])
@pytest.mark.parametrize("kind", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("level", [-3, 0, 1])
@pytest.mark.parametrize("name", ["a", ""])
def test_feature_updates_have_the_errors_of_apache_kafka(
    pair_newest: Pair, is_valid_only: bool, kind: int, level: int, name: str
) -> None:
    updates = [
        {"feature": name, "max_version_level": level, "upgrade_type": kind},
        {"feature": "b", "max_version_level": 1},
    ]
    request: Plain = {"feature_updates": updates, "validate_only": is_valid_only}
    pair_newest.same(ApiKey.UPDATE_FEATURES, request, (2,))
    pair_newest.same(ApiKey.UPDATE_FEATURES, {"feature_updates": []}, (2,))
