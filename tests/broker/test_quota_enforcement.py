"""Quotas: when they take effect, and for which clients, brokers and connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kafka_compat.broker import Broker, standalone_broker
from kafka_compat.config import BrokerConfig
from kafka_compat.protocol.api_keys import ApiKey
from tests.conformance.wire import Closed, Connection
from tests.quotas.clients import (
    alter,
    await_notices,
    create_topic,
    fetch_request,
    produce,
    produce_request,
    unique,
)
from tests.support import java
from tests.support.campaign import rounds
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import GenuineKafka, KafkaCompatBroker, StartBroker


@pytest.fixture
async def lone(tmp_path: Path) -> AsyncIterator[Broker]:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(tmp_path)}
    broker = standalone_broker(BrokerConfig.from_properties(settings))
    await broker.start()
    yield broker
    await broker.stop()


def address_of(broker: Broker) -> str:
    host, port = broker.addresses["PLAINTEXT"]
    return f"{host}:{port}"


async def test_quota_stages_are_not_installed_without_quotas(lone: Broker) -> None:
    """The stages are installed with the first quota and removed with the last. Requests in progress finish as
    they started."""
    address = address_of(lone)
    running = lone._running
    assert running is not None
    dispatcher = running.dispatcher

    def has_stages() -> bool:
        assert (dispatcher._calls.stages is None) == (lone.services.quotas is None)
        return dispatcher._calls.stages is not None

    await asyncio.to_thread(create_topic, address, "t")
    assert not has_stages()
    for before, after in ((None, 1000.0), (1000.0, None)):
        with Connection(address, client_id="c") as waiting, Connection(address, client_id="c") as other:
            waiting.begin(ApiKey.FETCH, 11, {**fetch_request("t", 0, 1000), "max_wait_ms": 500})
            await asyncio.to_thread(other.ask, ApiKey.METADATA, 9, {"topics": []})
            assert has_stages() == (before is not None)
            await asyncio.to_thread(alter, address, ("", "c"), producer_byte_rate=after)
            async with asyncio.timeout(5):
                while has_stages() != (after is not None):
                    await asyncio.to_thread(other.ask, ApiKey.API_VERSIONS, 0, {})
            answer = await asyncio.to_thread(waiting.finish, ApiKey.FETCH, 11)
            assert (answer["error_code"], answer["throttle_time_ms"]) == (0, 0)
            told_ms = await asyncio.to_thread(produce, other, "t", 20_000)
            assert (told_ms > 0) == (after is not None)


async def test_an_unreadable_quota_does_not_affect_other_quotas(
    lone: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka's tools write the ZooKeeper nodes directly, and so may other programs."""
    store = lone.services.store
    await store.ensure("/config/clients")
    for name, payload in (
        ("broken", b"{"),
        ("wrong", b'{"version":1,"config":{"producer_byte_rate":"fast"}}'),
        ("right", b'{"version":1,"config":{"producer_byte_rate":"1000"}}'),
    ):
        await store.put(f"/config/clients/{name}", payload)
        lone.membership.announce(f"clients/{name}")
    address = address_of(lone)
    await asyncio.to_thread(create_topic, address, "t")
    for name, is_throttled in (("broken", False), ("wrong", False), ("right", True)):
        with Connection(address, client_id=name) as connection:
            assert (await asyncio.to_thread(produce, connection, "t", 20_000) > 0) == is_throttled
    assert caplog.text.count("keeping the previous quotas") == 2


def test_quotas_survive_a_kill(start_broker: StartBroker) -> None:
    broker = start_broker()
    create_topic(broker.address, "t")
    alter(broker.address, ("ANONYMOUS", None), producer_byte_rate=1000)
    alter(broker.address, ("", "other"), producer_byte_rate=10)
    broker.restart(kill=True)
    with Connection(broker.address, client_id="anybody") as connection:
        assert 9_000 < produce(connection, "t", 20_000) < 12_000


def configs(broker: KafkaCompatBroker | GenuineKafka, *change: str) -> None:
    java.run("kafka-configs", "--bootstrap-server", broker.address, "--alter", *change)


def test_kafka_configs_can_set_quotas(start_broker: StartBroker) -> None:
    broker = start_broker()
    create_topic(broker.address, "t")
    entity = ("--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", "c")
    configs(broker, *entity, "--add-config", "producer_byte_rate=1000")
    with Connection(broker.address, client_id="c") as connection:
        assert produce(connection, "t", 20_000) > 0
    configs(broker, *entity, "--delete-config", "producer_byte_rate")
    with Connection(broker.address, client_id="c") as connection:
        assert produce(connection, "t", 20_000) == 0


def test_a_quota_set_through_any_broker_applies_on_kafka_compat_and_apache_kafka_brokers(
    tmp_path: Path,
) -> None:
    """A quota set through any broker applies on all brokers, each broker enforcing it separately."""
    genuine = GenuineKafka(tmp_path / "genuine", {"broker.id": "1"})
    genuine.start()
    assert genuine.zookeeper is not None
    settings = {"broker.id": "2", "zookeeper.connect": genuine.zookeeper.address}
    ours = KafkaCompatBroker(tmp_path / "ours", settings)
    try:
        alter(genuine.address, ("", "before"), request_percentage=0.000001)
        ours.start()
        assert metadata_throttled_ms(ours, "before") == 1000, "quotas stored before the broker started apply"
        for told, obeying in ((genuine, ours), (ours, genuine)):
            client = unique("client ~*%")
            alter(told.address, ("ANONYMOUS", client), request_percentage=0.000001)
            await_notices(obeying.address, by=told.address)
            assert metadata_throttled_ms(obeying, client) == 1000
            alter(told.address, ("ANONYMOUS", client), request_percentage=None)
            await_notices(obeying.address, by=told.address)
            assert metadata_throttled_ms(obeying, client) == 0
    finally:
        ours.stop()
        genuine.stop()


