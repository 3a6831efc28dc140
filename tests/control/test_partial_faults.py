"""Faults for individual partitions, and truncated or corrupt responses."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.zero_uuid import ZERO_UUID
from kafka_compat.storage.records.batch import read_header
from kafka_compat.storage.records.crc import crc32c
from kafka_compat.testing import KafkaBroker
from tests.conformance.wire import Closed, Connection, Plain
from tests.control.clients import produce, producer
from tests.control.values import received, sent, stored

LEADER = 6


def codes(answer: Plain, topics: str, partitions: str, index: str) -> dict[tuple[str, int], int]:
    """Return the error code of each partition in a response."""
    return {
        (topic.get("name") or topic["topic"], each[index]): each["error_code"]
        for topic in answer[topics]
        for each in topic[partitions]
    }


def test_a_fault_in_one_partition_does_not_affect_other_partitions(broker: KafkaBroker) -> None:
    broker.create_topic("t", 3)
    failed: dict[int, str | None] = {}
    client = producer(broker, **{"linger.ms": 100})
    with broker.control.fault(api="Produce", topic="t", partition=1, error="INVALID_RECORD") as fault:
        for number in range(3):

            def delivered(error: KafkaError | None, _: object, number: int = number) -> None:
                failed[number] = None if error is None else error.name()

            client.produce("t", b"%d" % number, partition=number, on_delivery=delivered)
        assert client.flush(20) == 0
        assert failed == {0: None, 1: "INVALID_RECORD", 2: None}
        assert fault.hits == 1
    assert broker.control.await_records("t", 2) == 2


REQUESTS: list[tuple[ApiKey, int, Plain, tuple[str, str, str]]] = [
    (
        ApiKey.LIST_OFFSETS,
        4,
        {
            "replica_id": -1,
            "topics": [
                {
                    "name": name,
                    "partitions": [{"partition_index": index, "timestamp": -1} for index in (0, 1)],
                }
                for name in ("a", "b")
            ],
        },
        ("topics", "partitions", "partition_index"),
    ),
    (
        ApiKey.OFFSET_COMMIT,
        5,
        {
            "group_id": "g",
            "generation_id_or_member_epoch": -1,
            "topics": [
                {
                    "name": name,
                    "partitions": [{"partition_index": index, "committed_offset": 3} for index in (0, 1)],
                }
                for name in ("a", "b")
            ],
        },
        ("topics", "partitions", "partition_index"),
    ),
    (
        ApiKey.FETCH,
        11,
        {
            "replica_id": -1,
            "max_wait_ms": 10,
            "max_bytes": 1000,
            "session_epoch": -1,
            "topics": [
                {
                    "topic": name,
                    "partitions": [
                        {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1000}
                        for index in (0, 1)
                    ],
                }
                for name in ("a", "b")
            ],
        },
        ("responses", "partitions", "partition_index"),
    ),
]


@pytest.mark.parametrize(
    ("api", "version", "request_", "names"), REQUESTS, ids=[request[0].name for request in REQUESTS]
)
def test_each_api_returns_injected_errors_per_partition(
    broker: KafkaBroker, api: ApiKey, version: int, request_: Plain, names: tuple[str, str, str]
) -> None:
    broker.create_topic("a", 2)
    broker.create_topic("b", 2)
    connection = Connection(broker.bootstrap_servers)
    connection.ask(ApiKey.FIND_COORDINATOR, 2, {"key": "g", "key_type": 0})
    for how, failing in (
        ({"topic": "a", "partition": 1}, {("a", 1)}),
        ({"partition": 0}, {("a", 0), ("b", 0)}),
        ({"topic": "b"}, {("b", 0), ("b", 1)}),
        ({"topic": "none"}, set()),
        ({"topic": "a", "partition": 2}, set()),
    ):
        with broker.control.fault(api=api.name, error="NOT_LEADER_OR_FOLLOWER", **how) as fault:
            found = codes(connection.ask(api, version, request_), *names)
            assert found == {
                (name, index): LEADER if (name, index) in failing else 0 for name in "ab" for index in (0, 1)
            }
            assert fault.hits == (1 if failing else 0)
    connection.close()


def test_a_fault_matches_the_partitions_of_the_fetch_session(broker: KafkaBroker) -> None:
    broker.create_topic("t", 2)
    connection = Connection(broker.bootstrap_servers)
    topic_id = connection.ask(ApiKey.METADATA, 12, {"topics": [{"name": "t", "topic_id": ZERO_UUID}]})[
        "topics"
    ][0]["topic_id"]
    first = {"max_wait_ms": 5000, "min_bytes": 0, "max_bytes": 1000, "session_epoch": 0}
    wanted = [
        {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1000, "current_leader_epoch": -1}
        for index in (0, 1)
    ]
    answer = connection.ask(
        ApiKey.FETCH, 13, {**first, "topics": [{"topic_id": topic_id, "partitions": wanted}]}
    )
    again = {**first, "min_bytes": 1, "session_id": answer["session_id"], "session_epoch": 1}
    with broker.control.fault(api="Fetch", topic="t", partition=1, error="KAFKA_STORAGE_ERROR"):
        (topic,) = connection.ask(ApiKey.FETCH, 13, again)["responses"]
    assert topic["topic_id"] == topic_id
    assert [(each["partition_index"], each["error_code"]) for each in topic["partitions"]] == [(1, 56)]
    connection.close()


def test_a_request_with_a_truncated_response_is_retried(broker: KafkaBroker) -> None:
    broker.create_topic("once")
    broker.create_topic("t")
    for topic, idempotent in (("once", True), ("t", False)):
        client = producer(broker, **{"enable.idempotence": idempotent, "retry.backoff.ms": 10})
        with broker.control.fault(api="Produce", cut=True, count=1) as fault:
            assert sent(client, topic, b"1") == [None]
            assert fault.hits == 1
    assert stored(broker, "once") == [b"1"]
    assert stored(broker, "t") == [b"1", b"1"]
    broker.control.fault(api="Metadata", cut=True, count=1)
    connection = Connection(broker.bootstrap_servers)
    with pytest.raises(Closed):
        connection.ask(ApiKey.METADATA, 9, {"topics": []})


def test_no_response_follows_a_truncated_response(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
    fetch: dict[str, Any] = {"max_wait_ms": 300, "min_bytes": 1, "session_epoch": -1}
    fetch["topics"] = [{"topic": "t", "partitions": [partition]}]
    with (
        broker.control.fault(api="Fetch", cut=True, count=1) as fault,
        Connection(broker.bootstrap_servers) as connection,
    ):
        connection.begin(ApiKey.FETCH, 11, fetch)
        connection.begin(ApiKey.METADATA, 9, {"topics": []})
        with pytest.raises(Closed):
            connection.receive()
        assert fault.hits == 1


def fetched(broker: KafkaBroker, topic: str) -> bytes:
    connection = Connection(broker.bootstrap_servers)
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000_000}
    whole = {"max_wait_ms": 10, "max_bytes": 1_000_000, "session_epoch": -1}
    answer = connection.ask(
        ApiKey.FETCH, 11, {**whole, "topics": [{"topic": topic, "partitions": [partition]}]}
    )
    connection.close()
    records: bytes = answer["responses"][0]["partitions"][0]["records"]
    return records


def is_whole(batch: bytes) -> bool:
    header = read_header(batch)
    return crc32c(batch[21 : header.size_bytes]) == header.crc


def test_records_with_a_wrong_checksum_are_reported_by_clients(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    produce(broker, "t")
    good = fetched(broker, "t")
    assert is_whole(good)
    found = []
    for seed in (1, 1, 2):
        with broker.control.fault(api="Fetch", topic="t", corrupt=True, seed=seed, count=1) as fault:
            found.append(fetched(broker, "t"))
            assert fault.hits == 1
            assert fetched(broker, "t") == good
    assert found[0] == found[1] != found[2]
    assert not is_whole(found[0]) and len(found[0]) == len(good)
    broker.control.fault(api="Fetch", topic="t", corrupt=True)
    settings: dict[str, Any] = {"check.crcs": True, "enable.partition.eof": True, "log_level": 0}
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", **settings})
    client.assign([TopicPartition("t", 0, 0)])
    message = client.poll(20)
    assert message is not None
    error = message.error()
    assert error is not None and error.code() == KafkaError._BAD_MSG
    client.close()


def test_a_later_rule_applies_after_a_corrupting_rule_has_reached_its_limit(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    produce(broker, "t")
    good = fetched(broker, "t")
    first = broker.control.fault(api="Fetch", topic="t", corrupt=True, count=1)
    second = broker.control.fault(api="Fetch", topic="t", delay_ms=1, count=1)
    assert not is_whole(fetched(broker, "t"))
    assert fetched(broker, "t") == good
    assert (first.hits, second.hits) == (1, 1)


def test_a_corrupt_response_keeps_its_length(broker: KafkaBroker) -> None:
    asked: Plain = {"topics": []}
    connection = Connection(broker.bootstrap_servers)
    connection.begin(ApiKey.METADATA, 9, asked)
    good = connection.receive()
    with broker.control.fault(api="Metadata", corrupt=True, seed=3):
        connection.begin(ApiKey.METADATA, 9, asked)
        bad = connection.receive()
    assert bad[4:] != good[4:] and len(bad) == len(good)
    connection.close()


def test_a_consumer_that_checks_crcs_continues_after_corrupt_records(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    produce(broker, "t", 3)
    fault = broker.control.fault(api="Fetch", corrupt=True, count=1)
    found = received(broker, "t", 3, **{"check.crcs": True})
    assert found == ["_BAD_MSG", b"0", b"1", b"2"]
    assert fault.hits == 1


def test_a_fault_can_be_limited_to_one_broker(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    client = producer(broker)
    with broker.control.fault(api="Produce", broker=77, error="INVALID_RECORD") as other:
        assert sent(client, "t", b"1") == [None]
        assert other.hits == 0
    with broker.control.fault(api="Produce", broker=broker_id(client), error="INVALID_RECORD"):
        assert sent(client, "t", b"1") == ["INVALID_RECORD"]


def broker_id(client: Any) -> int:
    try:
        return int(next(iter(client.list_topics(timeout=20).brokers)))
    except KafkaException as error:
        raise AssertionError("no metadata received") from error
