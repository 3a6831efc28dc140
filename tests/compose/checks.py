"""Checks of the cluster of docker-compose.yml.

A check returns a summary to print, or raises AssertionError.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import kafka
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from tests.compose.docker import BROKERS, INSIDE, TOPICS, Cluster, docker
from tests.durability.load import PARTITIONS, ConfluentProducer, Load, check, read_everything
from tests.support.process import wait_until
from tests.support.servers import PROJECT

COUNT = 300
LOADED = "loaded"
"""The topic that the load writes to."""

HEAL_S = 90


def settings(cluster: Cluster) -> str:
    """Check the user of the processes, KAFKA_CREATE_TOPICS, and settings given as environment variables."""
    for name in BROKERS:
        assert docker("exec", cluster.id(name), "id", "-u").strip() != "0", f"{name} runs as root"
    admin = _admin(cluster)
    wait_until(
        lambda: all(len(_isrs(admin, topic)) == count for topic, count in TOPICS.items()), 30, "topics"
    )
    wait_until(lambda: _all_in_sync(admin), 30, "three replicas in sync")
    expected = {
        ("topic", "state"): ("cleanup.policy", "compact"),
        ("topic", "orders"): ("min.insync.replicas", "2"),
        ("broker", "2"): ("zookeeper.session.timeout.ms", "6000"),
    }
    for (kind, name), (setting, value) in expected.items():
        resource = ConfigResource(ConfigResource.Type[kind.upper()], name)
        found = admin.describe_configs([resource])[resource].result(20)[setting].value
        assert found == value, f"{setting} of {kind} {name} is {found}"
    return "not root; orders:6:3 and state:3:3:compact are there; settings come from the environment"


def client_inside(cluster: Cluster) -> str:
    """A container on the network reads records that the host wrote, and the host reads the container's
    records."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(COUNT):
        producer.produce("orders", b"outside %d" % number)
    assert producer.flush(30) == 0, "the host's records were not acknowledged"
    library = Path(kafka.__file__).parent
    told = docker(
        "run",
        "--rm",
        f"--network={cluster.project}_default",
        f"--volume={library}:/client/kafka:ro",
        f"--volume={PROJECT / 'tests/compose/inside.py'}:/client/inside.py:ro",
        "--env=PYTHONPATH=/client",
        "--entrypoint=python",
        cluster.broker_image,
        "/client/inside.py",
        INSIDE,
        "orders",
        str(COUNT),
    )
    found = values_of_orders(cluster)
    assert found == _written_values(), f"{len(found)} of {2 * COUNT} records"
    return told.strip()


def client_suite(cluster: Cluster, arguments: list[str]) -> str:
    """Every client library runs every scenario of tests/clients from the host."""
    command = [sys.executable, "-m", "pytest", "-q", "tests/clients/test_matrix.py", *arguments]
    command.append(f"--bootstrap={cluster.bootstrap}")
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-1].strip("= ")


def losing_brokers(cluster: Cluster) -> str:
    """Under load with acks=all, one broker's container is killed; another broker stops, and Docker restarts
    it."""
    admin = _admin(cluster)
    admin.create_topics([NewTopic(LOADED, num_partitions=PARTITIONS)])[LOADED].result(20)
    with Load(ConfluentProducer(cluster.bootstrap, LOADED)) as load:
        load.wait_for_acknowledgement()
        victim = BROKERS[_leader(admin, LOADED, 0) - 1]
        docker("kill", cluster.id(victim))
        wait_until(
            lambda: _leader(admin, LOADED, 0) not in (-1, BROKERS.index(victim) + 1),
            HEAL_S,
            "a new leader",
        )
        before = len(load.acknowledged)
        wait_until(
            lambda: len(load.acknowledged) > before + 1000, HEAL_S, "1,000 records without the dead broker"
        )
        docker("start", cluster.id(victim))
        wait_until(lambda: _all_in_sync(admin), HEAL_S, "three replicas in sync after the restart")
        stopped = BROKERS[_leader(admin, LOADED, 0) - 1]
        docker("exec", cluster.id(stopped), "python", "-c", "import os, signal; os.kill(1, signal.SIGTERM)")
        wait_until(
            lambda: cluster.inspect(stopped, "{{.RestartCount}}") == "1",
            HEAL_S,
            "restart by Docker",
        )
        cluster.wait_healthy(stopped)
        wait_until(lambda: _all_in_sync(admin), HEAL_S, "three replicas in sync at the end")
        load.stop_sending()
    findings = check(read_everything(cluster.bootstrap, LOADED), load.acknowledged, load.sent)
    assert findings.nothing and not load.given_up, f"{findings}, given up: {len(load.given_up)}"
    return (
        f"{victim} killed and started, {stopped} stopped and restarted by Docker: "
        f"{len(load.acknowledged)} records acknowledged, 0 lost, 0 duplicated, order kept; "
        "all replicas in sync again"
    )


def data_outlive_containers(cluster: Cluster) -> str:
    """After all containers are removed and created again, the volumes still contain the records."""
    cluster.down(volumes=False)
    cluster.up()
    found = values_of_orders(cluster)
    assert found == _written_values(), f"{len(found)} of {2 * COUNT} records"
    return f"new containers have all {len(found)} records of orders"


def values_of_orders(cluster: Cluster) -> set[bytes]:
    """Return every value in the topic `orders`, read from the host by a consumer group of Kafka 4."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "outside",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    found: set[bytes] = set()
    while len(found) < 2 * COUNT:
        message = consumer.poll(30)
        if message is None:
            break
        value = message.value()
        assert message.error() is None and value is not None, message.error()
        found.add(value)
    consumer.close()
    return found


def _written_values() -> set[bytes]:
    return {b"%s %d" % (place, number) for place in (b"inside", b"outside") for number in range(COUNT)}


def _admin(cluster: Cluster) -> AdminClient:
    """Return an admin client that does not log lost connections to brokers."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})


def _isrs(admin: AdminClient, topic: str) -> list[list[int]]:
    found = admin.list_topics(topic, timeout=20).topics[topic]
    return [partition.isrs for partition in found.partitions.values()]


def _all_in_sync(admin: AdminClient) -> bool:
    topics = admin.list_topics(timeout=20).topics.values()
    return all(len(partition.isrs) == 3 for topic in topics for partition in topic.partitions.values())


def _leader(admin: AdminClient, topic: str, partition: int) -> int:
    return int(admin.list_topics(topic, timeout=20).topics[topic].partitions[partition].leader)
