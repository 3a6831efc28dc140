"""The networks and gateways in Linux's routing tables."""

from __future__ import annotations

import sys
from ipaddress import ip_address, ip_network

import pytest

from kafka_compat.network.routes import address_of, parse

_HEADER = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
_NOWHERE = "0" * 32


def _hex(address: str) -> str:
    packed = ip_address(address).packed
    return (packed[::-1] if sys.byteorder == "little" else packed).hex().upper()


def _route(interface: str, destination: str, gateway: str, mask: str) -> str:
    fields = _hex(destination), _hex(gateway), "0003", "0", "0", "0", _hex(mask), "0", "0", "0"
    return "\t".join([interface, *fields]) + "\n"


def _route_v6(interface: str, destination: str, prefix_length: int, gateway: str = _NOWHERE) -> str:
    fields = destination, f"{prefix_length:02x}", _NOWHERE, "00", gateway, "400", "1", "0", "1"
    return " ".join([*fields, interface]) + "\n"


def _address_v6(text: str) -> str:
    return ip_address(text).packed.hex()


CONTAINER_V4 = (
    _HEADER
    + _route("eth0", "0.0.0.0", "172.18.0.1", "0.0.0.0")
    + _route("eth0", "172.18.0.0", "0.0.0.0", "255.255.0.0")
    + _route("eth1", "172.19.0.0", "0.0.0.0", "255.255.255.0")
)

CONTAINER_V6 = (
    _route_v6("eth0", _address_v6("fd00::"), 64)
    + _route_v6("eth0", _address_v6("fe80::"), 64)
    + _route_v6("eth0", _NOWHERE, 0, _address_v6("fd00::1"))
    + _route_v6("lo", _address_v6("::1"), 128)
    + _route_v6("eth0", _address_v6("ff00::"), 8)
)


def test_networks_and_gateways_of_a_container_are_read() -> None:
    found = parse(CONTAINER_V4, CONTAINER_V6)
    networks = ("172.18.0.0/16", "172.19.0.0/24", "fd00::/64", "fe80::/64")
    assert found.networks == {ip_network(each) for each in networks}
    assert found.gateways == {ip_address("172.18.0.1"), ip_address("fd00::1")}


@pytest.mark.parametrize(
    ("peer", "is_neighbor"),
    [
        ("172.18.0.3", True),
        ("::ffff:172.18.0.3", True),
        ("172.19.0.9", True),
        ("fd00::3", True),
        ("fe80::1:2%eth0", True),
        ("172.18.0.1", False),
        ("::ffff:172.18.0.1", False),
        ("fd00::1", False),
        ("172.19.1.9", False),
        ("8.8.8.8", False),
    ],
)
def test_only_hosts_of_the_same_networks_are_neighbors(peer: str, is_neighbor: bool) -> None:
    assert parse(CONTAINER_V4, CONTAINER_V6).is_neighbor(address_of(peer)) == is_neighbor


def test_a_container_without_a_network_has_no_neighbors() -> None:
    found = parse(_HEADER, "")
    assert not found.networks
    assert not found.gateways
