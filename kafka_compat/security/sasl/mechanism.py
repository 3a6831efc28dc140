"""Interface of a SASL mechanism, and the mechanism PLAIN."""

import hmac
from collections.abc import Mapping
from typing import Protocol

from kafka_compat.security.principal import Principal


class Refused(Exception):
    """Raised if the client is not authenticated.

    The message is for the broker's log. `client_message` is sent to the client; None sends the same message
    as for a wrong password, so that clients cannot find out which users exist.
    """

    def __init__(self, why: str, client_message: str | None = None) -> None:
        super().__init__(why)
        self.client_message = client_message


class Mechanism(Protocol):
    """The server side of one exchange. Each object is used once."""

    principal: Principal | None
    """The client's principal, or None until the client is authenticated."""
    expires_ms: int | None
    """The expiry time of the credential in ms since the epoch, or None if it does not expire."""
    pending: Refused | None
    """A rejection that the client has received, and must still confirm, or None."""

    def evaluate(self, token: bytes) -> bytes | None:
        """Return the response to a client's token. If tokens are separate frames, None means that nothing is
        sent, not even an empty token. Raises Refused if the client is rejected.
        """


class Plain:
    """SASL PLAIN (RFC 4616): the name and the password in plain text, for listeners with TLS.

    The password is compared with the user's password in `passwords`.
    """

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self.principal: Principal | None = None
        self.expires_ms: int | None = None
        self.pending: Refused | None = None
        self._passwords = passwords

    def evaluate(self, token: bytes) -> bytes:
        """Check the authorization ID (which may be empty), the name and the password, separated by NUL."""
        parts = token.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            raise _refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, name, password = parts
        if not name:
            raise _refused("Authentication failed: username not specified")
        if not password:
            raise _refused("Authentication failed: password not specified")
        expected = self._passwords.get(name)
        # Compare passwords even for unknown users, because the response time could reveal which users exist.
        equal = hmac.compare_digest(password.encode(), (expected or "").encode())
        if expected is None or not equal:
            why = "the user does not exist" if expected is None else "the password is wrong"
            raise Refused(f"user {name!r}: {why}", "Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != name:
            raise _refused(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.principal = Principal("User", name)
        return b""


def _refused(problem: str) -> Refused:
    return Refused(problem, problem)
