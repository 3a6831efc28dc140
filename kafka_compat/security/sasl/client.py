"""The client side of SASL between brokers: PLAIN and both SCRAM mechanisms."""

import base64
import hashlib
import hmac
import re
import secrets
from typing import Final, Protocol

from kafka_compat.security.scram_credential import ITERATIONS_MAX, ITERATIONS_MIN, MECHANISMS


class Untrusted(Exception):
    """Raised if the server does not prove that it knows the credential, or sends an invalid message, or if
    this broker lacks credentials.
    """


class ClientMechanism(Protocol):
    """The client side of one exchange. Each object is used once."""

    def first(self) -> bytes:
        """Return the client's first token. Raises Untrusted if this broker lacks credentials."""

    def next(self, challenge: bytes) -> bytes | None:
        """Return the reply to a challenge, or None at the end. An invalid challenge raises Untrusted."""


class PlainClient:
    """The client side of PLAIN (RFC 4616)."""

    def __init__(self, name: str, password: str) -> None:
        self._token = f"\0{name}\0{password}".encode()

    def first(self) -> bytes:
        return self._token

    def next(self, challenge: bytes) -> bytes | None:
        return None


_SERVER_FIRST = re.compile(
    r"r=([\x21-\x2b\x2d-\x7e]+),s=([a-zA-Z0-9/+]+={0,2}),i=([0-9]{1,9})(?:,.*)?", re.DOTALL
)
_HEADER: Final = "n,,"


class ScramClient:
    """The client side of SCRAM (RFC 5802), without channel binding."""

    def __init__(self, mechanism: str, name: str, password: str) -> None:
        self._digest = MECHANISMS[mechanism]
        self._password = password.encode()
        self._nonce = secrets.token_hex(16)
        self._bare = f"n={name.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}"
        self._expected: bytes | None = None

    def first(self) -> bytes:
        return (_HEADER + self._bare).encode()

    def next(self, challenge: bytes) -> bytes | None:
        if self._expected is not None:
            if not hmac.compare_digest(challenge, self._expected):
                raise Untrusted("the server does not know the password: its signature is wrong")
            return None
        match = _SERVER_FIRST.fullmatch(challenge.decode(errors="replace"))
        if match is None:
            raise Untrusted("the server's first SCRAM message is invalid")
        nonce, salt, iterations = match[1], base64.b64decode(match[2]), int(match[3])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise Untrusted("the server's SCRAM nonce does not begin with the client's")
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise Untrusted(f"the server requires {iterations} iterations of SCRAM")
        digest = self._digest
        salted = hashlib.pbkdf2_hmac(digest, self._password, salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", digest)
        without_proof = f"c={base64.b64encode(_HEADER.encode()).decode()},r={nonce}"
        about = f"{self._bare},{challenge.decode()},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(digest, client_key).digest(), about, digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        verifier = hmac.digest(hmac.digest(salted, b"Server Key", digest), about, digest)
        self._expected = b"v=" + base64.b64encode(verifier)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
