"""A topic can be used as soon as its creation returns, and is gone as soon as its deletion returns."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic as NewKafkaPythonTopic

from kafka_compat.testing import KafkaBroker, KafkaCluster
from tests.support import campaign

ROUNDS = campaign.rounds(5, 200)


@pytest.mark.parametrize("kind", [KafkaBroker, KafkaCluster])
def test_confluent_kafka_uses_and_recreates_topics_at_once(kind: type[KafkaBroker]) -> None:
    with kind(settings={"auto.create.topics.enable": False}) as broker:
        addresses = broker.bootstrap_servers.split(",")
        for number in range(ROUNDS):
            # Use a new client for each step, because clients keep metadata. Take turns among the brokers.
            admin = AdminClient({"bootstrap.servers": addresses[number % len(addresses)], "log_level": 2})
            admin.create_topics([NewTopic("flights", 2)])["flights"].result(20)
            for address in addresses:
                found = AdminClient({"bootstrap.servers": address}).list_topics("flights", timeout=20)
                assert found.topics["flights"].error is None
                assert {each.leader >= 0 for each in found.topics["flights"].partitions.values()} == {True}
            producer = Producer({"bootstrap.servers": addresses[-1], "log_level": 2, "retries": 0})
            producer.produce("flights", b"EWR", partition=1)
            assert producer.flush(20) == 0
            admin.delete_topics(["flights"])["flights"].result(20)
            for address in addresses:
                assert (
                    "flights"
                    not in AdminClient({"bootstrap.servers": address}).list_topics(timeout=20).topics
                )


@pytest.mark.parametrize("kind", [KafkaBroker, KafkaCluster])
def test_kafka_python_uses_and_recreates_topics_at_once(kind: type[KafkaBroker]) -> None:
    with kind(settings={"auto.create.topics.enable": False}) as broker:
        addresses = broker.bootstrap_servers.split(",")
        for number in range(ROUNDS):
            admin = KafkaAdminClient(bootstrap_servers=addresses[number % len(addresses)])
            admin.create_topics([NewKafkaPythonTopic("flights", 2, 1)])
            producer = KafkaProducer(bootstrap_servers=addresses[-1], retries=0, max_block_ms=5000)
            producer.send("flights", b"EWR", partition=1).get(10)
            producer.close()
            admin.delete_topics(["flights"])
            for address in addresses:
                consumer = KafkaConsumer(bootstrap_servers=address)
                assert "flights" not in consumer.topics()
                consumer.close()
            admin.close()
