"""Our brokers and Apache Kafka's in one cluster with the same security settings: brokers and clients
authenticate to each other and to ZooKeeper over TLS.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.mixed.cluster import GENUINE, OURS, MixedCluster
from tests.support import campaign
from tests.support.client_security import for_librdkafka
from tests.support.node_acls import OPEN
from tests.support.process import wait_until

TOPIC = "events"
OWNER = ("sasl:kafka:ALL", "x509:CN=kafka:ALL")
WORLD_READS = tuple(sorted((*OWNER, "world:anyone:READ")))


def _cluster(directory: Path, kinds: dict[int, str]) -> MixedCluster:
    return MixedCluster(directory, kinds, session_timeout_ms=3000, secured=True)


CAMPAIGN = pytest.mark.skipif(not campaign.enabled(), reason="takes minutes: with --campaign")


@CAMPAIGN
@pytest.mark.parametrize("second", [OURS, GENUINE])
def test_killing_brokers_and_zookeeper_does_not_lose_acknowledged_records(
    tmp_path: Path, second: str
) -> None:
    with _cluster(tmp_path, {1: OURS, 2: second, 3: OURS}) as cluster:
        cluster.create_topic(TOPIC, 3)
        controller_id = cluster.elect_controller(OURS)
        sent = _produce(cluster)
        # Consuming creates the offsets topic, which needs all three brokers.
        assert _consume(cluster, sent, "before") == sent
        cluster.brokers[controller_id].kill()
        cluster.wait_without(controller_id, TOPIC)
        sent += _produce(cluster)
        cluster.start(controller_id)
        cluster.wait_in_sync(TOPIC)
        # Choose a broker that was not killed yet.
        other = 2 if controller_id != 2 else 1
        cluster.brokers[other].kill()
        cluster.wait_without(other, TOPIC)
        # Sessions either resume on new connections or are replaced: both must authenticate and protect nodes.
        cluster.zookeeper.restart(kill=True)
        sent += _produce(cluster)
        _check(cluster, sent)


@CAMPAIGN
def test_killing_our_and_apache_kafkas_controllers_does_not_lose_acknowledged_records(tmp_path: Path) -> None:
    with _cluster(tmp_path, {1: OURS, 2: GENUINE, 3: GENUINE}) as cluster:
        cluster.create_topic(TOPIC, 3)
        sent = 0
        for kind in (OURS, GENUINE, OURS):
            controller_id = cluster.elect_controller(kind)
            sent += _produce(cluster)
            cluster.brokers[controller_id].kill()
            cluster.wait_without(controller_id, TOPIC)
            sent += _produce(cluster)
            cluster.start(controller_id)
            cluster.wait_in_sync(TOPIC)
        cluster.zookeeper.restart(kill=True)
        _check(cluster, sent)


def _check(cluster: MixedCluster, sent: int) -> None:
    """Check that no records are lost, topics can be created, and every node is protected."""
    wait_until(lambda: _has_topic(cluster, "after"), 60, "a new topic")
    cluster.wait_in_sync("after", replicas=2)
    assert _consume(cluster, sent, "after") == sent
    acls = cluster.node_acls()
    assert acls.pop("/consumers") == OPEN
    secret = {path for path, acl in acls.items() if acl == OWNER}
    assert {path for path in acls if path.startswith(("/config/users", "/config/brokers"))} == secret
    assert {acl for path, acl in acls.items() if path not in secret} == {WORLD_READS}
    assert "/brokers/topics/after/partitions/0/state" in acls


def _has_topic(cluster: MixedCluster, topic: str) -> bool:
    """Try once to create the topic, and return whether it exists. The controller may be changing."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, **for_librdkafka()})
    with suppress(KafkaException):
        admin.create_topics([NewTopic(topic, 1, 2)])[topic].result(30)
    return bool(cluster.states(topic))


def _produce(cluster: MixedCluster) -> int:
    """Return the number of records acknowledged by all in-sync replicas."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            **for_librdkafka(),
        }
    )
    acknowledged: list[object] = []
    for number in range(30):
        producer.produce(TOPIC, str(number), on_delivery=lambda error, _: acknowledged.append(error))
    assert producer.flush(60) == 0
    assert acknowledged == [None] * 30
    return len(acknowledged)


def _consume(cluster: MixedCluster, count: int, group: str) -> int:
    """Read and commit the records in a group, and return their number."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            **for_librdkafka(),
        }
    )
    consumer.subscribe([TOPIC])
    seen, at_end = 0, set[int]()
    while len(at_end) < 3:
        message = consumer.poll(60)
        assert message is not None, f"{seen} of {count} records"
        error = message.error()
        if error is None:
            seen += 1
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            at_end.add(message.partition() or 0)
    consumer.commit(asynchronous=False)
    consumer.close()
    return seen
