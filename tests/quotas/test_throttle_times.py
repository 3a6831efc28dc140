"""Throttle times of clients above their quotas: within a fifth of those of Apache Kafka 3.9.1."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Connection, Plain
from tests.quotas.clients import (
    Who,
    alter,
    assert_alike,
    await_notices,
    create_topic,
    fetch_request,
    produce,
    produce_request,
    quotas,
    unique,
)
from tests.support.servers import GenuineKafka, KafkaCompatBroker

ADDRESSES = ["ours", "genuine"]
USER = "ANONYMOUS"
SIZE_BYTES = 300_000


@pytest.fixture
def addresses(shared_broker: KafkaCompatBroker, genuine: GenuineKafka) -> Iterator[list[str]]:
    yield [shared_broker.address, genuine.address]


def both(addresses: list[str], told: Callable[[str], list[int]]) -> list[int]:
    """Return our broker's throttle times, after comparing them with Apache Kafka's."""
    ours, genuine = (told(address) for address in addresses)
    assert_alike(ours, genuine)
    return ours


def test_a_producer_over_its_quota_gets_kafkas_throttle_times(addresses: list[str]) -> None:
    def told(address: str) -> list[int]:
        client, topic = unique("client"), unique("topic")
        create_topic(address, topic)
        with (
            quotas(address, ("", client), producer_byte_rate=100_000),
            Connection(address, client_id=client) as connection,
        ):
            return [produce(connection, topic, SIZE_BYTES) for _ in range(5)]

    times_ms = both(addresses, told)
    assert not any(times_ms[:3]), "the quota of ten seconds may be used at once"
    assert 1700 < times_ms[3] < 2050, "1.2 MB use the quota of twelve seconds"


def test_a_producer_with_acks_0_is_muted(addresses: list[str]) -> None:
    """Without a response, the client does not learn its throttle time, but its connection is muted."""

    def muted_ms(address: str) -> list[int]:
        client, topic = unique("client"), unique("topic")
        create_topic(address, topic)
        with (
            quotas(address, ("", client), producer_byte_rate=100_000, request_percentage=0.000001),
            Connection(address, client_id=client) as connection,
        ):
            connection.begin(ApiKey.PRODUCE, 9, produce_request(topic, 600_000, acks=0))
            connection.begin(ApiKey.PRODUCE, 9, produce_request(topic, 600_000, acks=0))
            began_s = time.monotonic()
            connection.ask(ApiKey.API_VERSIONS, 0, {})
            return [round((time.monotonic() - began_s) * 1000)]

    (time_ms,) = both(addresses, muted_ms)
    assert 1800 < time_ms < 2600, "1.2 MB use the quota of 12 s, of which 10 s are available at once"


def test_a_consumer_over_its_quota_gets_empty_responses_and_kafkas_throttle_times(
    addresses: list[str],
) -> None:
    """A fetch above the quota gets an empty response. The session continues afterwards with the requested
    records.
    """

    def fetched(consumer: Connection, topic: str) -> Iterator[Plain]:
        """Yield the responses from the beginning of the topic to its end."""
        session, offset = 0, 0
        for epoch in count():
            request = fetch_request(topic, offset, SIZE_BYTES + 200, (session, epoch))
            answer = consumer.ask(ApiKey.FETCH, 11, request)
            assert answer["error_code"] == 0
            assert answer["session_id"] == session or session == 0
            session = answer["session_id"]
            if not answer["throttle_time_ms"]:
                (topic_answer,) = answer["responses"]
                assert len(topic_answer["partitions"][0]["records"]) > SIZE_BYTES
                offset += 1
            yield answer
            if offset == 4:
                return

    def told(address: str) -> list[int]:
        client, topic = unique("client"), unique("topic")
        create_topic(address, topic)
        with Connection(address) as other:
            for _ in range(4):
                produce(other, topic, SIZE_BYTES)
            # Warm up the JVM.
            assert [answer["throttle_time_ms"] for answer in fetched(other, topic)] == [0] * 4
        times_ms = []
        with (
            quotas(address, ("", client), consumer_byte_rate=100_000),
            Connection(address, client_id=client) as consumer,
        ):
            for answer in fetched(consumer, topic):
                times_ms.append(answer["throttle_time_ms"])
                if answer["throttle_time_ms"]:
                    assert answer["responses"] == []
                    alter(address, ("", client), consumer_byte_rate=10_000_000)
                    await_notices(address)
        return times_ms

    times_ms = both(addresses, told)
    assert [each > 0 for each in times_ms] == [False, False, False, True, False]


def test_a_throttled_full_fetch_does_not_create_a_session(addresses: list[str]) -> None:
    def told(address: str) -> list[int]:
        client, topic = unique("client"), unique("topic")
        create_topic(address, topic)
        with Connection(address) as producer:
            produce(producer, topic, SIZE_BYTES)
        with (
            quotas(address, ("", client), consumer_byte_rate=20_000),
            Connection(address, client_id=client) as consumer,
        ):
            answer = consumer.ask(ApiKey.FETCH, 11, fetch_request(topic, 0, SIZE_BYTES + 200, (0, 0)))
        assert (answer["error_code"], answer["session_id"], answer["responses"]) == (0, 0, [])
        return [answer["throttle_time_ms"]]

    both(addresses, told)


def test_the_request_quota_results_in_kafkas_throttle_times(addresses: list[str]) -> None:
    """A client is throttled for at most one window at a time, regardless of how much it exceeds the quota."""

    def told(address: str) -> list[int]:
        client = unique("client")
        times_ms = []
        with quotas(address, ("", client), request_percentage=0.000001):
            for key, version, request in (
                (ApiKey.METADATA, 9, {"topics": []}),
                (ApiKey.API_VERSIONS, 3, {}),
                (ApiKey.LIST_GROUPS, 3, {}),
                (ApiKey.FETCH, 11, fetch_request("nowhere", 0, 100)),
            ):
                with Connection(address, client_id=client) as connection:
                    times_ms.append(connection.ask(key, version, request)["throttle_time_ms"])
            with Connection(address, client_id=client) as connection:
                request = {**fetch_request("nowhere", 0, 100), "replica_id": 7}
                times_ms.append(connection.ask(ApiKey.FETCH, 11, request)["throttle_time_ms"])
        return times_ms

    assert both(addresses, told) == [1000, 1000, 1000, 1000, 0], "a follower is exempt"


def created(connection: Connection, version: int, name: str, partitions: int, **more: bool) -> Plain:
    topics = [{"name": name, "num_partitions": partitions, "replication_factor": 1}]
    return connection.ask(ApiKey.CREATE_TOPICS, version, {"topics": topics, "timeout_ms": 15_000, **more})


def test_the_controller_mutation_quota_results_in_kafkas_throttle_times(addresses: list[str]) -> None:
    """Above the quota, requests of new clients are rejected, and those of old clients are served and muted
    (KIP-599).
    """
    codes: list[list[tuple[int, str | None]]] = []

    def told(address: str) -> list[int]:
        client = unique("client")
        answers, results = [], []
        with quotas(address, ("", client), controller_mutation_rate=0.1):
            names = [unique("topic") for _ in range(4)]
            steps: list[tuple[ApiKey, int, Plain]] = []
            for version, name, more in ((7, names[0], {}), (7, names[1], {"validate_only": True})):
                topics = [{"name": name, "num_partitions": 20, "replication_factor": 1}]
                request = {"topics": topics, "timeout_ms": 15_000, **more}
                steps.append((ApiKey.CREATE_TOPICS, version, request))
            for version, name in ((7, names[1]), (5, names[2])):
                topics = [{"name": name, "num_partitions": 2, "replication_factor": 1}]
                steps.append((ApiKey.CREATE_TOPICS, version, {"topics": topics, "timeout_ms": 15_000}))
            for version, count in ((3, 3), (2, 4)):
                topics = [{"name": names[2], "count": count, "assignments": None}]
                steps.append((ApiKey.CREATE_PARTITIONS, version, {"topics": topics, "timeout_ms": 15_000}))
            deletion: Plain = {"topic_names": [names[2]], "timeout_ms": 15_000}
            steps += [(ApiKey.DELETE_TOPICS, version, deletion) for version in (5, 4)]
            for key, version, request in steps:
                # Use a new connection for each request, because connections are muted.
                with Connection(address, client_id=client) as connection:
                    answer = connection.ask(key, version, request)
                answers.append(answer["throttle_time_ms"])
                for part in ("topics", "results", "responses"):
                    results += [
                        (item["error_code"], item.get("error_message")) for item in answer.get(part, ())
                    ]
        codes.append(results)
        return answers

    times_ms = both(addresses, told)
    exceeded = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert [code for code, _ in codes[0]] == [0, 0, exceeded, 0, exceeded, 0, exceeded, 0]
    assert codes[0] == codes[1]
    assert times_ms[:2] == [0, 0], "the first request may exceed the quota once"


PRECEDENCE: list[Who] = [
    ("", None),
    ("", "client"),
    (None, ""),
    (None, None),
    (None, "client"),
    (USER, ""),
    (USER, None),
    (USER, "client"),
]
"""From the least specific to the most specific."""


def test_the_most_specific_quota_applies(addresses: list[str]) -> None:
    """Each more specific quota has a lower rate, so it throttles for longer."""

    def told(address: str) -> list[int]:
        topic, client = unique("topic"), unique("client")
        create_topic(address, topic)
        stored: list[Who] = []
        times_ms = []
        try:
            for number, (user, client_id) in enumerate(PRECEDENCE, 1):
                who = (user, client if client_id == "client" else client_id)
                alter(address, who, producer_byte_rate=40_000 - 4_000 * number)
                stored.append(who)
                await_notices(address)
                with Connection(address, client_id=client) as connection:
                    times_ms.append(produce(connection, topic, 400_000))
        finally:
            for who in stored:
                alter(address, who, producer_byte_rate=None)
        return times_ms

    times_ms = both(addresses, told)
    # Three of the throttle times include records counted before, because some of the quotas share a rate.
    assert all(each > 1_000 for each in times_ms)


def test_client_id_quotas_do_not_apply_to_clients_without_an_id(addresses: list[str]) -> None:
    def told(address: str) -> list[int]:
        topic = unique("topic")
        create_topic(address, topic)
        times_ms = []
        with quotas(address, ("", None), producer_byte_rate=1_000):
            for client_id in (None, "", unique("client")):
                with Connection(address, client_id=client_id) as connection:
                    times_ms.append(produce(connection, topic, SIZE_BYTES))
        return times_ms

    assert both(addresses, told)[:2] == [0, 0]
