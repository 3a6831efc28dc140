"""KafkaBroker: started in one line, used, killed, started again, and closed without leaving data or processes
behind.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from kafka_compat.testing import BrokerFailed, KafkaBroker, KafkaCluster
from tests.support import campaign
from tests.testing.left_over import folders, wait_gone


def send(address: str, topic: str, value: bytes) -> int:
    """Produce one record, and return its offset."""
    offsets: list[int | None] = []
    producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 0, "log_level": 2})
    producer.produce(topic, value, on_delivery=lambda _, message: offsets.append(message.offset()))
    assert producer.flush(20) == 0
    (offset,) = offsets
    assert offset is not None
    return offset


def receive(address: str, topic: str, group: str = "group") -> tuple[int, bytes | None]:
    """Return the offset and value of the group's next record, and commit it."""
    settings = {"group.id": group, "auto.offset.reset": "earliest", "log_level": 2}
    consumer = Consumer({"bootstrap.servers": address, "enable.auto.commit": False, **settings})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(20)
        assert message is not None and message.error() is None
        consumer.commit(message=message, asynchronous=False)
        offset = message.offset()
        assert offset is not None
        return offset, message.value()
    finally:
        consumer.close()


def test_a_stopped_broker_leaves_nothing_behind() -> None:
    with KafkaBroker() as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        producer.send("flights", b"EWR").get(20)
        producer.close()
        consumer = KafkaConsumer(
            "flights", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        )
        assert next(consumer).value == b"EWR"
        consumer.close()
        assert broker.topics() == ["flights"]
        pid = broker.pid
    wait_gone(pid)
    assert not folders()
    assert not broker.running


async def test_a_broker_can_be_used_from_asynchronous_code() -> None:
    async with KafkaBroker() as broker:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)  # interval between ticks
                ticks += 1

        ticking = asyncio.ensure_future(tick())
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            await producer.send_and_wait("flights", b"EWR")
        async with AIOKafkaConsumer(
            "flights", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            assert (await consumer.getone()).value == b"EWR"
        ticking.cancel()
    assert ticks, "starting a broker does not block the event loop"


def test_several_threads_can_each_run_their_own_broker() -> None:
    found: dict[int, tuple[int, bytes | None]] = {}

    def use(number: int) -> None:
        with KafkaBroker() as broker:
            send(broker.bootstrap_servers, "t", b"%d" % number)
            found[number] = receive(broker.bootstrap_servers, "t")

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: (0, b"%d" % number) for number in range(4)}


@pytest.mark.parametrize("end", ["kill", "stop"])
@pytest.mark.parametrize("kind", [KafkaBroker, KafkaCluster])
def test_acknowledged_records_survive_a_restart(kind: type[KafkaBroker], end: str) -> None:
    with kind() as broker:
        address = broker.bootstrap_servers
        assert send(address, "t", b"first") == 0
        assert receive(address, "t") == (0, b"first")
        getattr(broker, end)()
        assert not broker.running
        broker.start()
        assert broker.bootstrap_servers == address
        assert send(address, "t", b"second") == 1
        assert receive(address, "t") == (1, b"second")
        broker.restart()
        assert broker.topics() == ["t"]


def test_a_cluster_replicates_records() -> None:
    with KafkaCluster(3) as cluster:
        cluster.create_topic("t", 6, config={"min.insync.replicas": 2})
        send(cluster.bootstrap_servers, "t", b"1")
        found = AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=20)
        assert sorted(found.brokers) == [1, 2, 3]
        partitions = found.topics["t"].partitions.values()
        assert {len(partition.isrs) for partition in partitions} == {3}
        assert {partition.leader for partition in partitions} == {1, 2, 3}


@pytest.mark.parametrize("kind", [KafkaBroker, KafkaCluster])
def test_reset_deletes_topics_groups_and_transactions(kind: type[KafkaBroker]) -> None:
    with kind() as broker:
        for _ in range(3):
            address = broker.bootstrap_servers
            broker.create_topic("t", 2, config={"cleanup.policy": "compact"})
            producer = Producer({"bootstrap.servers": address, "transactional.id": "id", "log_level": 2})
            producer.init_transactions(20)
            producer.begin_transaction()
            producer.produce("t", b"1", b"key", partition=0)
            producer.commit_transaction(20)
            assert receive(address, "t") == (0, b"1")
            broker.reset()
            assert broker.topics() == []
            admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
            assert admin.list_consumer_groups(request_timeout=20).result().valid == []


