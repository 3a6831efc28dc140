"""Versions that are new in Kafka 4.2 to 4.4: Apache Kafka 4.4.0 returns the same responses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.batches import batch
from tests.conformance.differential import Pair
from tests.conformance.group_requests import ready_group
from tests.conformance.record_requests import fill
from tests.conformance.wire import Plain
from tests.support import campaign
from tests.support.process import wait_until
from tests.support.servers import StartBroker

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


UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@pytest.fixture
def feature_pair(start_broker: StartBroker, newest_address: str) -> Iterator[Pair]:
    """A new broker of ours and the newest Apache Kafka, with the default levels."""
    found = Pair(start_broker().address, newest_address)
    yield found
    for name, level in (("group.version", 1), ("transaction.version", 2)):
        update = {"feature": name, "max_version_level": level, "upgrade_type": UPGRADE}
        found.sides["genuine"].ask(ApiKey.UPDATE_FEATURES, 2, {"feature_updates": [update]})
    found.close()


def test_features_are_reported_and_changed_as_in_apache_kafka(feature_pair: Pair) -> None:
    def reported(version: int) -> list[Plain]:
        names = ("group.version", "transaction.version")
        return [
            {
                field: sorted((each for each in answer[field] if each["name"] in names), key=str)
                for field in ("supported_features", "finalized_features")
            }
            for answer in feature_pair.both(ApiKey.API_VERSIONS, version, SOFTWARE)
        ]

    def same_features() -> None:
        """Apache Kafka publishes a new level after it has responded."""

        def is_same() -> bool:
            return all(ours == theirs for ours, theirs in map(reported, (3, 4, 5)))

        wait_until(is_same, 10, "the same features")

    def same(*updates: tuple[str, int, int], is_valid_only: bool = False, version: int = 2) -> None:
        request: Plain = {
            "feature_updates": [
                {"feature": name, "max_version_level": level, "upgrade_type": kind}
                for name, level, kind in updates
            ],
            "validate_only": is_valid_only,
        }
        feature_pair.same(ApiKey.UPDATE_FEATURES, request, (version,))

    same_features()
    for name in ("group.version", "transaction.version"):
        for current in (None, 0, 1):
            if current is not None:
                same((name, current, SAFE_DOWNGRADE if current == 0 else UPGRADE))
                same_features()
            for level in (-1, 0, 1, 2, 3):
                for kind in (0, UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, 4):
                    for version in (1, 2):
                        same((name, level, kind), is_valid_only=True, version=version)
    same(("group.version", 0, SAFE_DOWNGRADE), ("transaction.version", 2, UPGRADE))
    same(("group.version", 1, UPGRADE), ("transaction.version", 1, UPGRADE))
    same(("transaction.version", 0, UNSAFE_DOWNGRADE), version=1)
    same_features()
