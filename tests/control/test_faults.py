"""Faults injected on request, and the effects on real clients."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer
from kafka.errors import KafkaError as PythonError

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.testing import ControlFailed, KafkaBroker
from tests.conformance.wire import Connection, Plain
from tests.control.clients import producer
from tests.control.values import sent, stored
from tests.support.bystander import Bystander


def test_a_request_with_a_retriable_error_is_retried(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    fault = broker.control.fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER", count=2)
    assert sent(producer(broker), "t", b"1", b"2") == [None, None]
    assert fault.hits == 2
    assert stored(broker, "t") == [b"1", b"2"]


@pytest.mark.parametrize("name", ["MESSAGE_TOO_LARGE", "INVALID_TIMESTAMP", "INVALID_RECORD"])
def test_a_non_retriable_error_is_reported_to_the_client(broker: KafkaBroker, name: str) -> None:
    broker.create_topic("t")
    with broker.control.fault(api="Produce", error=name, count=1) as fault:
        told = sent(producer(broker), "t", b"1", b"2")
        fault.await_hits()
    expected = {"MESSAGE_TOO_LARGE": "MSG_SIZE_TOO_LARGE"}.get(name, name)
    assert told == [expected, None]
    assert stored(broker, "t") == [b"2"]


def test_a_lost_response_duplicates_records_without_idempotence(broker: KafkaBroker) -> None:
    for topic, idempotent in (("once", True), ("twice", False)):
        broker.create_topic(topic)
        fault = broker.control.fault(api="Produce", topic=topic, lose_answer=True, count=1)
        client = producer(broker, **{"enable.idempotence": idempotent, "retry.backoff.ms": 10})
        assert sent(client, topic, b"1", b"2") == [None, None]
        assert fault.hits == 1
    assert stored(broker, "once") == [b"1", b"2"]
    assert stored(broker, "twice") == [b"1", b"1", b"2"]


def test_a_dropped_request_is_not_applied(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    fault = broker.control.fault(api="Produce", drop=True, count=1)
    client = KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, enable_idempotence=False, retries=0, acks=1
    )
    with pytest.raises(PythonError):
        client.send("t", b"1").get(20)
    assert fault.hits == 1
    client.send("t", b"2").get(20)
    client.close()
    assert stored(broker, "t") == [b"2"]


def test_a_delay_affects_only_one_client(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    slow, quick = producer(broker, **{"client.id": "slow"}), producer(broker, **{"client.id": "quick"})
    assert sent(slow, "t", b"0") == sent(quick, "t", b"0") == [None]
    with broker.control.fault(api="Produce", client_id="slow", delay_ms=2000):
        with Bystander(broker.port, broker.pid) as bystander:
            began_s = time.monotonic()
            assert sent(quick, "t", b"1") == [None]
            assert time.monotonic() - began_s < 1.5
            assert sent(slow, "t", b"2") == [None]
            assert time.monotonic() - began_s >= 2.0
        assert bystander.worst_ms < 100


def test_responses_behind_a_delayed_response_keep_their_order(broker: KafkaBroker) -> None:
    broker.control.fault(api="Metadata", delay_ms=300, count=1)
    connection = Connection(broker.bootstrap_servers)
    connection.begin(ApiKey.METADATA, 9, {"topics": []})
    first = connection._asked
    connection.send(b"")
    connection.begin(ApiKey.API_VERSIONS, 2, {})
    answers = [int.from_bytes(connection.receive()[:4], "big") for _ in range(2)]
    assert answers == [first, first + 1]
    connection.close()


def test_skip_count_and_a_seeded_probability_select_requests_reproducibly(broker: KafkaBroker) -> None:
    def pattern(**how: object) -> list[int]:
        with broker.control.fault(api="ListGroups", error="COORDINATOR_NOT_AVAILABLE", **how):
            connection = Connection(broker.bootstrap_servers)
            found = [connection.ask(ApiKey.LIST_GROUPS, 2, {})["error_code"] for _ in range(40)]
            connection.close()
        return found

    failed = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert pattern(skip=3, count=2) == [0] * 3 + [failed] * 2 + [0] * 35
    first, again, other = (pattern(probability=0.5, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert 5 < first.count(failed) < 35
    assert pattern(probability=0) == [0] * 40


def test_the_first_matching_rule_applies(broker: KafkaBroker) -> None:
    broker.create_topic("a")
    broker.create_topic("b")
    first = broker.control.fault(api="Produce", topic="a", error="INVALID_RECORD")
    second = broker.control.fault(api="Produce", error="INVALID_TIMESTAMP")
    client = producer(broker)
    assert sent(client, "a", b"1") == ["INVALID_RECORD"]
    assert sent(client, "b", b"1") == ["INVALID_TIMESTAMP"]
    assert first.remove() == second.remove() == 1
    assert sent(client, "a", b"1") == sent(client, "b", b"1") == [None]


APIS: dict[ApiKey, tuple[int, Plain]] = {
    ApiKey.FIND_COORDINATOR: (2, {"key": "g", "key_type": 0}),
    ApiKey.OFFSET_COMMIT: (5, {"group_id": "g", "topics": []}),
    ApiKey.END_TXN: (1, {"transactional_id": "g", "producer_id": 1, "producer_epoch": 0, "committed": True}),
    ApiKey.JOIN_GROUP: (3, {"group_id": "g", "session_timeout_ms": 10_000, "protocol_type": "consumer"}),
    ApiKey.HEARTBEAT: (2, {"group_id": "g", "generation_id": 1, "member_id": "m"}),
    ApiKey.INIT_PRODUCER_ID: (1, {"transactional_id": "g", "transaction_timeout_ms": 1000}),
}


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_every_error_code_can_be_injected(broker: KafkaBroker, api: ApiKey) -> None:
    version, request = APIS[api]
    about = "transactional_id" if "transactional_id" in request else "group"
    connection = Connection(broker.bootstrap_servers)
    for code in ErrorCode:
        if code != ErrorCode.NONE:
            how = {about: "g", "error": code.name, "count": 1}
            with broker.control.fault(api=api.name, **how) as fault:
                answer = connection.ask(api, version, request)
                if "error_code" in answer:
                    assert answer["error_code"] == code
                fault.await_hits(timeout_s=0)
    connection.close()


def test_an_admin_client_gets_the_injected_error(broker: KafkaBroker) -> None:
    broker.control.fault(api="CreateTopics", topic="forbidden", error="POLICY_VIOLATION")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    made = admin.create_topics([NewTopic("forbidden", 1, 1)])
    with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
        made["forbidden"].result(20)
    assert admin.create_topics([NewTopic("allowed", 1, 1)])["allowed"].result(20) is None


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "expected one of error, delay_ms, drop, lose_answer, cut, corrupt, not none"),
        ({"error": "INVALID_RECORD", "drop": True}, "corrupt, not error, drop"),
        ({"error": "NO_SUCH"}, "error='NO_SUCH': expected a Kafka error"),
        ({"api": "Prodduce", "drop": True}, "api='Prodduce': expected a Kafka API"),
        ({"delay_ms": 0}, "corrupt, not none"),
        ({"delay_ms": "1"}, "delay_ms='1': expected a whole number"),
        ({"drop": True, "probability": 2}, "probability=2: expected a number from 0 to 1"),
        ({"drop": True, "count": 0}, "count=0: expected a whole number of at least 1"),
        ({"drop": True, "topic": 1}, "topic=1: expected text"),
        ({"drop": True, "topics": "t"}, "unknown field 'topics'"),
    ],
)
def test_invalid_faults_are_rejected(broker: KafkaBroker, how: dict[str, Any], said: str) -> None:
    with pytest.raises(ControlFailed) as failed:
        broker.control.ask("POST", "/faults", **how)
    assert said in str(failed.value)


def test_a_timeout_while_waiting_for_a_fault_reports_the_number_of_hits(broker: KafkaBroker) -> None:
    fault = broker.control.fault(api="Produce", drop=True)
    with pytest.raises(ControlFailed, match="was hit by 0 requests, not 1, within 100 ms"):
        fault.await_hits(timeout_s=0.1)
    fault.remove()
    with pytest.raises(ControlFailed, match="unknown fault"):
        fault.remove()
