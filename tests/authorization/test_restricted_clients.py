"""Responses to a client with few permissions, as a user would notice them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from tests.authorization.guest_requests import codes_in
from tests.authorization.policies import GUEST_HOST, Policy, Resource
from tests.authorization.servers import OurBroker
from tests.conformance.batches import batch
from tests.conformance.wire import Connection, Plain

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
CLUSTER = Resource(ResourceType.CLUSTER, CLUSTER_NAME)


@pytest.fixture
def admin(ours: OurBroker) -> Iterator[Connection]:
    with Connection(ours.address) as connection:
        yield connection


@pytest.fixture
def guest(ours: OurBroker) -> Iterator[Connection]:
    ours.authorizer.asked.clear()
    with Connection(ours.address, source=GUEST_HOST) as connection:
        yield connection


@pytest.fixture
def restricted(ours: OurBroker) -> Iterator[OurBroker]:
    """Our broker, with every client treated as a guest, because client libraries cannot choose their source
    address."""
    ours.authorizer.everybody_is_a_guest = True
    yield ours
    ours.authorizer.everybody_is_a_guest = False


def make(admin: Connection, *names: str) -> None:
    topics = [{"name": name, "num_partitions": 2, "replication_factor": 1} for name in names]
    admin.ask(ApiKey.CREATE_TOPICS, 4, {"topics": topics, "timeout_ms": 9000})


def granted(**topics: Operation) -> dict[Resource, list[Operation]]:
    return {Resource(TOPIC, name): [operation] for name, operation in topics.items()}


def produced(*topics: str, **more: Any) -> Plain:
    parts = [{"index": index, "records": batch(1)} for index in (0, 1)]
    data = [{"name": topic, "partition_data": parts} for topic in topics]
    return {"acks": -1, "timeout_ms": 9000, "topic_data": data, **more}


def end_of(admin: Connection, topic: str) -> int:
    place = [{"partition_index": 0, "timestamp": -1}]
    asked = {"replica_id": -1, "topics": [{"name": topic, "partitions": place}]}
    offset: int = admin.ask(ApiKey.LIST_OFFSETS, 4, asked)["topics"][0]["partitions"][0]["offset"]
    return offset


def test_with_acks_0_a_denial_closes_the_connection_after_permitted_topics_are_written(
    ours: OurBroker, admin: Connection, guest: Connection
) -> None:
    make(admin, "acks-mine", "acks-theirs")
    ours.authorizer.policy = Policy(granted(**{"acks-mine": Operation.WRITE}))
    guest.begin(ApiKey.PRODUCE, 8, produced("acks-theirs", "acks-mine", acks=0))
    assert guest.closed_by_peer()
    assert (end_of(admin, "acks-mine"), end_of(admin, "acks-theirs")) == (1, 0)


def test_the_authorizer_checks_each_topic_of_a_request_only_once(
    ours: OurBroker, admin: Connection, guest: Connection
) -> None:
    make(admin, "once-mine", "once-theirs")
    ours.authorizer.policy = Policy(granted(**{"once-mine": Operation.READ}))
    asked = ours.authorizer.asked
    topics = ("once-mine", "once-theirs")
    guest.ask(ApiKey.PRODUCE, 8, produced(*topics, *topics))
    assert asked == [(Operation.WRITE, TOPIC, name) for name in topics]
    asked.clear()
    parts = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 9} for index in (0, 1)]
    wanted = [{"topic": name, "partitions": parts} for name in topics]
    guest.ask(ApiKey.FETCH, 11, {"max_wait_ms": 0, "session_epoch": -1, "topics": wanted})
    assert asked == [(Operation.READ, TOPIC, name) for name in topics]


def test_topic_listings_contain_only_topics_that_the_client_may_describe(
    ours: OurBroker, admin: Connection, guest: Connection
) -> None:
    """DescribeTopicPartitions responds like a KRaft broker."""
    make(admin, "pages-a", "pages-b", "pages-c")
    ours.authorizer.policy = Policy(granted(**{"pages-b": Operation.READ}))
    names = [{"name": name} for name in ("pages-c", "pages-b", "pages-a", "pages-absent")]
    answer = guest.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": names})
    told = {item["name"]: (item["error_code"], len(item["partitions"])) for item in answer["topics"]}
    assert told == {"pages-a": (29, 0), "pages-b": (0, 2), "pages-c": (29, 0), "pages-absent": (29, 0)}
    (known,) = (item for item in answer["topics"] if not item["error_code"])
    bits = 1 << Operation.READ | 1 << Operation.DESCRIBE
    assert known["topic_authorized_operations"] == bits
    answer = guest.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": []})
    assert [item["name"] for item in answer["topics"]] == ["pages-b"], "others are omitted"


def test_a_reader_of_a_topic_sees_only_offsets_for_that_topic(
    admin: Connection, restricted: OurBroker
) -> None:
    restricted.authorizer.everybody_is_a_guest = False
    make(admin, "client-mine", "client-theirs")
    admin.ask(ApiKey.PRODUCE, 8, produced("client-mine", "client-theirs"))
    restricted.authorizer.everybody_is_a_guest = True
    resources = granted(**{"client-mine": Operation.READ})
    restricted.authorizer.policy = Policy(resources | {Resource(GROUP, "client-group"): [Operation.READ]})
    where: dict[str, str | int | float | bool] = {"bootstrap.servers": restricted.address}
    seen = AdminClient(where).list_topics(timeout=10).topics
    assert set(seen) == {"client-mine"}
    settings = {**where, "auto.offset.reset": "earliest", "group.id": "client-group"}
    consumer = Consumer(settings)
    consumer.subscribe(["client-mine"])
    assert _first(consumer).topic() == "client-mine"
    consumer.close()
    consumer = Consumer(settings)
    consumer.subscribe(["client-theirs"])
    assert _first_error(consumer) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    consumer.close()
    consumer = Consumer({**settings, "group.id": "their-group"})
    consumer.subscribe(["client-mine"])
    assert _first_error(consumer) == KafkaError.GROUP_AUTHORIZATION_FAILED
    consumer.close()


def test_write_permission_on_any_topic_allows_idempotent_writes(
    admin: Connection, restricted: OurBroker
) -> None:
    restricted.authorizer.everybody_is_a_guest = False
    make(admin, "write-mine", "write-theirs")
    restricted.authorizer.everybody_is_a_guest = True
    restricted.authorizer.policy = Policy(granted(**{"write-mine": Operation.WRITE}))
    outcomes: list[tuple[str, int | None]] = []

    def told(error: KafkaError | None, message: Any) -> None:
        outcomes.append((message.topic(), None if error is None else error.code()))

    producer = Producer({"bootstrap.servers": restricted.address, "enable.idempotence": True})
    for topic in ("write-mine", "write-theirs"):
        producer.produce(topic, b"value", on_delivery=told)
        producer.flush(20)
    assert outcomes == [("write-mine", None), ("write-theirs", KafkaError.TOPIC_AUTHORIZATION_FAILED)]
    restricted.authorizer.policy = Policy()
    with Connection(restricted.address) as connection:
        asked = {"transactional_id": None, "transaction_timeout_ms": 1000}
        assert connection.ask(ApiKey.INIT_PRODUCER_ID, 4, asked)["error_code"] == 31
        restricted.authorizer.policy = Policy({CLUSTER: [Operation.IDEMPOTENT_WRITE]})
        assert connection.ask(ApiKey.INIT_PRODUCER_ID, 4, asked)["error_code"] == 0


def test_a_denied_request_does_not_create_an_internal_topic(
    ours: OurBroker, admin: Connection, guest: Connection
) -> None:
    ours.authorizer.policy = Policy()
    for version, request in (
        (4, {"key_type": 1, "coordinator_keys": ["theirs"]}),
        (2, {"key_type": 1, "key": "theirs"}),
    ):
        answer = guest.ask(ApiKey.FIND_COORDINATOR, version, request)
        assert 53 in codes_in(answer), answer
    known = admin.ask(ApiKey.METADATA, 4, {"topics": None, "allow_auto_topic_creation": False})
    assert "__transaction_state" not in {topic["name"] for topic in known["topics"]}


def test_transactions_need_permission_on_their_transactional_id(restricted: OurBroker) -> None:
    restricted.authorizer.policy = Policy()
    producer = Producer(
        {"bootstrap.servers": restricted.address, "transactional.id": "theirs", "log_level": 0}
    )
    with pytest.raises(KafkaException) as caught:
        producer.init_transactions(20)
    assert caught.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def _first(consumer: Consumer) -> Any:
    until_s = time.monotonic() + 20
    while time.monotonic() < until_s:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            return message
    raise AssertionError("no record received")


def _first_error(consumer: Consumer) -> int:
    until_s = time.monotonic() + 20
    while time.monotonic() < until_s:
        message = consumer.poll(1)
        error = None if message is None else message.error()
        if error is not None:
            return int(error.code())
    raise AssertionError("no error reported")
