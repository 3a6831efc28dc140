"""ElectLeaders and partition reassignments on a standalone broker, as requested by Kafka's tools."""

from __future__ import annotations

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.wire import Plain


def test_requests_for_unnecessary_elections_get_kafkas_errors(pair: Pair) -> None:
    topic = pair.topic(2)
    partitions = [{"topic": topic, "partitions": [0, 1, 9]}, {"topic": pair.name(), "partitions": [0]}]
    for election_type in (0, 1):
        for asked in (partitions, [], None):
            request: Plain = {"election_type": election_type, "topic_partitions": asked, "timeout_ms": 10_000}
            pair.same(ApiKey.ELECT_LEADERS, request)


def test_invalid_and_empty_reassignments_are_handled_as_in_kafka(pair: Pair) -> None:
    topic = pair.topic(1)
    for replicas in ([1], [7], [1, 7], [1, 1], [-1], [], None):
        for name, index in ((topic, 0), (topic, 9), (pair.name(), 0)):
            moved = [{"name": name, "partitions": [{"partition_index": index, "replicas": replicas}]}]
            pair.same(ApiKey.ALTER_PARTITION_REASSIGNMENTS, {"topics": moved, "timeout_ms": 10_000})
    for asked in (None, [], [{"name": topic, "partition_indexes": [0, 9]}]):
        pair.same(ApiKey.LIST_PARTITION_REASSIGNMENTS, {"topics": asked, "timeout_ms": 10_000})
