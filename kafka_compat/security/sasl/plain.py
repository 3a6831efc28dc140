"""SASL PLAIN (RFC 4616): a name and a password, as they are. For listeners with TLS."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from kafka_compat.security.principal import Principal
from kafka_compat.security.sasl.mechanism import Refused


class Plain:
    """Compares with `passwords`, by user."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self.principal: Principal | None = None
        self.expires_ms: int | None = None
        self._passwords = passwords

    def evaluate(self, token: bytes) -> bytes:
        """Authorization id (may be empty), name and password, with NUL between them."""
        parts = token.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            raise _refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, name, password = parts
        if not name:
            raise _refused("Authentication failed: username not specified")
        if not password:
            raise _refused("Authentication failed: password not specified")
        expected = self._passwords.get(name)
        # Compared in any case: how long it takes does not tell whether there is such a user.
        equal = hmac.compare_digest(password.encode(), (expected or "").encode())
        if expected is None or not equal:
            why = "there is no such user" if expected is None else "the password is wrong"
            told = "Authentication failed: Invalid username or password"
            raise Refused(f"user {name!r}: {why}", told)
        if authorization_id and authorization_id != name:
            raise _refused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.principal = Principal("User", name)
        return b""


def _refused(problem: str) -> Refused:
    return Refused(problem, problem)
