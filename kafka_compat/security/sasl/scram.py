"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, KIP-84): authentication without sending the password.

Rules
1. The final message must contain the complete nonce of this exchange (CVE-2024-56128), and repeat the header
   of the first message.
2. An unknown user always gets the same salt, which looks like any other salt. The user is rejected when the
   proof arrives, as after a wrong password.
3. Proofs are compared in constant time.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from typing import Final, NamedTuple

from kafka_compat.security.principal import Principal
from kafka_compat.security.sasl.mechanism import Refused
from kafka_compat.security.scram_credential import ITERATIONS_MIN, MECHANISMS, Credential

TOKEN_EXTENSION: Final = "tokenauth"
"""The extension with which a client authenticates by a delegation token (KIP-48)."""

_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"[a-zA-Z0-9/+]*={0,2}"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authorization_id>{_SASL_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_FINAL = re.compile(
    rf"(?P<without_proof>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),"
    rf"p=(?P<proof>{_BASE64})"
)
_MESSAGE_BYTES_MAX: Final = 16 * 1024
_DECOY_KEY: Final = secrets.token_bytes(32)


class Found(NamedTuple):
    """The credential of a user or token. `owner` is the principal after authentication: the user, or the
    owner of the token, which is valid until `expires_ms`.
    """

    credential: Credential
    owner: Principal
    expires_ms: int | None = None


Find = Callable[[str, bool], Found | None]
"""Function that returns the credential for a user name or (with True) a token ID, or None if unknown."""


class Scram:
    """The server side of one SCRAM exchange: a first message and a final message."""

    def __init__(self, mechanism: str, find: Find) -> None:
        self.principal: Principal | None = None
        self.expires_ms: int | None = None
        self.pending: Refused | None = None
        self._mechanism = mechanism
        self._digest = MECHANISMS[mechanism]
        self._find = find
        self._name = ""
        self._by_token = False
        self._found: Found | None = None
        self._credential: Credential | None = None
        self._header = ""
        self._nonce = ""
        self._said = ""
        """The first messages of the client and the server, which the proof covers."""

    def evaluate(self, token: bytes) -> bytes:
        """Return the server's first message for the first token, and its final message for the second."""
        if len(token) > _MESSAGE_BYTES_MAX:
            raise Refused(f"a SCRAM message of {len(token)} bytes")
        message = token.decode(errors="replace")
        return (self._first(message) if self._credential is None else self._final(message)).encode()

    def _first(self, message: str) -> str:
        match = _FIRST.fullmatch(message)
        if match is None:
            raise Refused("Invalid SCRAM client first message format")
        name = _plain_name(match["name"])
        extensions = dict(pair.split("=", 1) for pair in match["extensions"].split(",")[1:])
        by_token = self._by_token = extensions.get(TOKEN_EXTENSION, "").lower() == "true"
        self._name = f"token {name!r}" if by_token else f"user {name!r}"
        authorization_id = _plain_name(match["authorization_id"] or "")
        if authorization_id and authorization_id != name:
            problem = (
                "Authentication failed: Client requested an authorization id that is different from username"
            )
            raise Refused(problem, problem)
        self._found = self._find(name, by_token)
        credential = self._found.credential if self._found else _decoy(name, self._digest)
        if credential.iterations < ITERATIONS_MIN:
            raise Refused(
                f"{self._name}: Iterations {credential.iterations} is less than the minimum {ITERATIONS_MIN}"
            )
        self._credential = credential
        self._header = match["header"]
        self._nonce = match["nonce"] + secrets.token_hex(16)
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._said = f"{match['bare']},{answer}"
        return answer

    def _final(self, message: str) -> str:
        credential = self._credential
        assert credential is not None
        match = _FINAL.fullmatch(message)
        if match is None:
            raise Refused(f"{self._name}: Invalid SCRAM client final message format")
        # As in Kafka 3.9, require only that the client's nonce ends with the complete nonce: librdkafka
        # before 2.6.1 sends the client's part twice.
        if not hmac.compare_digest(match["nonce"][-len(self._nonce) :].encode(), self._nonce.encode()):
            raise Refused(f"{self._name}: Invalid client nonce in the final client message.")
        if _decoded(match["binding"]) != self._header.encode():
            raise Refused(f"{self._name}: the final client message does not match the first one")
        about = f"{self._said},{match['without_proof']}".encode()
        signature = hmac.digest(credential.stored_key, about, self._digest)
        proof = _decoded(match["proof"])
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        stored_key = hashlib.new(self._digest, client_key).digest()
        proved = len(proof) == len(signature) and hmac.compare_digest(stored_key, credential.stored_key)
        if self._found is None:
            none = f"no user of that name has a credential for {self._mechanism}"
            raise Refused(f"{self._name}: {'unknown to this broker' if self._by_token else none}")
        if not proved:
            raise Refused(f"{self._name}: the password is wrong")
        self.principal, self.expires_ms = self._found.owner, self._found.expires_ms
        return f"v={base64.b64encode(hmac.digest(credential.server_key, about, self._digest)).decode()}"


def _plain_name(sasl_name: str) -> str:
    return sasl_name.replace("=2C", ",").replace("=3D", "=")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise Refused("invalid base64") from None


def _decoy(name: str, digest: str) -> Credential:
    """Return a decoy credential for an unknown user, always the same for the same name."""
    salt = hmac.digest(_DECOY_KEY, name.encode(), "sha256")[:26]
    return Credential(salt, hmac.digest(_DECOY_KEY, salt, digest), b"", ITERATIONS_MIN)
