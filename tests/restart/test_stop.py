"""Shutdown by SIGTERM under load: quick, clean, and without losing acknowledged records."""

from __future__ import annotations

import threading
import time

from kafka_compat.errors import ErrorCode
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Closed, Connection, encode
from tests.restart.client import create_topic, fetch_request, produce, values_of
from tests.support.servers import KafkaCompatBroker, StartBroker

STOP_S = 5
PRODUCERS = 3
CONSUMERS = 5


class _Load(threading.Thread):
    """A connection that writes to its own topic until the broker exits."""

    def __init__(self, address: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.acknowledged = 0
        self.busy = threading.Event()
        self._address = address

    def run(self) -> None:
        try:
            with Connection(self._address) as connection:
                while True:
                    answer = produce(connection, self.topic, [b"%d" % self.acknowledged] * 10)
                    if answer.error != ErrorCode.NONE:
                        return
                    self.acknowledged += 1
                    if self.acknowledged == 20:
                        self.busy.set()
        except (Closed, OSError):
            return


def _park_fetch(address: str, topic: str) -> Connection:
    """Start a long poll of one minute at the end of the topic."""
    connection = Connection(address)
    connection.send(encode(ApiKey.FETCH, 11, fetch_request(topic, max_wait_ms=60_000)))
    return connection


def test_sigterm_under_load_exits_with_0_without_losing_acknowledged_records(
    broker: KafkaCompatBroker,
) -> None:
    loads = [_Load(broker.address, f"t{number}") for number in range(PRODUCERS)]
    with Connection(broker.address) as connection:
        create_topic(connection, "quiet")
        for load in loads:
            create_topic(connection, load.topic)
    parked = [_park_fetch(broker.address, "quiet") for _ in range(CONSUMERS)]
    for load in loads:
        load.start()
    for load in loads:
        assert load.busy.wait(30)
    began = time.monotonic()
    assert broker.process.stop() == 0
    assert time.monotonic() - began < STOP_S
    for load in loads:
        load.join(10)
        assert not load.is_alive()
    for consumer in parked:
        consumer.close()
    assert (broker.log_dir / ".kafka_cleanshutdown").exists()

    broker.start()
    assert "unclean shutdown" not in broker.process.tail()
    with Connection(broker.address) as connection:
        for load in loads:
            values = values_of(connection, load.topic)
            assert values[: load.acknowledged * 10 : 10] == [b"%d" % n for n in range(load.acknowledged)]


def test_a_waiting_consumer_gets_a_response_at_shutdown(broker: KafkaCompatBroker) -> None:
    with Connection(broker.address) as connection:
        create_topic(connection, "quiet")
    consumer = _park_fetch(broker.address, "quiet")
    assert broker.process.stop() == 0
    # The broker may send a response before it closes the connection.
    try:
        consumer.receive()
        assert consumer.closed_by_peer()
    except Closed:
        pass
    consumer.close()


def test_sigterm_with_idle_clients_and_loading_groups_stops_the_broker_in_time(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    idle = [Connection(broker.address) for _ in range(50)]
    idle[0].ask(ApiKey.FIND_COORDINATOR, 3, {"key": "group", "key_type": 0})
    began = time.monotonic()
    assert broker.process.stop() == 0
    assert time.monotonic() - began < STOP_S
    for connection in idle:
        connection.close()
