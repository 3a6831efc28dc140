"""The addresses that clients receive from a broker with kafka.compat.published.listeners."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from kafka_compat.api.caller import Caller
from kafka_compat.broker.addresses import Addresses
from kafka_compat.broker.published import PublishedAddresses
from kafka_compat.metadata.cache import BrokerMetadata
from kafka_compat.network.routes import Routes

GATEWAY, OWN, NEIGHBOR, FAR = "172.18.0.1", "172.18.0.2", "172.18.0.3", "203.0.113.9"
PUBLISHED = ("localhost", 19092)
ROUTES = Routes(frozenset({ip_network("172.18.0.0/16")}), frozenset({ip_address(GATEWAY)}))
BOUND = {"PLAINTEXT": ("", 9092)}


def received(
    peer: str, host: str = OWN, *, broker_id: int = 1, routes: Routes | None = ROUTES
) -> tuple[str, int]:
    """Return the address of a broker that a client receives from broker 1, to which it is connected. Broker
    2 runs in the same container, and broker 3 in a different one.
    """
    published = {"PLAINTEXT": PUBLISHED}
    reached = PublishedAddresses(published, lambda: routes).reached_at("PLAINTEXT", peer, host, 9092)
    caller = Caller(host=peer, listener_name="PLAINTEXT", local_host=reached[0], local_port=reached[1])
    addresses = Addresses(1, {}, BOUND, published)
    endpoints = {1: addresses.own()["PLAINTEXT"], 2: ("localhost", 19093), 3: ("kafka3", 9092)}
    broker = BrokerMetadata(broker_id, {"PLAINTEXT": endpoints[broker_id]})
    return addresses.address_for(broker, caller)


@pytest.mark.parametrize("peer", [GATEWAY, FAR])
def test_a_client_on_the_host_receives_the_published_address(peer: str) -> None:
    assert received(peer) == PUBLISHED


def test_a_client_in_another_container_receives_the_address_of_the_container() -> None:
    assert received(NEIGHBOR) == (OWN, 9092)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", OWN])
def test_a_client_in_the_same_container_receives_the_address_that_it_used(host: str) -> None:
    assert received(host, host) == (host, 9092)


def test_every_client_receives_the_address_that_it_used_if_the_networks_are_unknown() -> None:
    assert received(GATEWAY, routes=None) == (OWN, 9092)


def test_brokers_in_the_same_container_have_consecutive_ports_for_each_client() -> None:
    assert received(GATEWAY, broker_id=2) == ("localhost", 19093)
    assert received(NEIGHBOR, broker_id=2) == (OWN, 9093)
    assert received("127.0.0.1", "127.0.0.1", broker_id=2) == ("127.0.0.1", 9093)


def test_brokers_in_other_containers_have_their_registered_address() -> None:
    for peer in (GATEWAY, NEIGHBOR):
        assert received(peer, broker_id=3) == ("kafka3", 9092)


def test_other_listeners_are_not_affected() -> None:
    published = PublishedAddresses({"OTHER": PUBLISHED}, lambda: ROUTES)
    assert published.reached_at("PLAINTEXT", GATEWAY, OWN, 9092) == (OWN, 9092)


def test_an_advertised_address_takes_precedence() -> None:
    addresses = Addresses(1, {"PLAINTEXT": ("kafka", 9092)}, BOUND)
    caller = Caller(host=GATEWAY, listener_name="PLAINTEXT", local_host=OWN, local_port=9092)
    broker = BrokerMetadata(1, addresses.own())
    assert addresses.address_for(broker, caller) == ("kafka", 9092)
