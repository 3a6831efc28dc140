"""A network of Linux network namespaces, in which each host has a veth pair to a bridge and can be isolated.

The bridge has a separate namespace, so that no firewall of the machine interferes. Hosts find each other by
permanent neighbour entries. A direction is cut by an entry with an unused address: packets sent that way are
lost without an error, as with a broken switch.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

SUBNET = "198.51.100"
"""TEST-NET-2 (RFC 5737), addresses 64 to 95."""
FIRST_ADDRESS = 65
PREFIX_BITS = 27
NOWHERE = "02:00:00:00:00:fe"
_CLONE_NEWNET = 0x40000000

T = TypeVar("T")


def missing() -> str | None:
    """Return the reason why namespaces are not available, or None if they are."""
    if shutil.which("ip") is None:
        return "there is no `ip` (Debian package iproute2)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"kc{os.getpid()}-probe"
    try:
        _batch(None, [f"netns add {name}"])
        _batch(name, ["link add bridge type bridge", "link add one type veth peer name other"])
    except RuntimeError as problem:
        return f"no network of namespaces can be made: {problem}"
    finally:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)
    return None


def _batch(namespace: str | None, lines: list[str]) -> None:
    """Run `ip` commands in a namespace. Raises RuntimeError."""
    where = [] if namespace is None else ["-n", namespace]
    done = subprocess.run(
        ["ip", *where, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"ip in {namespace}: {done.stderr.strip()}")


class Network:
    """Hosts by name, each in a separate namespace."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self.hosts = tuple(hosts)
        self._prefix = f"kc{os.getpid()}"
        self._number = {host: number for number, host in enumerate(self.hosts)}
        self._lost: set[tuple[str, str]] = set()
        self._namespaces: list[str] = []

    def address(self, host: str) -> str:
        return f"{SUBNET}.{FIRST_ADDRESS + self._number[host]}"

    def launcher(self, host: str) -> list[str]:
        """Return the command prefix that runs a command on the host."""
        return ["ip", "netns", "exec", self._namespace(host)]

    def create(self) -> None:
        """Create the network. Raises RuntimeError with the error of `ip`."""
        switch = self._namespace("switch")
        self._namespaces = [switch, *(self._namespace(host) for host in self.hosts)]
        _batch(None, [f"netns add {name}" for name in self._namespaces])
        ports = ["link add bridge type bridge", "link set bridge up"]
        for host in self.hosts:
            near = f"eth0 netns {self._namespace(host)} address {self._link_address(host)}"
            ports.append(f"link add to-{host} type veth peer name {near}")
            ports.append(f"link set to-{host} master bridge up")
        _batch(switch, ports)
        for host in self.hosts:
            _batch(
                self._namespace(host),
                [
                    f"address add {self.address(host)}/{PREFIX_BITS} dev eth0",
                    "link set lo up",
                    "link set eth0 up",
                    *(self._way(host, target) for target in self.hosts if target != host),
                ],
            )

    def route(self, host: str, gateway: str) -> None:
        """Let the host send packets for other networks to another host."""
        _batch(self._namespace(host), [f"route add default via {self.address(gateway)}"])

    def delete(self) -> None:
        """Delete the network. Its processes must have exited."""
        _batch(None, [f"netns delete {name}" for name in self._namespaces])
        self._namespaces = []

    # Faults

    def unplug(self, host: str) -> None:
        """Take the host's interface down, so that no packets pass in either direction."""
        _batch(self._namespace("switch"), [f"link set to-{host} down"])

    def lose(self, source: str, target: str) -> None:
        """Lose packets from `source` to `target`. The other direction is not affected."""
        self._lost.add((source, target))
        self._point(source, target)

    def cut(self, one: str, others: Iterable[str]) -> None:
        """Lose packets between `one` and the others in both directions."""
        for other in others:
            self.lose(one, other)
            self.lose(other, one)

    def heal(self) -> None:
        """Restore all connections."""
        lost, self._lost = self._lost, set()
        for source, target in lost:
            self._point(source, target)
        _batch(self._namespace("switch"), [f"link set to-{host} up" for host in self.hosts])

    # Work on hosts

    def thread(self, host: str, work: Callable[[], None]) -> threading.Thread:
        """Return a thread, not yet started, that runs `work` on the host: its sockets and those of threads
        that it starts are in the host's namespace.
        """

        def entered() -> None:
            self._enter(host)
            work()

        return threading.Thread(target=entered, name=f"on {host}", daemon=True)

    def on(self, host: str, work: Callable[[], T]) -> T:
        """Run `work` on the host, and return its result."""
        results: list[T] = []
        failures: list[BaseException] = []

        def done() -> None:
            try:
                results.append(work())
            except BaseException as failure:
                failures.append(failure)

        thread = self.thread(host, done)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]
        return results[0]

    def _enter(self, host: str) -> None:
        descriptor = os.open(f"/run/netns/{self._namespace(host)}", os.O_RDONLY)
        try:
            # os.setns requires Python 3.12. It moves only the calling thread.
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(descriptor, _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns to {host}")
        finally:
            os.close(descriptor)

    def _namespace(self, host: str) -> str:
        return f"{self._prefix}-{host}"

    def _link_address(self, host: str) -> str:
        return f"02:00:00:00:01:{self._number[host]:02x}"

    def _way(self, source: str, target: str) -> str:
        link_address = NOWHERE if (source, target) in self._lost else self._link_address(target)
        return f"neighbour replace {self.address(target)} lladdr {link_address} dev eth0 nud permanent"

    def _point(self, source: str, target: str) -> None:
        _batch(self._namespace(source), [self._way(source, target)])
