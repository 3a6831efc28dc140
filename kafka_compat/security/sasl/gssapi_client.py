"""The client's side of SASL GSSAPI (RFC 4752), with which brokers log in at each other, and commands at
brokers. The extra `kerberos`.

Rules
1. A client is who its key table says it is: libkrb5 asks the KDC for its first ticket, and for another before
   that one ends; tickets are kept in memory. Or it has the tickets that somebody fetched with kinit.
2. The other side is `service/host`, with the host by which it was dialled; it has to prove that.
3. There is no security layer: TLS is for that.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafka_compat.security.sasl.client import Untrusted
from kafka_compat.security.sasl.gssapi import LAYERS, NO_LAYER, Identity, check_key_table, library, said


class Tickets(NamedTuple):
    """Where a client's are; without a principal they are those of whoever is in the cache."""

    principal: str | None
    store: Mapping[str, str]
    """MIT's credential store; an empty one is the user's own."""


def by_key_table(identity: Identity) -> Tickets:
    """In a new cache in memory, for all clients of an identity. Raises Unusable."""
    library()
    check_key_table(identity)
    cache = f"MEMORY:{secrets.token_hex(8)}"
    return Tickets(identity.principal, {"client_keytab": f"FILE:{identity.key_table}", "ccache": cache})


def fetched_before(principal: str | None, cache: str | None) -> Tickets:
    """In the file `cache`, or where libkrb5 looks for them. Raises Unusable."""
    library()
    return Tickets(principal, {"ccache": f"FILE:{cache}"} if cache else {})


class GssapiClient:
    """See the rules above; `first` may wait for the KDC."""

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
            flags = gss.RequirementFlag.mutual_authentication | gss.RequirementFlag.integrity
            self._context = gss.SecurityContext(
                name=gss.Name(self._target, gss.NameType.hostbased_service),
                creds=gss.Credentials(name=name, usage="initiate", store=store or None),
                usage="initiate",
                mech=gss.MechType.kerberos,
                flags=flags,
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
            raise Untrusted(f"{self._target} wants a security layer, and there is none")
        return bytes(self._context.wrap(LAYERS, False).message)

    def _failed(self, error: Exception) -> Untrusted:
        return Untrusted(
            f"Kerberos: {self._tickets.principal or 'this user'} at {self._target}: {said(error)}"
        )
