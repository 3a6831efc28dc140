"""Client side of SASL DIGEST-MD5 (RFC 2831), as implemented by ZooKeeper's servers. No I/O.

The client proves that it knows the password without sending it, and so does the server. Later traffic is not
encrypted, and an eavesdropper can guess passwords offline. Use TLS on shared networks.
"""

import hmac
import re
import secrets
from collections.abc import Mapping
from hashlib import md5
from typing import Final

SERVICE_URI: Final = "zookeeper/zk-sasl-md5"
"""The digest URI (service and host) of all ZooKeeper servers, regardless of their host names."""

_FIELD: Final = re.compile(
    rb'[\s,]*([A-Za-z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))\s*(?=,|$)', re.DOTALL
)
_COUNT: Final = b"00000001"
_QOP: Final = b"auth"


class DigestError(Exception):
    """An invalid message from the server. The error text never contains a secret."""


class DigestMd5Client:
    """One authentication exchange. Call `evaluate` with each challenge from the server until `done`."""

    def __init__(
        self, username: str, password: str, *, uri: str = SERVICE_URI, cnonce: str | None = None
    ) -> None:
        """`cnonce` is the client nonce. If it is None, a random nonce is generated."""
        self.done = False
        self._username = username
        self._password = password
        self._uri = uri.encode()
        self._cnonce = (cnonce or secrets.token_urlsafe(24)).encode()
        self._expected: bytes | None = None

    def evaluate(self, challenge: bytes) -> bytes:
        """Return the response to the server's challenge. Raises DigestError if the challenge is invalid."""
        if self.done:
            raise DigestError("it continues after the end of the exchange")
        if self._expected is None:
            return self._respond(_fields(challenge))
        proof = _fields(challenge).get("rspauth")
        if proof is None or not hmac.compare_digest(proof, self._expected):
            raise DigestError("it does not prove that it knows the password")
        self.done = True
        return b""

    def _respond(self, fields: Mapping[str, bytes]) -> bytes:
        nonce, realm = fields.get("nonce"), fields.get("realm", b"")
        if not nonce:
            raise DigestError("its challenge has no nonce")
        if fields.get("algorithm") != b"md5-sess":
            raise DigestError("it requires an algorithm other than md5-sess")
        if _QOP not in [item.strip() for item in fields.get("qop", _QOP).split(b",")]:
            raise DigestError("it requires a quality of protection other than auth")
        utf8 = fields.get("charset", b"").lower() == b"utf-8"
        who = b":".join((_hashed_text(self._username), realm, _hashed_text(self._password)))
        secret = md5(b":".join((md5(who).digest(), nonce, self._cnonce))).hexdigest().encode()

        def proof(method: bytes) -> bytes:
            target = md5(method + b":" + self._uri).hexdigest().encode()
            return md5(b":".join((secret, nonce, _COUNT, self._cnonce, _QOP, target))).hexdigest().encode()

        self._expected = proof(b"")
        parts = [
            b"charset=utf-8" if utf8 else b"",
            b"username=" + _quoted(self._username.encode("utf-8" if utf8 else "latin-1", "replace")),
            b"realm=" + _quoted(realm) if "realm" in fields else b"",
            b"nonce=" + _quoted(nonce),
            b"nc=" + _COUNT,
            b"cnonce=" + _quoted(self._cnonce),
            b"digest-uri=" + _quoted(self._uri),
            b"response=" + proof(b"AUTHENTICATE"),
            b"qop=" + _QOP,
        ]
        return b",".join(part for part in parts if part)


def _fields(challenge: bytes) -> dict[str, bytes]:
    fields: dict[str, bytes] = {}
    position = 0
    while position < len(challenge.rstrip()):
        match = _FIELD.match(challenge, position)
        if match is None:
            raise DigestError("its challenge is malformed")
        name = match[1].decode().lower()
        value = match[3] if match[2] is None else re.sub(rb"(?s)\\(.)", rb"\1", match[2])
        if fields.setdefault(name, value) is not value and name != "realm":
            raise DigestError(f"its challenge has {name} twice")
        position = match.end()
    return fields


def _hashed_text(text: str) -> bytes:
    # RFC 2831, 2.1.2.1, requires Latin-1 if possible, otherwise UTF-8.
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _quoted(value: bytes) -> bytes:
    return b'"' + re.sub(rb'(["\\])', rb"\\\1", value) + b'"'
