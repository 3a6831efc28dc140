"""SASL GSSAPI (RFC 4752) with Kerberos tickets, without a security layer (use TLS). Requires the `kerberos`
extra.

Rules of the server
1. Tokens are passed to libkrb5 until both sides are authenticated. Then the server offers no security layer,
   and the client accepts this offer.
2. The client's principal is mapped by sasl.kerberos.principal.to.local.rules.
3. The server never contacts the KDC. It decrypts tickets with the key in the key table.

Rules of the client (of commands, and of brokers that log in to other brokers)
1. With a key table, libkrb5 requests tickets from the KDC, renews them before they expire, and keeps them in
   memory. Otherwise, the client uses tickets that were fetched with kinit.
2. The server is `service/host` with the dialed host name, and must prove this identity.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_compat.security.kerberos_names import KerberosName, NoName, ShortNamer
from kafka_compat.security.principal import Principal
from kafka_compat.security.sasl.client import Untrusted
from kafka_compat.security.sasl.mechanism import Refused

if TYPE_CHECKING:
    import gssapi


NO_LAYER: Final = 1
LAYERS: Final = bytes([NO_LAYER, 0, 0, 0])
"""The offered security layers and the maximum size of a wrapped message: none."""


class Unusable(Exception):
    """Raised if Kerberos cannot be used. The message states what is missing."""


class Identity(NamedTuple):
    """This broker's principal, `service/host@realm`, and the path of the key table with its key."""

    principal: str
    key_table: str


class Acceptor(NamedTuple):
    """The credentials with which a listener accepts tickets."""

    credentials: gssapi.Credentials
    default_realm: str


def acceptor(identity: Identity) -> Acceptor:
    """Read the key table, and return its credentials. Raises Unusable if the key is missing."""
    gss = library()
    check_key_table(identity)
    try:
        name = gss.Name(identity.principal, gss.NameType.kerberos_principal)
        store = {"keytab": f"FILE:{identity.key_table}"}
        credentials = gss.Credentials(name=name, usage="accept", store=store)
        anybody = gss.Name("anybody", gss.NameType.kerberos_principal)
        _, _, realm = str(anybody.canonicalize(gss.MechType.kerberos)).rpartition("@")
    except gss.exceptions.GSSError as error:
        raise Unusable(f"{identity.principal} in {identity.key_table}: {said(error)}") from None
    return Acceptor(credentials, realm)


def check_key_table(identity: Identity) -> None:
    """Raise Unusable if the file cannot be read. libkrb5 reports a missing file only as a missing key."""
    if not os.access(identity.key_table, os.R_OK):
        raise Unusable(f"cannot read the keytab {identity.key_table}")


def library() -> Any:
    """Return the gssapi package. Raises Unusable if the package or libkrb5 is missing."""
    try:
        import gssapi
    except ImportError as error:
        raise Unusable(
            "the package gssapi or the library libkrb5 is missing: pip install kafka-compat[kerberos], and "
            f"install libkrb5 ({error})"
        ) from None
    return gssapi


def said(error: Any) -> str:
    """Return the message from libkrb5, on one line."""
    return " ".join(str(error).split())


class Gssapi:
    """The server side of a GSSAPI exchange."""

    def __init__(self, credentials: gssapi.Credentials, namer: ShortNamer) -> None:
        self.principal: Principal | None = None
        self.expires_ms: int | None = None
        self.pending: Refused | None = None
        self._namer = namer
        self._context = library().SecurityContext(creds=credentials, usage="accept")
        self._error: type[Exception] = library().exceptions.GSSError
        self._next: Callable[[bytes], bytes | None] = self._ticket

    def evaluate(self, token: bytes) -> bytes | None:
        try:
            return self._next(token)
        except self._error as error:
            raise Refused(f"GSSAPI: {said(error)}") from None

    def _ticket(self, token: bytes) -> bytes:
        if not token:
            raise Refused("GSSAPI: an empty token")
        answer = self._context.step(token)
        if not self._context.complete:
            return answer or b""
        self._next = self._layers
        return answer or self._layers(b"")

    def _layers(self, token: bytes) -> bytes:
        if token:
            raise Refused("GSSAPI: an unexpected token")
        self._next = self._choice
        return bytes(self._context.wrap(LAYERS, False).message)

    def _choice(self, token: bytes) -> None:
        choice = self._context.unwrap(token).message
        if len(choice) < len(LAYERS) or choice[0] != NO_LAYER:
            raise Refused("GSSAPI: the client requires a security layer, which is not supported")
        # Ignore an authorization ID, as Kafka does. The client is always its own principal.
        name = str(self._context.initiator_name)
        try:
            short = self._namer.short_name(KerberosName.parse(name))
        except NoName as error:
            raise Refused(f"GSSAPI: {error} (sasl.kerberos.principal.to.local.rules)") from None
        self.principal = Principal("User", short)


class Tickets(NamedTuple):
    """The location of a client's tickets. Without a principal, the tickets of the cache's owner are used."""

    principal: str | None
    store: Mapping[str, str]
    """Credential store in MIT's format. If it is empty, the user's own store is used."""


def by_key_table(identity: Identity) -> Tickets:
    """Return the location of a new in-memory cache. Raises Unusable if the key table is unreadable."""
    library()
    check_key_table(identity)
    cache = f"MEMORY:{secrets.token_hex(8)}"
    return Tickets(identity.principal, {"client_keytab": f"FILE:{identity.key_table}", "ccache": cache})


def fetched_before(principal: str | None, cache: str | None) -> Tickets:
    """Return the location of tickets in the file `cache`, or in libkrb5's default cache."""
    library()
    return Tickets(principal, {"ccache": f"FILE:{cache}"} if cache else {})


class GssapiClient:
    """The client side of GSSAPI. `first` may wait for the KDC."""

    def __init__(self, tickets: Tickets, service: str, host: str) -> None:
        self._tickets = tickets
        self._target = f"{service}@{host}"
        self._error: type[Exception] = library().exceptions.GSSError
        self._context: Any = None
        self._chosen = False

    def first(self) -> bytes:
        gss = library()
        try:
            principal, store = self._tickets
            name = gss.Name(principal, gss.NameType.kerberos_principal) if principal else None
            self._context = gss.SecurityContext(
                name=gss.Name(self._target, gss.NameType.hostbased_service),
                creds=gss.Credentials(name=name, usage="initiate", store=store or None),
                usage="initiate",
                mech=gss.MechType.kerberos,
                flags=gss.RequirementFlag.mutual_authentication | gss.RequirementFlag.integrity,
            )
            return bytes(self._context.step())
        except self._error as error:
            raise self._failed(error) from None

    def next(self, challenge: bytes) -> bytes | None:
        try:
            if not self._context.complete:
                return bytes(self._context.step(challenge) or b"")
            if self._chosen:
                return None
            self._chosen = True
            return self._choice(challenge)
        except self._error as error:
            raise self._failed(error) from None

    def _choice(self, challenge: bytes) -> bytes:
        offered = self._context.unwrap(challenge).message
        if len(offered) != len(LAYERS) or not offered[0] & NO_LAYER:
            raise Untrusted(f"{self._target} requires a security layer, which is not supported")
        return bytes(self._context.wrap(LAYERS, False).message)

    def _failed(self, error: Exception) -> Untrusted:
        return Untrusted(
            f"Kerberos: {self._tickets.principal or 'this user'} at {self._target}: {said(error)}"
        )
