"""Security of a ZooKeeper session: SASL credentials, TLS, and the ACLs of created nodes.

Pure, and without kazoo: the broker creates it from its settings.
"""

from __future__ import annotations

import socket
import ssl
from typing import Final, NamedTuple, Protocol

_OPEN_TO_ALL: Final = "/consumers"
"""Early consumers of Kafka write below this node themselves."""

_SECRET: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
"""Path prefixes that are not world-readable: credentials, keystore passwords, tokens."""


class DigestLogin(NamedTuple):
    """Name and password for SASL DIGEST-MD5; `setting` names their source."""

    username: str
    password: str
    setting: str

    def __repr__(self) -> str:
        """Without the password."""
        return f"DigestLogin({self.username!r}, {self.setting})"


class Unusable(OSError):
    """A server responds, but no session is possible; the message explains why and names the settings."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        # Messages that kazoo logs.
        self.strerror = why


class Tls(Protocol):
    """Wraps connections in TLS. Called in a thread other than the event loop's."""

    def wrap(self, connection: socket.socket, host: str) -> ssl.SSLSocket:
        """A new connection to a host, after the handshake. Blocks up to the socket's timeout. Unusable, or
        another OSError.
        """

    def explain(self, error: OSError) -> OSError:
        """The exception to report for an error of the connection after the handshake."""


class StoreSecurity(NamedTuple):
    """Security of a session. `login`: authenticate at ZooKeeper. `tls`: use TLS. `protects_nodes`: created
    nodes get ACLs (zookeeper.set.acl).
    """

    login: DigestLogin | None = None
    tls: Tls | None = None
    protects_nodes: bool = False


OPEN: Final = StoreSecurity()
"""As Kafka without ZooKeeper security settings: plaintext, no authentication, nodes open to all."""


class Access(NamedTuple):
    """Permissions of other clients on a protected node: its creator has all permissions."""

    world_reads: bool
    world_writes: bool


def access_of_others(path: str) -> Access:
    """Kafka's rules for a node of a session that protects its nodes, by the path below the chroot."""
    if path == _OPEN_TO_ALL:
        return Access(world_reads=True, world_writes=True)
    return Access(world_reads=not path.startswith(_SECRET), world_writes=False)
