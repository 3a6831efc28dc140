"""Security of a ZooKeeper session: SASL credentials, TLS, and the ACLs of created nodes.

Pure, and without kazoo: the broker creates it from its settings.
"""

from __future__ import annotations

import socket
import ssl
from typing import Final, NamedTuple, Protocol

_OPEN_TO_ALL: Final = "/consumers"
"""Consumers of Kafka's first years write below this node themselves."""

_SECRET: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
"""What begins so is not for the world to read: credentials, passwords of key stores, tokens."""


class DigestLogin(NamedTuple):
    """A name and a password for SASL DIGEST-MD5; `setting` is where they come from."""

    username: str
    password: str
    setting: str

    def __repr__(self) -> str:
        """Without the password."""
        return f"DigestLogin({self.username!r}, {self.setting})"


class Unusable(OSError):
    """A server is there, and no session with it can be had; the text tells why, and names the settings."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        # What kazoo logs.
        self.strerror = why


class Tls(Protocol):
    """Makes connections ones of TLS. Called by another thread than the event loop's."""

    def wrap(self, connection: socket.socket, host: str) -> ssl.SSLSocket:
        """A new connection to a host, after the handshake. It blocks as long as the socket's timeout says.
        Unusable, or another OSError.
        """

    def explain(self, error: OSError) -> OSError:
        """What an error of the connection after the handshake is told as."""


class StoreSecurity(NamedTuple):
    """`login`: log in at ZooKeeper. `tls`: speak TLS. `protects_nodes`: the nodes that this session makes
    have ACLs (zookeeper.set.acl).
    """

    login: DigestLogin | None = None
    tls: Tls | None = None
    protects_nodes: bool = False


OPEN: Final = StoreSecurity()
"""As Kafka without a setting of zookeeper's security: plain text, nobody logs in, nodes are everybody's."""


class Access(NamedTuple):
    """What others may do with a node that is protected: its creator may do everything."""

    world_reads: bool
    world_writes: bool


def access_of_others(path: str) -> Access:
    """For a node of a session that protects its nodes, by the path below the chroot: Kafka's own rules."""
    if path == _OPEN_TO_ALL:
        return Access(world_reads=True, world_writes=True)
    return Access(world_reads=not path.startswith(_SECRET), world_writes=False)
