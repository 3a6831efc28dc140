"""Forks, snapshots and resets with three brokers in one process."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from kafka_compat.testing import ControlFailed, KafkaBroker, KafkaCluster
from tests.control.clients import produce, producer
from tests.control.contents import commit_position, committed, fill, held
from tests.support.campaign import rounds
from tests.support.process import wait_until


@pytest.fixture(scope="module")
def running() -> Iterator[KafkaCluster]:
    with KafkaCluster(3) as cluster:
        yield cluster


@pytest.fixture
def broker(running: KafkaCluster) -> Iterator[KafkaCluster]:
    yield running
    for name in running.control.snapshots():
        running.control.delete_snapshot(name)
    running.reset()
    assert "Traceback" not in running.log


def isr(broker: KafkaBroker, topic: str, partition: int = 0) -> set[int]:
    client = producer(broker)
    found = client.list_topics(topic, 20).topics[topic].partitions[partition]
    return set(found.isrs)


def test_a_fork_is_identical_on_every_replica(broker: KafkaCluster) -> None:
    broker.create_topic("t", 3, replication_factor=3, config={"segment.bytes": 16384, "retention.ms": -1})
    fill(broker, "t")
    commit_position(broker, "g", "t", 5)
    before = held(broker, "t")
    assert broker.control.fork("t", "u", groups=["g"]) == "u"
    assert held(broker, "u") == before
    assert committed(broker, "g", "u") == 5
    fill(broker, "u", 20, 2000)
    assert held(broker, "t") == before
    assert len(held(broker, "u")) == 320
    wait_until(lambda: all(isr(broker, "u", number) == {1, 2, 3} for number in range(3)), 20, "all in sync")
    # Followers have the records of the fork, because each of them can become leader.
    for number in range(3):
        for leader in (1, 2, 3):
            broker.control.move_leader("u", number, to=leader)
    broker.control.await_records("u", 320)
    assert len(held(broker, "u")) == 320


def test_an_open_transaction_is_aborted_only_in_the_fork(broker: KafkaCluster) -> None:
    broker.create_topic("t", 1, replication_factor=3)
    client = producer(broker, **{"transactional.id": "id"})
    client.init_transactions(20)
    client.begin_transaction()
    client.produce("t", b"open")
    assert client.flush(20) == 0
    broker.control.fork("t", "u")
    produce(broker, "u")
    assert [value for _, _, _, value, _ in held(broker, "u")] == [b"0"]
    client.commit_transaction(20)
    assert [value for _, _, _, value, _ in held(broker, "t")] == [b"open"]


def test_invalid_forks_are_rejected_as_on_a_standalone_broker(broker: KafkaCluster) -> None:
    broker.create_topic("t", 1, replication_factor=3)
    with pytest.raises(ControlFailed, match="UNKNOWN_TOPIC_OR_PARTITION The topic 'x' does not exist"):
        broker.control.fork("x", "u")
    with pytest.raises(ControlFailed, match="TOPIC_ALREADY_EXISTS"):
        broker.control.fork("t", "t")
    assert broker.topics() == ["t"]


def test_all_brokers_are_restored_to_a_snapshot(broker: KafkaCluster) -> None:
    broker.create_topic("t", 3, replication_factor=3, config={"segment.bytes": 16384})
    broker.create_topic("deleted", 1, replication_factor=2)
    fill(broker, "t")
    produce(broker, "deleted", 3)
    commit_position(broker, "g", "t", 5)
    before = held(broker, "t")
    assert broker.control.snapshot("a") == "a"
    assert broker.control.snapshots() == ["a"]
    for _ in range(2):
        fill(broker, "t", 100, 1000)
        commit_position(broker, "g", "t", 9)
        broker.create_topic("other", 1, replication_factor=3)
        broker.control.ask("POST", "/topics/deleted/retention")
        broker.control.advance(3600)
        now_ms = broker.control.now_ms()
        broker.control.restore("a")
        assert broker.topics() == ["deleted", "t"]
        assert held(broker, "t") == before
        assert committed(broker, "g", "t") == 5
        assert now_ms - broker.control.now_ms() > 3500_000
    fill(broker, "t", 10, 2000)
    assert len(held(broker, "t")) == 310
    broker.restart()
    broker.control.restore("a")
    assert held(broker, "t") == before


def test_a_reset_deletes_everything_on_all_brokers(broker: KafkaCluster) -> None:
    broker.create_topic("t", 3, replication_factor=3)
    fill(broker, "t", 50)
    commit_position(broker, "g", "t", 5)
    broker.control.advance(3600)
    broker.reset()
    assert broker.topics() == []
    assert abs(broker.control.now_ms() - time.time() * 1000) < 60_000
    broker.create_topic("t", 3, replication_factor=3)
    assert held(broker, "t") == []
    assert committed(broker, "g", "t") == -1001


@pytest.mark.timeout(600)
def test_after_a_kill_a_fork_is_either_complete_or_missing() -> None:
    chance = random.Random(16)
    with KafkaCluster(3) as cluster:
        cluster.create_topic("t", 4, replication_factor=3, config={"segment.bytes": 16384})
        fill(cluster, "t", 100)
        commit_position(cluster, "g", "t", 3)
        before = held(cluster, "t")
        for number in range(rounds(3, 60)):
            name = f"fork-{number}"
            forking = threading.Thread(target=_fork, args=(cluster, name))
            forking.start()
            time.sleep(chance.uniform(0, 0.2))  # the kill comes at a random moment of the fork
            cluster.kill()
            forking.join()
            cluster.start()
            # The brokers delete an incomplete fork.
            wait_until(partial(_is_whole_or_missing, cluster, name), 20, f"{name} is complete or missing")
            if name in cluster.topics():
                cluster.control.await_records(name, 100)
                assert held(cluster, name) == before
            # After a restart, records are readable once the followers have fetched.
            cluster.control.await_records("t", 100)
            assert held(cluster, "t") == before


def _is_whole_or_missing(cluster: KafkaCluster, name: str) -> bool:
    return name not in cluster.topics() or committed(cluster, "g", name) == 3


def _fork(cluster: KafkaCluster, name: str) -> None:
    with contextlib.suppress(OSError, ControlFailed):
        cluster.control.fork("t", name, groups="all")


@pytest.mark.timeout(600)
def test_after_a_kill_the_restore_is_either_complete_or_not_started() -> None:
    chance = random.Random(28)
    with KafkaCluster(3) as cluster:
        cluster.create_topic("t", 2, replication_factor=3, config={"segment.bytes": 16384})
        fill(cluster, "t", 100)
        before = held(cluster, "t")
        cluster.control.snapshot("a")
        for number in range(rounds(2, 30)):
            fill(cluster, "t", 30, 1000 * number)
            cluster.create_topic(f"new-{number}", 1, replication_factor=3)
            later = held(cluster, "t")
            restoring = threading.Thread(target=_restore, args=(cluster,))
            restoring.start()
            time.sleep(chance.uniform(0, 0.5))  # the kill comes at a random moment of the restore
            cluster.kill()
            restoring.join()
            cluster.start()
            restored = f"new-{number}" not in cluster.topics()
            assert held(cluster, "t") == (before if restored else later)
            cluster.control.restore("a")
            assert cluster.topics() == ["t"]
            assert held(cluster, "t") == before


def _restore(cluster: KafkaCluster) -> None:
    with contextlib.suppress(OSError, ControlFailed):
        cluster.control.restore("a")
