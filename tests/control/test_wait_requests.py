"""The control API's wait requests, which return as soon as clients reach the expected state."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer

from kafka_compat.testing import ControlFailed, KafkaBroker, KafkaCluster
from tests.control.clients import produce, producer

SOON_S = 5.0

pytestmark = pytest.mark.parametrize("running", [KafkaBroker, KafkaCluster], indirect=True, scope="module")


class Reading:
    """A group member that reads in a thread."""

    def __init__(self, broker: KafkaBroker, topic: str) -> None:
        settings = {"group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
        self._client = Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
        self._client.subscribe([topic])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while not self._stop.is_set():
            message = self._client.poll(0.05)
            if message is not None and message.error() is None:
                self._client.commit(message=message, asynchronous=False)
        self._client.close()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def test_waiting_for_a_stable_or_empty_group_succeeds(broker: KafkaBroker) -> None:
    broker.create_topic("t", 4)
    assert broker.control.await_group("g", state="Dead", timeout_s=0) == {
        "state": "Dead",
        "members": [],
        "lag": None,
    }
    members = [Reading(broker, "t") for _ in range(3)]
    try:
        found = broker.control.await_group("g", state="Stable", members=3, timeout_s=20)
        assert {member["client_id"] for member in found["members"]} == {"rdkafka"}
        produce(broker, "t", 100)
        assert broker.control.await_records("t", 100) == 100
        assert broker.control.await_group("g", lag=0, timeout_s=20)["lag"] == 0
    finally:
        began_s = time.monotonic()
        for member in members:
            member.stop()
    broker.control.await_group("g", state="Empty", members=0)
    assert time.monotonic() - began_s < SOON_S


def test_the_arrival_of_records_ends_the_wait(broker: KafkaBroker) -> None:
    broker.create_topic("t", 2)
    told: list[int] = []
    waiting = threading.Thread(target=lambda: told.append(broker.control.await_records("t", 10)))
    waiting.start()
    produce(broker, "t", 9)
    waiting.join(0.3)
    assert waiting.is_alive()
    produce(broker, "t", 1)
    waiting.join(SOON_S)
    assert told == [10]


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_completing_a_transaction_ends_the_wait(broker: KafkaBroker, end: str) -> None:
    broker.create_topic("t")
    client = producer(broker, **{"transactional.id": "an id/of mine"})
    client.init_transactions(20)
    client.begin_transaction()
    client.produce("t", b"1")
    client.flush(20)
    broker.control.await_transaction("an id/of mine", "Ongoing")
    getattr(client, f"{end}_transaction")(20)
    broker.control.await_transaction("an id/of mine", f"Complete{end.capitalize()}")


def test_expiring_a_session_ends_the_wait(broker: KafkaBroker) -> None:
    broker.create_topic("t")
    client = KafkaConsumer(
        "t", bootstrap_servers=broker.bootstrap_servers, group_id="g", session_timeout_ms=45_000
    )
    client.poll(2000)
    broker.control.await_group("g", state="Stable", members=1)
    emptied = threading.Thread(target=broker.control.await_group, args=("g",), kwargs={"state": "Empty"})
    client._client.close()
    emptied.start()
    broker.control.advance(60)
    emptied.join(SOON_S)
    assert not emptied.is_alive()
    broker.control.await_group("g", state="Empty", members=0, timeout_s=0)


def test_a_timeout_reports_the_current_state(broker: KafkaBroker) -> None:
    began_s = time.monotonic()
    with pytest.raises(ControlFailed, match=r"group g did not reach state=Stable, members=2 within 200 ms"):
        broker.control.await_group("g", state="Stable", members=2, timeout_s=0.2)
    assert 0.2 <= time.monotonic() - began_s < SOON_S
    broker.create_topic("t")
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "read"})
    client.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
    client.close()
    with pytest.raises(ControlFailed, match=r'\{"state": "Empty", "members": \[\], '):
        broker.control.await_group("read", state="Stable", timeout_s=0)
    with pytest.raises(ControlFailed, match=r"topic t did not reach records=1 within 0 ms: .*0"):
        broker.control.await_records("t", 1, timeout_s=0)
    with pytest.raises(ControlFailed, match="records=-1: expected a whole number"):
        broker.control.await_records("t", -1)