def metadata_throttled_ms(broker: KafkaCompatBroker | GenuineKafka, client: str) -> int:
    with Connection(broker.address, client_id=client) as connection:
        told: int = connection.ask(ApiKey.METADATA, 9, {"topics": []})["throttle_time_ms"]
        return told


def connect(address: str) -> bool:
    """Return whether the broker serves a new connection."""
    with Connection(address) as connection:
        try:
            connection.ask(ApiKey.API_VERSIONS, 0, {})
        except Closed:
            return False
        return True


def limit_address(address: str, host: str | None, rate: float) -> None:
    ops = [{"key": "connection_creation_rate", "value": rate, "remove": False}]
    entry = {"entity": [{"entity_type": "ip", "entity_name": host}], "ops": ops}
    while True:
        # This connection comes from the limited address too, so the broker may close it.
        with suppress(Closed), Connection(address) as connection:
            request = {"entries": [entry], "validate_only": False}
            answer = connection.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)
            assert [one["error_code"] for one in answer["entries"]] == [0]
            return


def test_connections_are_accepted_within_the_rate_limit_of_their_address(start_broker: StartBroker) -> None:
    """Connections above the rate are delayed and then closed; all others are served."""
    broker = start_broker({"quota.window.num": "3"})
    limit_address(broker.address, None, 20)
    began_s = time.monotonic()
    served = [connect(broker.address) for _ in range(100)]
    took_s = time.monotonic() - began_s
    assert 40 < served.count(True) <= 20 * (2 + took_s) * 1.1
    assert False in served
    limit_address(broker.address, "127.0.0.1", 1000)
    # Addresses can have individual rates. At the default rate, the broker would not serve this many
    # connections at once.
    wait_until(lambda: all(connect(broker.address) for _ in range(50)), 10, "50 connections at once")


RATES_OF_LISTENERS = ["listener.name.plaintext.max.connection.creation.rate", "max.connection.creation.rate"]


@pytest.mark.parametrize("setting", RATES_OF_LISTENERS[: rounds(everyday=1, campaign=2)])
def test_listeners_are_paused_when_connections_exceed_the_rate_limit(
    start_broker: StartBroker, setting: str
) -> None:
    broker = start_broker({"quota.window.num": "3", setting: "20"})
    began_s = time.monotonic()
    count = 0
    while time.monotonic() - began_s < 3:
        assert connect(broker.address), "every connection is served, possibly after a delay"
        count += 1
    assert 54 <= count <= 66, "20 connections per second"


@contextmanager
def open_connections(address: str, count: int) -> Iterator[list[Connection]]:
    opened = [Connection(address) for _ in range(count)]
    for each in opened:
        each.ask(ApiKey.API_VERSIONS, 0, {})
    try:
        yield opened
    finally:
        for each in opened:
            each.close()


def test_a_connection_waits_until_a_slot_is_free(tmp_path: Path) -> None:
    """Every listener has its own slots, as in Apache Kafka."""
    port, other_port = free_port(), free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},OTHER://127.0.0.1:{other_port}",
        "listener.name.other.max.connections": "2",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    broker = KafkaCompatBroker(tmp_path, settings, port=port)
    broker.start()
    other = f"127.0.0.1:{other_port}"
    try:
        with open_connections(other, 2) as opened, Connection(other) as third:
            third.begin(ApiKey.API_VERSIONS, 0, {})
            assert connect(broker.address)
            assert third.hears_nothing()
            opened[0].close()
            third.finish(ApiKey.API_VERSIONS, 0)
    finally:
        broker.stop()


def test_an_inter_broker_connection_takes_over_the_slot_of_an_idle_client(tmp_path: Path) -> None:
    """A connection on the inter-broker listener makes the broker close the connection on another listener
    that was idle for the longest time.
    """
    port, other_port = free_port(), free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},OTHER://127.0.0.1:{other_port}",
        "max.connections": "3",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }
    broker = KafkaCompatBroker(tmp_path, settings, port=port)
    broker.start()
    other = f"127.0.0.1:{other_port}"
    try:
        with open_connections(other, 3) as opened:
            for each in opened[1:]:
                each.ask(ApiKey.API_VERSIONS, 0, {})
            assert connect(broker.address)
            assert opened[0].closed_by_peer()
            for each in opened[1:]:
                each.ask(ApiKey.API_VERSIONS, 0, {})
    finally:
        broker.stop()


def test_produce_requests_in_old_versions_are_throttled(start_broker: StartBroker) -> None:
    """The response is sent immediately and the connection is muted, so throttling does not depend on the
    client (KIP-219)."""
    broker = start_broker({"quota.window.num": "3"})
    create_topic(broker.address, "t")
    alter(broker.address, ("", "old"), producer_byte_rate=10_000)
    with Connection(broker.address, client_id="old") as connection:
        began_s = time.monotonic()
        told = connection.ask(ApiKey.PRODUCE, 3, produce_request("t", 25_000))["throttle_time_ms"]
        assert time.monotonic() - began_s < 0.4 < told / 1000
        connection.ask(ApiKey.API_VERSIONS, 0, {})
        assert time.monotonic() - began_s >= told / 1000
