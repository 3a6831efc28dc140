"""ApiVersions, DescribeCluster, DescribeLogDirs and the security APIs, compared with Apache Kafka."""

from __future__ import annotations

import pytest

from kafka_compat.protocol import codec
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.messages import response_class
from tests.conformance.batches import batch
from tests.conformance.comparison import differences, neutral
from tests.conformance.differential import Pair
from tests.conformance.group_requests import ready_group
from tests.conformance.record_requests import fill
from tests.conformance.wire import Plain, encode, frame, plain

OURS_ELSEWHERE = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
    ApiKey.ENVELOPE,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
}
"""APIs that a standalone broker without security does not serve."""


SOFTWARE = {"client_software_name": "conformance", "client_software_version": "1.0"}


def test_every_api_version_of_apache_kafka_is_served(pair: Pair) -> None:
    for version in pair.versions(ApiKey.API_VERSIONS):
        ours, genuine = pair.both(ApiKey.API_VERSIONS, version, SOFTWARE)
        assert (ours["error_code"], ours["throttle_time_ms"]) == (0, 0)
        served = {
            entry["api_key"]: (entry["min_version"], entry["max_version"]) for entry in ours["api_keys"]
        }
        missing = [
            ApiKey(entry["api_key"]).name
            for entry in genuine["api_keys"]
            if entry["api_key"] not in OURS_ELSEWHERE
            and not _covers(served.get(entry["api_key"]), (entry["min_version"], entry["max_version"]))
        ]
        assert missing == []


def _covers(ours: tuple[int, int] | None, genuine: tuple[int, int]) -> bool:
    return ours is not None and ours[0] <= genuine[0] and ours[1] >= genuine[1]


def test_an_api_versions_request_above_the_highest_version_gets_kafkas_response(pair: Pair) -> None:
    """Version 99 is answered in the format of version 0 with UNSUPPORTED_VERSION (35), so that the client can
    retry with a lower version.
    """
    answers = []
    for connection in pair.sides.values():
        body = encode(ApiKey.API_VERSIONS, 4, SOFTWARE)[4:]
        connection.send(frame(body[:2] + (99).to_bytes(2, "big") + body[4:]))
        found = plain(
            codec.decode(response_class(ApiKey.API_VERSIONS), 0, connection.receive(), 4, exact=True)
        )
        assert found["error_code"] == 35
        own = [entry for entry in found["api_keys"] if entry["api_key"] == ApiKey.API_VERSIONS]
        assert (own[0]["min_version"], own[0]["max_version"] >= 4) == (0, True)
        answers.append([entry["api_key"] for entry in own])
    assert answers[0] == answers[1]
    pair.same(ApiKey.METADATA, {"topics": []}, (4,))


@pytest.mark.parametrize("name", ["a b", "", "-x", "x-", "näme", "a" * 500])
def test_client_software_names_are_validated_as_in_apache_kafka(pair: Pair, name: str) -> None:
    for field in SOFTWARE:
        for version in pair.versions(ApiKey.API_VERSIONS, 3):
            ours, genuine = pair.both(ApiKey.API_VERSIONS, version, SOFTWARE | {field: name})
            assert ours["error_code"] == genuine["error_code"]
            assert bool(ours["api_keys"]) == bool(genuine["api_keys"])


def test_describe_cluster_returns_kafkas_response(pair: Pair) -> None:
    pair.same(ApiKey.DESCRIBE_CLUSTER, {})
    pair.same(ApiKey.DESCRIBE_CLUSTER, {"include_cluster_authorized_operations": True})
    for endpoint_type in (2, 9):
        pair.same(ApiKey.DESCRIBE_CLUSTER, {"endpoint_type": endpoint_type}, (1,))


def test_features_cannot_be_changed(pair: Pair) -> None:
    updates = (1, 1, "metadata.version"), (0, 1, "a"), (0, 2, "a"), (-3, 3, "a"), (2, 0, "a")
    for level, kind, name in updates:
        update = {"feature": name, "max_version_level": level, "upgrade_type": kind}
        pair.same(ApiKey.UPDATE_FEATURES, {"feature_updates": [update]}, (1,))
    for downgrade, name in ((True, "a"), (False, "a"), (False, "")):
        update = {"feature": name, "max_version_level": 0, "allow_downgrade": downgrade}
        pair.same(ApiKey.UPDATE_FEATURES, {"feature_updates": [update]}, (0,))


