"""The pytest fixtures, used by separate test suites."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import campaign
from tests.testing.left_over import folders
from tests.testing.suites import run

FIVE_LINES = """
    from kafka import KafkaConsumer, KafkaProducer

    def test_flights(kafka):
        KafkaProducer(bootstrap_servers=kafka.bootstrap_servers).send("flights", b"EWR").get(10)
        at = {"bootstrap_servers": kafka.bootstrap_servers, "auto_offset_reset": "earliest"}
        assert next(KafkaConsumer("flights", **at)).value == b"EWR"
"""

MANY = """
    import os, time
    import pytest
    from confluent_kafka import Consumer, Producer

    @pytest.mark.parametrize("number", range(COUNT))
    def test_alone(kafka, kafka_topic, number):
        assert kafka.topics() == [kafka_topic]
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
        producer.produce(kafka_topic, b"%d" % number)
        producer.produce("same-name", b"%d" % number)
        assert producer.flush(20) == 0
        settings = {"group.id": "same-group", "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
        consumer.subscribe(["same-name"])
        message = consumer.poll(20)
        assert (message.offset(), message.value()) == (0, b"%d" % number)
        consumer.commit(asynchronous=False)
        consumer.close()
        with open(f"pids-{os.getpid()}", "a") as pids:
            print(kafka.pid, file=pids)
"""


def test_a_five_line_test_passes(tmp_path: Path) -> None:
    found = run(tmp_path, FIVE_LINES)
    assert "1 passed" in found.stdout, found.stdout


@pytest.mark.timeout(1200)
def test_many_tests_in_several_workers_leave_nothing_behind(tmp_path: Path) -> None:
    count, workers = campaign.rounds(40, 500), campaign.rounds(2, 4)
    found = run(tmp_path, MANY.replace("COUNT", str(count)), "-n", str(workers), "--durations=5")
    assert f"{count} passed" in found.stdout, found.stdout
    brokers = {int(line) for file in tmp_path.glob("pids-*") for line in file.read_text().split()}
    assert 1 <= len(brokers) <= workers
    assert not any(Path(f"/proc/{pid}").exists() for pid in brokers)
    assert not folders()


def test_resetting_a_broker_is_fast(tmp_path: Path) -> None:
    text = """
        import time
        from kafka import KafkaProducer

        times_s = []

        def test_it(kafka):
            for _ in range(20):
                producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
                producer.send("t", b"1").get(10)
                producer.close()
                began_s = time.perf_counter()
                kafka.reset()
                times_s.append(time.perf_counter() - began_s)
            print(sorted(times_s))
            assert sorted(times_s)[10] < MOST_S
    """
    found = run(tmp_path, text.replace("MOST_S", "0.02" if campaign.enabled() else "0.2"))
    assert "1 passed" in found.stdout, found.stdout


def test_a_suite_can_configure_a_cluster_and_settings(tmp_path: Path) -> None:
    text = """
        import pytest

        @pytest.fixture(scope="session")
        def kafka_settings():
            return {"num.partitions": 5}

        @pytest.mark.parametrize("number", range(2))
        def test_cluster(kafka_cluster, number):
            assert kafka_cluster.topics() == []
            kafka_cluster.create_topic("t", -1)
            assert kafka_cluster.bootstrap_servers.count(",") == 2

        def test_killed(kafka):
            kafka.kill()

        def test_there_again(kafka, kafka_topic):
            assert kafka.topics() == [kafka_topic]
    """
    found = run(tmp_path, text)
    assert "4 passed" in found.stdout, found.stdout


def test_tests_without_a_broker_do_not_import_the_broker(tmp_path: Path) -> None:
    text = """
        import sys

        def test_it():
            assert "kafka_compat.testing.plugin" in sys.modules
            assert not [name for name in sys.modules if name.startswith("kafka_compat.broker")]
            assert "kafka_compat.protocol" not in sys.modules
    """
    found = run(tmp_path, text)
    assert "1 passed" in found.stdout, found.stdout
