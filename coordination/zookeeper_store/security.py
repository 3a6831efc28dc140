"""Security of a ZooKeeper session: SASL credentials, TLS, and ACLs of new nodes. No I/O, and no kazoo."""

import socket
import ssl
from typing import Final, NamedTuple, Protocol

_OPEN_TO_ALL: Final = "/consumers"
"""A world-writable node, below which old Kafka consumers write."""

_SECRET: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
"""Path prefixes of nodes that are not world-readable: credentials, keystore passwords and tokens."""


class DigestLogin(NamedTuple):
    """Username and password for SASL DIGEST-MD5. `setting` is the name of the setting that contains them."""

    username: str
    password: str
    setting: str

    def __repr__(self) -> str:
        """Omit the password, because the text may be logged."""
        return f"DigestLogin({self.username!r}, {self.setting})"


class Unusable(OSError):
    """A server that responds, but does not permit a session. The message contains the reason."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.strerror = why  # Set this attribute, because kazoo logs it.


class Tls(Protocol):
    """Interface for TLS connections. Methods are not called in the event loop's thread."""

    def wrap(self, connection: socket.socket, host: str) -> ssl.SSLSocket:
        """Complete the TLS handshake of a connection to a host. Raises Unusable or another OSError."""

    def explain(self, error: OSError) -> OSError:
        """Return the exception to raise for a connection error after the handshake."""


class StoreSecurity(NamedTuple):
    """Security of a session: credentials, TLS, and whether created nodes get ACLs (zookeeper.set.acl)."""

    login: DigestLogin | None = None
    tls: Tls | None = None
    protects_nodes: bool = False


OPEN: Final = StoreSecurity()
"""The default, as in Kafka: plaintext, no authentication, and nodes that are open to everyone."""


class Access(NamedTuple):
    """Permissions of other clients on a protected node, whose creator has all permissions."""

    world_reads: bool
    world_writes: bool


def access_of_others(path: str) -> Access:
    """Return other clients' permissions on a protected node, by Kafka's rules. `path` excludes the chroot."""
    if path == _OPEN_TO_ALL:
        return Access(world_reads=True, world_writes=True)
    return Access(world_reads=not path.startswith(_SECRET), world_writes=False)
