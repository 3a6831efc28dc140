"""CreateTopics, DeleteTopics, CreatePartitions and Metadata, compared with Apache Kafka 3.9.1."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

import pytest

from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.differential import Pair
from tests.conformance.wire import Connection, Plain
from tests.support.process import wait_until


def wanted(name: str, partitions: int = 1, replication: int = 1, **more: Any) -> Plain:
    return {"name": name, "num_partitions": partitions, "replication_factor": replication, **more}


def create(*topics: Plain, validate_only: bool = False) -> Plain:
    return {"topics": list(topics), "timeout_ms": 15_000, "validate_only": validate_only}


def settings(**configs: str | None) -> list[Plain]:
    return [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]


def assignments(*replicas: list[int], first: int = 0) -> list[Plain]:
    return [{"partition_index": first + index, "broker_ids": ids} for index, ids in enumerate(replicas)]


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param({"name": ""}, id="empty name"),
        pytest.param({"name": "."}, id="dot"),
        pytest.param({"name": ".."}, id="two dots"),
        pytest.param({"name": "a/b"}, id="slash"),
        pytest.param({"name": "x" * 250}, id="250 characters"),
        pytest.param({"name": "späti"}, id="not ASCII"),
        pytest.param({"num_partitions": 0}, id="no partitions"),
        pytest.param({"num_partitions": -2}, id="negative partitions"),
        pytest.param({"replication_factor": 0}, id="no replicas"),
        pytest.param({"replication_factor": -2}, id="negative replicas"),
        pytest.param({"replication_factor": 2}, id="more replicas than brokers"),
        pytest.param({"configs": settings(retention_ms="soon")}, id="value of the wrong type"),
        pytest.param({"configs": settings(cleanup_policy="shred")}, id="value not in the list"),
        pytest.param({"configs": settings(max_message_bytes="-1")}, id="value out of range"),
        pytest.param({"configs": settings(no_such_config="1")}, id="unknown config"),
        pytest.param({"configs": settings(retention_ms=None)}, id="null value"),
        pytest.param({"assignments": assignments([1])}, id="count and assignment"),
        pytest.param(
            {"num_partitions": -1, "replication_factor": -1, "assignments": assignments([1, 1])},
            id="broker twice in one partition",
        ),
        pytest.param(
            {"num_partitions": -1, "replication_factor": -1, "assignments": assignments([1], first=3)},
            id="partitions not from zero",
        ),
    ],
)
def test_invalid_topics_are_rejected(pair: Pair, mistake: Plain) -> None:
    for validate_only in (False, True):
        request = create(wanted(pair.name()) | mistake, validate_only=validate_only)
        pair.same(ApiKey.CREATE_TOPICS, request)


def test_invalid_assignments_are_rejected(pair_41: Pair) -> None:
    """ZooKeeper mode accepts these assignments and creates a topic without a leader; KRaft rejects them."""
    for replicas in ([9], [], [1, 9]):
        by_hand = {"num_partitions": -1, "replication_factor": -1, "assignments": assignments(replicas)}
        pair_41.same(ApiKey.CREATE_TOPICS, create(wanted(pair_41.name()) | by_hand))


def test_requests_for_too_many_partitions_are_rejected(pair_41: Pair) -> None:
    """10,001 partitions are rejected, even if they belong to several topics."""
    single = wanted(pair_41.name(), 10_001)
    several = [wanted(pair_41.name(), 5_000), wanted(pair_41.name(), 5_001), wanted(pair_41.name())]
    for topics in ([single], several, [wanted(pair_41.name(), 2**31 - 1)]):
        answer = pair_41.same(ApiKey.CREATE_TOPICS, create(*topics))
        assert {result["error_code"] for result in answer["topics"]} == {44}


def test_topics_are_created_in_every_version(pair: Pair) -> None:
    """Every version creates topics. Later versions also return the topic id, counts and all configs."""
    for version in pair.versions(ApiKey.CREATE_TOPICS):
        name = pair.name()
        configs = settings(retention_ms="600000", cleanup_policy="compact,delete")
        answer = pair.same(ApiKey.CREATE_TOPICS, create(wanted(name, 2, configs=configs)), (version,))
        assert answer["topics"][0]["error_code"] == 0
        again = pair.same(ApiKey.CREATE_TOPICS, create(wanted(name, 2)), (version,))
        assert again["topics"][0]["error_code"] == 36


def test_topics_are_created_with_default_or_explicit_assignments(pair: Pair) -> None:
    for version in pair.versions(ApiKey.CREATE_TOPICS):
        pair.same(ApiKey.CREATE_TOPICS, create(wanted(pair.name(), -1, -1)), (version,))
    pair.same(
        ApiKey.CREATE_TOPICS, create(wanted(pair.name(), -1, -1, assignments=assignments([1], [1]))), (7,)
    )
    pair.same(ApiKey.CREATE_TOPICS, create(wanted(pair.name()), validate_only=True), (1, 5, 7))


def test_an_existing_topic_is_reported_before_other_errors(pair: Pair) -> None:
    """Every version returns TOPIC_ALREADY_EXISTS. kafkajs depends on this when it requests -1 partitions."""
    name = pair.name()
    pair.same(ApiKey.CREATE_TOPICS, create(wanted(name)), (5,))
    for mistake in (
        {"num_partitions": -1},
        {"replication_factor": -1},
        {"num_partitions": 0, "replication_factor": 9},
        {"assignments": assignments([1])},
        {"configs": settings(retention_ms=None)},
        {"configs": settings(no_such_config="1")},
    ):
        answer = pair.same(ApiKey.CREATE_TOPICS, create(wanted(name) | mistake))
        assert answer["topics"][0]["error_code"] == 36


def test_a_request_with_several_topics_gets_kafkas_response(pair: Pair) -> None:
    one, other = pair.name(), pair.name()
    pair.same(ApiKey.CREATE_TOPICS, create(wanted(one), wanted("a/b"), wanted(other, 0)), (5,))
    twice = pair.name()
    pair.same(ApiKey.CREATE_TOPICS, create(wanted(twice), wanted(pair.name()), wanted(twice, 3)), (0, 5, 7))
    pair.same(ApiKey.CREATE_TOPICS, create())


def test_a_topic_name_that_would_collide_in_metric_names_is_rejected(pair: Pair) -> None:
    """Names that differ only in dots and underscores have the same metric names."""
    name = pair.name()
    pair.same(ApiKey.CREATE_TOPICS, create(wanted(f"{name}.x")), (5,))
    answer = pair.same(ApiKey.CREATE_TOPICS, create(wanted(f"{name}_x")), (5,))
    assert answer["topics"][0]["error_code"] == 17


def test_topics_are_deleted_by_name_and_by_id(pair: Pair) -> None:
    for version in pair.versions(ApiKey.DELETE_TOPICS, 0, 5):
        name = pair.topic()
        request = {"topic_names": [name, pair.name("absent")], "timeout_ms": 15_000}
        pair.same(ApiKey.DELETE_TOPICS, request, (version,))
    by_id = pair.topic()
    ids = pair.ids(by_id)
    gone = {"timeout_ms": 15_000}
    pair.same(ApiKey.DELETE_TOPICS, lambda side: gone | {"topics": [{"topic_id": ids[side]}]}, (6,))
    pair.same(ApiKey.DELETE_TOPICS, gone | {"topics": [{"topic_id": uuid.uuid4()}]}, (6,))
    both = pair.topic()
    ids_of_both = pair.ids(both)
    ambiguous = {"name": both}
    pair.same(
        ApiKey.DELETE_TOPICS,
        lambda side: gone | {"topics": [ambiguous | {"topic_id": ids_of_both[side]}]},
        (6,),
    )


def test_delete_topics_by_name_returns_the_id(pair_41: Pair) -> None:
    """One topic in a request, because KRaft shuffles the responses."""
    absent = pair_41.name()
    unknown_id = {"topic_id": uuid.uuid4()}
    for topic in ({"name": pair_41.topic()}, {"name": absent}, unknown_id, {"name": absent, **unknown_id}):
        pair_41.same(ApiKey.DELETE_TOPICS, {"timeout_ms": 15_000, "topics": [topic]}, (6,))


def _is_made(connection: Connection, name: str) -> bool:
    answer = connection.ask(ApiKey.CREATE_TOPICS, 5, create(wanted(name)))
    return bool(answer["topics"][0]["error_code"] == 0)


def test_a_recreated_topic_has_a_different_id(pair: Pair) -> None:
    name = pair.topic()
    before = pair.ids(name)
    pair.both(ApiKey.DELETE_TOPICS, 5, {"topic_names": [name], "timeout_ms": 15_000})
    pair.await_topic(name, 3)
    for connection in pair.sides.values():
        wait_until(partial(_is_made, connection, name), 10, f"{name} is created again")
    pair.await_topic(name, 0)
    after = pair.ids(name)
    assert before["ours"] != after["ours"] and before["genuine"] != after["genuine"]


def test_create_partitions_returns_kafkas_responses(pair: Pair) -> None:
    topic = pair.topic(2)

    def more(count: int, name: str = topic, **extra: Any) -> Plain:
        asked = {"name": name, "count": count, "assignments": None, **extra}
        return {"topics": [asked], "timeout_ms": 15_000}

    for count in (2, 1, 0, -1):
        pair.same(ApiKey.CREATE_PARTITIONS, more(count))
    pair.same(ApiKey.CREATE_PARTITIONS, more(3, pair.name("absent")))
    placed = [{"broker_ids": [1]}]
    pair.same(ApiKey.CREATE_PARTITIONS, more(5, assignments=placed))
    pair.same(ApiKey.CREATE_PARTITIONS, more(3, assignments=[{"broker_ids": [7]}]))
    pair.same(ApiKey.CREATE_PARTITIONS, more(3, assignments=[{"broker_ids": [1, 1]}]))
    pair.same(ApiKey.CREATE_PARTITIONS, more(4) | {"validate_only": True})
    twice = more(4)["topics"] * 2
    pair.same(ApiKey.CREATE_PARTITIONS, {"topics": twice, "timeout_ms": 15_000})
    for count, version in enumerate(pair.versions(ApiKey.CREATE_PARTITIONS), 3):
        pair.same(ApiKey.CREATE_PARTITIONS, more(count, assignments=placed), (version,))
    metadata(pair, {"topics": [{"name": topic}], "allow_auto_topic_creation": False})


def metadata(pair: Pair, request: Any, low: int = 0, high: int = 99) -> Plain:
    return pair.same(ApiKey.METADATA, request, pair.versions(ApiKey.METADATA, low, high))


def test_metadata_returns_kafkas_response_for_topics(pair: Pair) -> None:
    topic, other = pair.topic(3), pair.topic()
    metadata(pair, {"topics": [{"name": topic}, {"name": other}], "allow_auto_topic_creation": False})
    no_topics: Plain = {"topics": []}
    metadata(pair, no_topics, low=1)
    rights = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
    metadata(pair, {"topics": [{"name": topic}], "allow_auto_topic_creation": False} | rights, low=8)


def test_metadata_for_all_topics_contains_each_topic(pair: Pair) -> None:
    topic = pair.topic(2)
    for version in pair.versions(ApiKey.METADATA, 1):
        for answer in pair.both(ApiKey.METADATA, version, {"topics": None}):
            (found,) = (entry for entry in answer["topics"] if entry["name"] == topic)
            assert (found["error_code"], len(found["partitions"])) == (0, 2)


def test_metadata_for_missing_and_invalid_topics_returns_kafkas_errors(pair: Pair) -> None:
    asked = {"topics": [{"name": pair.name("absent")}], "allow_auto_topic_creation": False}
    answer = metadata(pair, asked, low=4)
    assert answer["topics"][0]["error_code"] == 3
    metadata(pair, {"topics": [{"name": "a/b"}], "allow_auto_topic_creation": False}, low=4)
    metadata(pair, {"topics": [{"name": "a/b"}], "allow_auto_topic_creation": True}, low=4)


def test_metadata_returns_kafkas_response_for_topic_ids(pair: Pair) -> None:
    ids = pair.ids(pair.topic(2))
    by_id = metadata(pair, lambda side: {"topics": [{"topic_id": ids[side], "name": None}]}, low=12)
    assert by_id["topics"][0]["error_code"] == 0
    unknown = metadata(pair, {"topics": [{"topic_id": uuid.uuid4(), "name": None}]}, low=12)
    assert unknown["topics"][0]["error_code"] == 100


@pytest.mark.parametrize("has_id", [True, False], ids=["by ID", "without a name"])
def test_metadata_rejects_topics_without_a_name_before_version_12(pair: Pair, has_id: bool) -> None:
    """Version 10 added topic IDs, but their lookup and responses without names only came with version 12."""
    nameless = {"name": None, "topic_id": uuid.UUID(int=77 * has_id)}
    request: Plain = {"topics": [nameless, {"name": pair.topic()}], "allow_auto_topic_creation": True}
    answer = metadata(pair, request, low=10, high=11)
    assert [topic["error_code"] for topic in answer["topics"]] == [42, 42]


@pytest.mark.parametrize("version", [0, 1, 4, 8, 12])
def test_metadata_requests_create_topics(pair: Pair, version: int) -> None:
    """A request for a missing topic creates it, and later responses contain its leader."""
    name = pair.name("automatic")
    request = {"topics": [{"name": name}], "allow_auto_topic_creation": True}
    for answer in pair.both(ApiKey.METADATA, version, request):
        assert answer["topics"][0]["error_code"] in (0, 3, 5)
    for side, connection in pair.sides.items():
        for _ in range(200):
            answer = connection.ask(ApiKey.METADATA, version, request)
            if answer["topics"][0]["error_code"] == 0:
                break
        else:
            pytest.fail(f"{side}: {name} was not created")
    pair.same(ApiKey.METADATA, request, (version,))