def test_an_invalid_setting_is_reported() -> None:
    with pytest.raises(BrokerFailed, match=r"exit code 2 .*\n.*Invalid value many .*num\.partitions"):
        KafkaBroker({"num.partitions": "many"}).start()
    assert not folders()


def test_a_broker_that_was_not_started_raises_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"call start\(\)"):
        KafkaBroker().bootstrap_servers  # noqa: B018


def test_settings_accept_kafkas_names_and_values() -> None:
    with KafkaBroker({"auto.create.topics.enable": False, "num.partitions": 3}) as broker:
        broker.create_topic("t", -1)
        found = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics("t", timeout=20)
        assert len(found.topics["t"].partitions) == 3


def test_the_log_of_a_broker_can_be_read() -> None:
    with KafkaBroker(verbose=True) as broker:
        assert "INFO" in broker.log
    assert broker.log == ""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_broker_stops_with_the_process_that_started_it(number: int) -> None:
    program = """
        import signal, time
        from kafka_compat.testing import KafkaBroker
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if the tests run in the background
        broker = KafkaBroker().start()
        broker.create_topic("t")
        print(broker.pid, flush=True)
        time.sleep(600)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[2],
        text=True,
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        starter.send_signal(number)
    wait_gone(pid)
    assert not folders()


def test_leftovers_of_killed_brokers_are_deleted_at_the_next_startup() -> None:
    program = """
        import os, signal
        from kafka_compat.testing import KafkaBroker
        broker = KafkaBroker().start()
        broker.kill()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with KafkaBroker() as living:
        living.stop()
        subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=Path(__file__).parents[2])
        assert len(folders()) == 2
        with KafkaBroker():
            # The data of a stopped broker is kept while its creator is alive.
            assert len(folders()) == 2
        living.start()
    assert not folders()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs process descriptors")
def test_the_end_of_the_process_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = KafkaBroker()
    broker.start()
    pauses_s: list[float] = []
    pause, this_thread = time.sleep, threading.current_thread()

    def note(duration_s: float) -> None:
        if threading.current_thread() is this_thread:
            pauses_s.append(duration_s)
        else:
            pause(duration_s)

    monkeypatch.setattr(time, "sleep", note)  # Popen.wait would poll with pauses
    broker.stop()
    broker.start()
    broker.close()
    assert pauses_s == []


def test_a_broker_starts_quickly() -> None:
    times_s = []
    for _ in range(3):
        began_s = time.perf_counter()
        with KafkaBroker():
            times_s.append(time.perf_counter() - began_s)
    print(times_s)
    assert min(times_s) < (0.4 if campaign.enabled() else 2.0), "the higher limit is for busy machines"


def test_a_broker_for_containers_keeps_its_addresses() -> None:
    with KafkaBroker(containers="host.docker.internal") as broker:
        addresses = broker.bootstrap_servers, broker.container_bootstrap_servers
        assert addresses[1].startswith("host.docker.internal:")
        broker.create_topic("flights")
        broker.restart()
        assert (broker.bootstrap_servers, broker.container_bootstrap_servers) == addresses
        assert broker.topics() == ["flights"]


def test_a_cluster_for_containers_has_an_address_for_each_broker() -> None:
    with KafkaCluster(2, containers="host.docker.internal", emulate="3.9") as cluster:
        assert cluster.container_bootstrap_servers.count("host.docker.internal:") == 2
        cluster.create_topic("flights")


def test_unsuitable_arguments_for_containers_are_rejected() -> None:
    with pytest.raises(ValueError, match="remove security and the setting listeners"):
        KafkaBroker(containers=True, security="plain")
    with pytest.raises(ValueError, match="remove security and the setting listeners"):
        KafkaBroker({"listeners": "PLAINTEXT://127.0.0.1:0"}, containers=True)
    with pytest.raises(RuntimeError, match="start it with containers=True"):
        KafkaBroker().container_bootstrap_servers  # noqa: B018