def test_describe_log_dirs_returns_kafkas_response(pair: Pair) -> None:
    topic = pair.topic(2)
    fill(pair, topic, batch(3))
    parts = [{"topic": topic, "partitions": [0, 1]}]
    pair.same(ApiKey.DESCRIBE_LOG_DIRS, {"topics": parts})
    pair.same(ApiKey.DESCRIBE_LOG_DIRS, {"topics": [{"topic": topic, "partitions": [9]}]})
    nothing: Plain = {"topics": []}
    pair.same(ApiKey.DESCRIBE_LOG_DIRS, nothing)
    for version in pair.versions(ApiKey.DESCRIBE_LOG_DIRS):
        for answer in pair.both(ApiKey.DESCRIBE_LOG_DIRS, version, {"topics": None}):
            assert topic in {entry["name"] for result in answer["results"] for entry in result["topics"]}


def test_acl_requests_fail_without_an_authorizer(pair: Pair) -> None:
    """Without an authorizer, requests about ACLs return SECURITY_DISABLED."""
    every = {
        "resource_type_filter": 1,
        "pattern_type_filter": 1,
        "resource_name_filter": None,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    pair.same(ApiKey.DESCRIBE_ACLS, every, pair.versions(ApiKey.DESCRIBE_ACLS, 1))
    one = {
        "resource_type": 2,
        "resource_name": "topic",
        "resource_pattern_type": 3,
        "principal": "User:somebody",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    pair.same(ApiKey.CREATE_ACLS, {"creations": [one]}, pair.versions(ApiKey.CREATE_ACLS, 1))
    removal: Plain = {key: value for key, value in every.items() if key in ("operation", "permission_type")}
    removal |= {"resource_type_filter": 2, "pattern_type_filter": 3, "resource_name_filter": "topic"}
    removal |= {"principal_filter": None, "host_filter": None}
    pair.same(ApiKey.DELETE_ACLS, {"filters": [removal]}, pair.versions(ApiKey.DELETE_ACLS, 1))


@pytest.mark.parametrize("mechanism", ["PLAIN", "GSSAPI", "", "no such"])
def test_sasl_requests_fail_on_a_listener_without_sasl(pair: Pair, mechanism: str) -> None:
    answer = pair.same(ApiKey.SASL_HANDSHAKE, {"mechanism": mechanism})
    assert answer["error_code"] == 34
    pair.same(ApiKey.SASL_AUTHENTICATE, {"auth_bytes": mechanism.encode()})


def test_describe_topic_partitions_returns_kafkas_response(pair_41: Pair) -> None:
    """Partitions are returned in pages, sorted by topic, with a cursor (KIP-966)."""
    first, second = sorted([pair_41.topic(3), pair_41.topic(2)])
    asked = [{"name": second}, {"name": first}, {"name": pair_41.name("absent")}, {"name": "a/b"}]
    for limit in (2000, 5, 4, 3, 1):
        answer = pair_41.same(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS, {"topics": asked, "response_partition_limit": limit}
        )
        assert (answer["next_cursor"] is None) == (limit >= 5)
    for topic, partition in ((first, 1), (first, 3), (second, 0), (second, 9), ("zzz", 0)):
        cursor = {"topic_name": topic, "partition_index": partition}
        pair_41.same(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            {"topics": asked, "response_partition_limit": 2, "cursor": cursor},
        )


def test_requests_in_versions_that_only_kafka_41_supports_get_kafkas_responses(pair_41: Pair) -> None:
    topic = pair_41.topic(2)
    ids = pair_41.ids(topic)
    metadata = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
    pair_41.same(ApiKey.METADATA, metadata, (13,))

    def produce(side: str) -> Plain:
        parts = [{"index": 0, "records": batch(3)}]
        return {
            "acks": -1,
            "timeout_ms": 9000,
            "topic_data": [{"topic_id": ids[side], "partition_data": parts}],
        }

    pair_41.same(ApiKey.PRODUCE, produce, (13,))

    def fetch(side: str) -> Plain:
        parts = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
        return {"max_bytes": 1 << 20, "topics": [{"topic_id": ids[side], "partitions": parts}]}

    answers = pair_41.both(ApiKey.FETCH, 18, fetch)
    ours, genuine = (neutral(answer, ApiKey.FETCH) for answer in answers)
    assert list(differences(ours, genuine, ApiKey.FETCH)) == []
    parts = [{"partition_index": 0, "timestamp": -1}]
    request = {"replica_id": -1, "timeout_ms": 1000, "topics": [{"name": topic, "partitions": parts}]}
    pair_41.same(ApiKey.LIST_OFFSETS, request, (10,))
    pair_41.same(ApiKey.DESCRIBE_CLUSTER, {"include_fenced_brokers": True}, (2,))
    pair_41.same(ApiKey.DESCRIBE_GROUPS, {"groups": [ready_group(pair_41)]}, (6,))
