"""Security of a ZooKeeper session: SASL credentials, TLS, and the ACLs of created nodes.

Independent of kazoo, and without I/O. The broker creates these objects from its settings.
"""

from __future__ import annotations

import socket
import ssl
from typing import Final, NamedTuple, Protocol

_OPEN_TO_ALL: Final = "/consumers"
"""World-writable, because old Kafka consumers write below this node themselves."""

_SECRET: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
"""Path prefixes that are not world-readable: credentials, keystore passwords, tokens."""


class DigestLogin(NamedTuple):
    """Name and password for SASL DIGEST-MD5. `setting` names their source."""

    username: str
    password: str
    setting: str

    def __repr__(self) -> str:
        """Return a representation without the password."""
        return f"DigestLogin({self.username!r}, {self.setting})"


class Unusable(OSError):
    """A server responds, but no session is possible. The message gives the reason and names the settings."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        # kazoo logs this text.
        self.strerror = why


class Tls(Protocol):
    """Wraps connections in TLS. Not called in the event loop's thread."""

    def wrap(self, connection: socket.socket, host: str) -> ssl.SSLSocket:
        """Wrap a connection to a host, and complete the handshake. Blocks up to the socket's timeout. Raises
        Unusable, or another OSError.
        """

    def explain(self, error: OSError) -> OSError:
        """The exception to report for an error of the connection after the handshake."""


class StoreSecurity(NamedTuple):
    """Security of a session. `login`: authenticate to ZooKeeper. `tls`: use TLS. `protects_nodes`: set ACLs
    on created nodes (zookeeper.set.acl).
    """

    login: DigestLogin | None = None
    tls: Tls | None = None
    protects_nodes: bool = False


OPEN: Final = StoreSecurity()
"""The default, as in Kafka: plaintext, no authentication, nodes open to all."""


class Access(NamedTuple):
    """Permissions of other clients on a protected node. Its creator has all permissions."""

    world_reads: bool
    world_writes: bool


def access_of_others(path: str) -> Access:
    """The permissions, by Kafka's rules, on a protected node at this path below the chroot."""
    if path == _OPEN_TO_ALL:
        return Access(world_reads=True, world_writes=True)
    return Access(world_reads=not path.startswith(_SECRET), world_writes=False)
