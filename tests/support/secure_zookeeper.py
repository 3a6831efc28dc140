"""A ZooKeeper that authenticates clients by SASL DIGEST-MD5, by TLS certificates, or both."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from kazoo.client import KazooClient
from kazoo.security import make_digest_acl_credential

from tests.support.certificates import Authority, Identity
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.servers import ZooKeeper

_SUPER_PASSWORD = "super secret"
DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"


def quoted(text: str) -> str:
    """Return the text as a value in JAAS syntax."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def login(username: str, password: str) -> str:
    """Return a client's login in JAAS syntax."""
    return f"{DIGEST_MODULE} required username={quoted(username)} password={quoted(password)};"


def jaas_file(path: Path, username: str, password: str, section: str = "Client") -> Path:
    """Write a file for java.security.auth.login.config."""
    path.write_text(f"// of a client\n{section} {{\n  {login(username, password)}\n}};\n")
    return path


def pem_store(path: Path, identity: Identity) -> Path:
    """Write the key and its certificates to one file."""
    path.write_text(identity.key_pem() + identity.chain_pem())
    return path


class SecureZooKeeper(ZooKeeper):
    """With `users`, clients may authenticate by SASL, and must with `demands_login`. With an `authority`, it
    accepts TLS at `secure_address`, where clients need certificates signed by it, unless `client_auth` says
    otherwise.
    """

    def __init__(
        self,
        directory: Path,
        users: Mapping[str, str] | None = None,
        authority: Authority | None = None,
        *,
        demands_login: bool = False,
        client_auth: Literal["need", "want", "none"] = "need",
        protocol: str = "TLSv1.2",
        hosts: Sequence[str] = ("localhost", "127.0.0.1"),
    ) -> None:
        super().__init__(directory)
        self.secure_port = free_port()
        self._users = users
        self._demands_login = demands_login
        self._client_auth = client_auth
        self._protocol = protocol
        self._authority = authority
        self._hosts = hosts

    @property
    def secure_address(self) -> str:
        """The address of the TLS listener."""
        return f"{self.host}:{self.secure_port}"

    def settings(self) -> dict[str, str]:
        settings = super().settings()
        if self._users is not None:
            settings["authProvider.sasl"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
            if self._demands_login:
                settings["enforce.auth.enabled"] = "true"
                # `all_powerful` uses the digest scheme.
                settings["enforce.auth.schemes"] = "sasl,digest"
        if self._authority is not None:
            trusted = self.directory / "trusted.pem"
            trusted.write_text(self._authority.pem())
            store = pem_store(self.directory / "keys.pem", self._authority.issue(hosts=self._hosts))
            settings |= {
                "secureClientPort": str(self.secure_port),
                "secureClientPortAddress": self.host,
                "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
                "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
                "ssl.keyStore.location": str(store),
                "ssl.trustStore.location": str(trusted),
                "ssl.clientAuth": self._client_auth,
                "ssl.protocol": self._protocol,
            }
            if self._protocol == "TLSv1.3":
                # ZooKeeper's default list contains only TLS 1.2 cipher suites.
                settings["ssl.ciphersuites"] = "TLS_AES_256_GCM_SHA384"
        return settings

    def wait_ready(self, timeout_s: float = 60) -> None:
        """Wait until all ports are open: ZooKeeper opens the one for TLS after it has reported its start."""
        super().wait_ready(timeout_s)
        if "secureClientPort" in self.settings():
            wait_until(self._accepts_tls, timeout_s, "ZooKeeper's port for TLS")

    def _accepts_tls(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((self.host, self.secure_port), 5):
            return True
        return False

    def all_powerful(self, chroot: str = "", **options: Any) -> KazooClient:
        """Return a client, not yet started, that ignores all ACLs. `options` are passed to kazoo."""
        auth_data = [("digest", f"super:{_SUPER_PASSWORD}")]
        return KazooClient(self.address + chroot, auth_data=auth_data, **options)

    def prepare(self) -> None:
        super().prepare()
        credential = make_digest_acl_credential("super", _SUPER_PASSWORD)
        self.jvm_options = [f"-Dzookeeper.DigestAuthenticationProvider.superDigest={credential}"]
        if self._users is not None:
            users = " ".join(f"user_{name}={quoted(password)}" for name, password in self._users.items())
            file = self.directory / "jaas.conf"
            file.write_text(f"Server {{ {DIGEST_MODULE} required {users}; }};\n")
            self.jvm_options += [f"-Djava.security.auth.login.config={file}", "-Dfile.encoding=UTF-8"]
