"""The client's side of SASL GSSAPI (RFC 4752), with which brokers log in at each other. The extra `kerberos`.

Rules
1. A broker is who its key table says it is. libkrb5 asks the KDC for its first ticket, and for another before
   that one ends; tickets are kept in memory.
2. The other side is `service/host`, with the host by which it was dialled; it has to prove that.
3. There is no security layer: TLS is for that.
"""

from __future__ import annotations

import secrets
from typing import Any

from kafka_compat.security.sasl.client import Untrusted
from kafka_compat.security.sasl.gssapi import LAYERS, NO_LAYER, Identity, check_key_table, library, said


def ticket_cache(identity: Identity) -> str:
    """A new cache in memory for tickets of this identity. Raises Unusable."""
    library()
    check_key_table(identity)
    return f"MEMORY:{secrets.token_hex(8)}"


class GssapiClient:
    """See the rules above; `first` may wait for the KDC."""

    def __init__(self, identity: Identity, cache: str, service: str, host: str) -> None:
        """`cache` is of `ticket_cache`, one for all clients of an identity."""
        self._identity = identity
        self._cache = cache
        self._target = f"{service}@{host}"
        self._error: type[Exception] = library().exceptions.GSSError
        self._context: Any = None
        self._chosen = False

    def first(self) -> bytes:
        gss = library()
        try:
            name = gss.Name(self._identity.principal, gss.NameType.kerberos_principal)
            store = {"client_keytab": f"FILE:{self._identity.key_table}", "ccache": self._cache}
            flags = gss.RequirementFlag.mutual_authentication | gss.RequirementFlag.integrity
            self._context = gss.SecurityContext(
                name=gss.Name(self._target, gss.NameType.hostbased_service),
                creds=gss.Credentials(name=name, usage="initiate", store=store),
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
        return Untrusted(f"Kerberos: {self._identity.principal} at {self._target}: {said(error)}")
