"""Full, failed and slow disks, simulated on request, and the effects on real clients."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient

from kafka_compat.testing import BrokerFailed, ControlFailed, KafkaBroker, KafkaCluster
from tests.control.clients import produce, producer
from tests.control.values import sent, stored
from tests.support.process import wait_until


def test_records_are_stored_when_space_becomes_available_on_a_full_disk(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    client = producer(broker, **{"message.timeout.ms": 20_000})
    assert sent(client, "t", b"1") == [None]
    (disk,) = broker.control.break_disks(full=True)
    assert disk["full"] and not disk["is_offline"]
    client.produce("t", b"2")
    assert client.flush(0.5) == 1, "the client retries"
    (disk,) = broker.control.mend_disks()
    assert not disk["full"]
    assert client.flush(20) == 0
    assert stored(broker, "t") == [b"1", b"2"]
    assert broker.running


def test_a_slow_disk_delays_acknowledgements(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    client = producer(broker)
    assert sent(client, "t", b"1") == [None]
    broker.control.break_disks(slow_ms=300)
    began_s = time.monotonic()
    assert sent(client, "t", b"2") == [None]
    assert time.monotonic() - began_s >= 0.3
    broker.control.mend_disks()
    assert stored(broker, "t") == [b"1", b"2"]


def test_a_failed_disk_stops_its_broker_and_other_brokers_take_over() -> None:
    with KafkaCluster(3, {"log.flush.interval.messages": 1}) as cluster:
        cluster.create_topic("t", 3, config={"min.insync.replicas": 2})
        produce(cluster, "t", 30)
        cluster.control.break_disks(broker=2, failed=True)
        produce(cluster, "t", 30)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

        def leaders() -> set[int]:
            return {each.leader for each in admin.list_topics("t").topics["t"].partitions.values()}

        wait_until(lambda: leaders() == {1, 3}, 20, "leaders on the other brokers")
        wait_until(lambda: len(cluster.control.disks()) == 2, 20, "stop of the broker with the failed disk")
        assert cluster.control.await_records("t", 60) == 60
        with pytest.raises(BrokerFailed, match="exit code 1"):
            cluster.stop()
        cluster.start()
        wait_until(lambda: len(admin.list_topics("t").brokers) == 3, 20, "all brokers registered again")
        assert cluster.control.await_records("t", 60) == 60


def test_a_broker_whose_only_disk_failed_restarts_with_its_records() -> None:
    with KafkaBroker() as broker:
        broker.create_topic("t")
        produce(broker, "t", 3)
        broker.control.break_disks(failed=True)
        client = producer(broker, **{"message.timeout.ms": 1000})
        assert sent(client, "t", b"lost") != [None]
        wait_until(lambda: not broker.running, 20, "exit of the broker")
        assert "every log directory is offline" in broker.log
        broker.start()
        assert stored(broker, "t") == [b"0", b"1", b"2"]


def test_invalid_disk_faults_are_rejected(broker: KafkaBroker) -> None:
    with pytest.raises(ControlFailed, match="expected one of full, failed, slow_ms, not none"):
        broker.control.break_disks()
    with pytest.raises(ControlFailed, match="unknown log directory: expected one of /"):
        broker.control.break_disks(broker=77, full=True)
