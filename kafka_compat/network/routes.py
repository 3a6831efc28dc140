"""The networks to which this machine or container is directly connected, from Linux's routing tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, NamedTuple, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_IPV4_TABLE: Final = "/proc/net/route"
_IPV6_TABLE: Final = "/proc/net/ipv6_route"
_LOOPBACK: Final = "lo"
_IPV6_FIELDS: Final = 10


class Routes(NamedTuple):
    """The networks without a router in between, and the addresses of the routers (gateways)."""

    networks: frozenset[IPv4Network | IPv6Network]
    gateways: frozenset[Address]

    def is_neighbor(self, address: Address) -> bool:
        """Whether `address` is in one of the networks, and is not a router."""
        return address not in self.gateways and any(address in network for network in self.networks)


def address_of(text: str) -> Address:
    """Return the address with the given text: an IPv4 address if it was mapped to IPv6. Raises ValueError."""
    address = ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def read() -> Routes | None:
    """Read the routing tables. Return None if there are none, as on macOS."""
    found = []
    for path in (_IPV4_TABLE, _IPV6_TABLE):
        try:
            with open(path) as file:
                found.append(file.read())
        except OSError:
            found.append("")
    return parse(*found) if any(found) else None


def parse(ipv4_table: str, ipv6_table: str) -> Routes:
    """Parse the contents of /proc/net/route and /proc/net/ipv6_route."""
    networks: set[IPv4Network | IPv6Network] = set()
    gateways: set[Address] = set()
    for fields in _rows(ipv4_table.splitlines()[1:]):
        destination, gateway, mask = (_ipv4(fields[column]) for column in (1, 2, 7))
        if int(gateway):
            gateways.add(gateway)
        elif fields[0] != _LOOPBACK and int(mask):
            networks.add(IPv4Network((int(destination), f"{mask}"), strict=False))
    for fields in _rows(ipv6_table.splitlines()):
        if len(fields) < _IPV6_FIELDS or fields[9] == _LOOPBACK:
            continue
        next_hop, prefix_length = IPv6Address(int(fields[4], 16)), int(fields[1], 16)
        if int(next_hop):
            gateways.add(next_hop)
        elif 0 < prefix_length < 128 and not fields[0].startswith("ff"):
            networks.add(IPv6Network((int(fields[0], 16), prefix_length), strict=False))
    return Routes(frozenset(networks), frozenset(gateways))


def _rows(lines: Iterable[str]) -> Iterable[list[str]]:
    return (line.split() for line in lines if line.strip())


def _ipv4(text: str) -> IPv4Address:
    """Decode an address of /proc/net/route: eight hexadecimal digits in the machine's byte order."""
    return IPv4Address(int.from_bytes(bytes.fromhex(text), sys.byteorder))
